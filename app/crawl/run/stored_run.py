"""The row of a run, as whoever holds its claim reads and changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import delete, insert, literal, select, update
from sqlalchemy.orm import Session

from app.crawl.fetch.values import Reason
from app.crawl.run.control import RunLost
from app.crawl.run.frontier import MAX_ADDRESSES, Found, add_found, forget_page, keep_page, settle
from app.crawl.run.outcome import Outcome
from app.crawl.run.visits.visitor import is_passing_reason
from app.crawl.sources.runs import (
    Claim,
    count_reasons,
    count_waiting,
    delete_old_runs,
    end_run,
    failed_twice,
    follow_run,
    hand_back,
    held_run,
)
from app.models import RunPage, Site, Source, SourcePage, SourceRun
from app.services.mail.failed_runs import tell_of_failures
from app.services.webhooks.events import announce
from app.storage.database import ROW_LOCK, Database
from schemas.sources import RunSchema
from schemas.validation.webhooks import RUN_FAILED, RUN_FINISHED

DELETE_STEP = 500


class StoredRun:
    """A claimed run in SQL. Every method may raise :class:`RunLost` if it changes what another process has by now.

    Args:
        public_url: The service's address, to which mails lead; ``None`` where none are sent.

    Attributes:
        max_addresses: The number of addresses that the run may store.
    """

    def __init__(self, database: Database, claim: Claim, public_url: str | None = None):
        self._database = database
        self._claim = claim
        self._public_url = public_url
        self.max_addresses = MAX_ADDRESSES

    def load(self) -> tuple[SourceRun, Source, Site]:
        """The run, its source, and its site."""
        with self._database.read() as session:
            run = session.scalar(
                select(SourceRun).where(SourceRun.id == self._claim.run_id, SourceRun.lease == self._claim.lease)
            )
            if run is None:
                raise RunLost
            source = session.get_one(Source, run.source_id)
            return run, source, session.get_one(Site, source.site_id)

    def note(self, **values: Any) -> SourceRun:
        """Change what is stored of the run; gives it as it is then."""
        with self._database.write() as session:
            run = self._held(session)
            for name, value in values.items():
                setattr(run, name, value)
        return run

    def begin_anew(self) -> SourceRun:
        """Forget all addresses and counts; gives the run as it is then."""
        with self._database.write() as session:
            run = self._held(session)
            session.execute(delete(RunPage).where(RunPage.run_id == run.id))
            run.found = run.indexed = run.unchanged = run.skipped = run.failed = 0
            run.seeded, run.complete, run.sync_id = False, True, None
        return run

    def add_found(self, found: Sequence[Found], judge: Callable[[str], str | None]) -> None:
        """Add addresses that no page led to.

        Args:
            judge: Gives the reason why an address is not to be read at all.
        """
        with self._database.write() as session:
            add_found(session, self._held(session), found, judge, self.max_addresses)

    def settle(self, outcomes: Sequence[Outcome], judge: Callable[[str], str | None]) -> None:
        """Write down what became of addresses, and where they lead."""
        with self._database.write() as session:
            run = self._held(session)
            found = [found for outcome in outcomes for found in outcome.found]
            # Some were found by what was asked for them: a redirect, or an API that gives pages whole.
            found += [Found(outcome.url, 0) for outcome in outcomes]
            add_found(session, run, found, judge, self.max_addresses)
            for outcome in outcomes:
                settle(session, run, outcome.url, outcome.status, outcome.reason, removed=outcome.gone is not None)
                if outcome.page is not None:
                    keep_page(session, run.source_id, outcome.url, outcome.page)
                elif outcome.forget:
                    forget_page(session, run.source_id, outcome.url)

    def others_wait(self) -> bool:
        """Tell whether there are other runs to work on."""
        with self._database.read() as session:
            return count_waiting(session) > 0

    def has_quota_pages(self) -> bool:
        """Tell whether pages were left out for want of room."""
        with self._database.read() as session:
            found = session.scalar(
                select(RunPage.url).where(RunPage.run_id == self._claim.run_id, RunPage.reason == Reason.QUOTA).limit(1)
            )
        return found is not None

    def count_left_out(self) -> tuple[int, int]:
        """Pages that could not be read for reasons that pass, and all that are or would be documents."""
        run, _, _ = self.load()
        with self._database.read() as session:
            reasons = count_reasons(session, run)
        left_out = sum(count for reason, count in reasons.items() if is_passing_reason(reason))
        return left_out, run.indexed + run.unchanged + left_out

    def forget_lost_pages(self) -> None:
        """Forget pages of the source that the run has not found; of those that were documents, note that they went."""
        with self._database.write() as session:
            run = self._held(session)
            found = select(RunPage.url).where(
                RunPage.run_id == run.id, RunPage.url == SourcePage.url, RunPage.status != "removed"
            )
            lost = (SourcePage.source_id == run.source_id) & ~found.exists()
            row = {"run_id": run.id, "position": run.found, "depth": 0, "status": "removed", "removed": True}
            values = select(SourcePage.url, *(literal(value) for value in row.values()))
            documents = values.where(lost, SourcePage.document_id.is_not(None))
            session.execute(insert(RunPage).from_select(["url", *row], documents, include_defaults=False))
            session.execute(delete(SourcePage).where(lost))

    def end(self, status: str, error: dict[str, str] | None, removed: int) -> None:
        """End the run, and leave out what still waits. A run that was asked for meanwhile is queued."""
        with self._database.write() as session:
            # Before the run, as whoever asks for another one does.
            source = session.scalar(
                select(Source)
                .join(SourceRun, SourceRun.source_id == Source.id)
                .where(SourceRun.id == self._claim.run_id)
                .with_for_update(of=Source, **ROW_LOCK)
            )
            if source is None:
                raise RunLost
            run = self._held(session)
            waiting = session.execute(
                update(RunPage)
                .where(RunPage.run_id == run.id, RunPage.status == "waiting")
                .values(status="skipped", reason=Reason.CANCELLED),
                execution_options={"synchronize_session": False},
            )
            run.skipped += waiting.rowcount  # type: ignore[attr-defined]  # An UPDATE's result has one.
            run.removed += removed
            end_run(run, status, error=error)
            session.flush()
            _announce(session, run)
            if status == "failed" and self._public_url is not None and failed_twice(session, run):
                tell_of_failures(session, source, session.get_one(Site, source.site_id), run.error, self._public_url)
            follow_run(session, source, run)
            delete_old_runs(session, source.id)

    def delete_settled(self, source_id: str) -> None:
        """Delete the addresses of the source's ended runs that no report lists, in steps.

        Reports list what runs left out: of the newest runs, up to as many addresses as one run may store.
        """
        with self._database.read() as session:
            ended, crowded = _ended_runs(session, source_id, self.max_addresses)
        unlisted = RunPage.status.in_(("indexed", "unchanged")) | RunPage.run_id.in_(crowded)
        while True:
            with self._database.write() as session:
                urls = session.execute(
                    select(RunPage.run_id, RunPage.url).where(RunPage.run_id.in_(ended), unlisted).limit(DELETE_STEP)
                ).all()
                for run_id in {row.run_id for row in urls}:
                    of_run = [row.url for row in urls if row.run_id == run_id]
                    session.execute(delete(RunPage).where(RunPage.run_id == run_id, RunPage.url.in_(of_run)))
            if len(urls) < DELETE_STEP:
                return

    def hand_back(self) -> None:
        """Give the claim up, so that the run is continued at once."""
        with self._database.write() as session:
            hand_back(session, self._claim)

    def _held(self, session: Session) -> SourceRun:
        run = held_run(session, self._claim)
        if run is None:
            raise RunLost
        return run


def _ended_runs(session: Session, source_id: str, most: int) -> tuple[list[str], list[str]]:
    """IDs of a source's ended runs, and of those whose left-out addresses are not kept. The newest run's are."""
    counts = session.execute(
        select(SourceRun.id, SourceRun.skipped + SourceRun.failed + SourceRun.removed)
        .where(SourceRun.source_id == source_id, SourceRun.status.in_(("finished", "failed", "cancelled")))
        .order_by(SourceRun.queued_at.desc(), SourceRun.id.desc())
    ).all()
    ended = [row[0] for row in counts]
    totals = accumulate(row[1] for row in counts)
    return ended, [run_id for run_id, total in list(zip(ended, totals, strict=True))[1:] if total > most]


_EVENTS = {"finished": RUN_FINISHED, "failed": RUN_FAILED}
"""A run's status to the event that it is; who cancels one needs not be told."""


def _announce(session: Session, run: SourceRun) -> None:
    if run.status not in _EVENTS:
        return
    source = session.get_one(Source, run.source_id)
    site = session.get_one(Site, source.site_id)
    data = {
        "site": {"id": site.id, "name": site.name},
        "source": {"id": source.id, "kind": source.kind, "url": source.url},
        "run": RunSchema().dump(run),
    }
    announce(session, site.account_id, _EVENTS[run.status], data)
