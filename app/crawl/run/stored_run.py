"""The row of a claimed run: reading and changing it.

All functions over a run's state may be repeated; callers retry them. They raise :class:`RunLost` if another process
has claimed the run in the meantime.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import delete, false, func, insert, literal, select, update
from sqlalchemy.orm import Session

from app.crawl.fetch.values import Reason
from app.crawl.run.frontier import add_urls, delete_record, is_discovered, settle_url, store_record
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, is_temporary_reason, unpack_links
from app.crawl.run.state import RunLost, RunState
from app.crawl.sources.runs import (
    IN_INDEX,
    Claim,
    count_reasons,
    count_waiting,
    delete_old_runs,
    end_run,
    follow_run,
    hand_back,
    lock_claimed_run,
    newest_first,
)
from app.models import RunPage, Site, Source, SourcePage, SourceRun, Sync
from app.services.emails.notices import queue_failure_notice
from app.services.usage.daily_usage import count_crawled
from app.services.webhooks import announce
from app.storage.database import ROW_LOCK, Database
from schemas.source_runs import RunSchema
from schemas.validation.webhooks import RUN_FAILED, RUN_FINISHED

DELETE_STEP = 500

_UNREAD = (Reason.QUOTA, Reason.NO_NEW_TEXT, Reason.MAX_REQUESTS)
"""Reasons for which a run skips a page without a request, although it is not excluded."""

_EVENTS = {"finished": RUN_FINISHED, "failed": RUN_FAILED}
"""Webhook events by the status of a run. Canceled runs have no event, since a user canceled them."""


def load_run(database: Database, claim: Claim) -> tuple[SourceRun, Source, Site]:
    """Load a claimed run, its source, and its site."""
    with database.read() as session:
        run = session.scalar(select(SourceRun).where(SourceRun.id == claim.run_id, SourceRun.lease == claim.lease))
        if run is None:
            raise RunLost
        source = session.get_one(Source, run.source_id)
        return run, source, session.get_one(Site, source.site_id)


def _locked_run(session: Session, state: RunState) -> SourceRun:
    run = lock_claimed_run(session, state.claim)
    if run is None:
        raise RunLost
    return run


def load_sync(state: RunState) -> Sync | None:
    """Load the run's sync."""
    with state.parts.database.read() as session:
        return session.scalar(select(Sync).where(Sync.id == state.run.sync_id))


def change_run(state: RunState, /, **values: Any) -> None:
    """Change columns of the run."""
    with state.parts.database.write() as session:
        run = _locked_run(session, state)
        for name, value in values.items():
            setattr(run, name, value)
    state.run = run


def restart_run(state: RunState) -> None:
    """Delete all URLs and counts of the run, so that it starts again."""
    with state.parts.database.write() as session:
        run = _locked_run(session, state)
        session.execute(delete(RunPage).where(RunPage.run_id == run.id))
        run.found = run.indexed = run.unchanged = run.skipped = run.failed = run.rendered = 0
        run.seeded, run.complete, run.sync_id = False, True, None
    state.run = run


def add_discovered(state: RunState, discovered: Sequence[DiscoveredUrl]) -> None:
    """Store URLs that were not discovered on a page."""
    if not discovered:
        return
    with state.parts.database.write() as session:
        add_urls(session, _locked_run(session, state), discovered, state.admission, state.max_urls)


def store_outcomes(state: RunState, outcomes: Sequence[Outcome], rendered: int) -> None:
    """Store the outcomes of URLs and the URLs that they lead to.

    Args:
        rendered: Number of pages that the browser has rendered since the last call.
    """
    with state.parts.database.write() as session:
        run = _locked_run(session, state)
        discovered = [discovery for outcome in outcomes for discovery in outcome.discovered]
        # The target of a redirect, or a post from an API, may have no row yet.
        discovered += [DiscoveredUrl(outcome.url, 0) for outcome in outcomes]
        add_urls(session, run, discovered, state.admission, state.max_urls)
        run.rendered += rendered
        if state.renderer is not None:
            run.slow_seconds = state.renderer.slow_seconds
        crawled_before = run.indexed + run.unchanged
        for outcome in outcomes:
            removed = outcome.obsolete_id is not None
            settle_url(session, run, outcome.url, outcome.status, outcome.reason, removed=removed)
            if outcome.page is not None:
                store_record(session, run.source_id, outcome.url, outcome.page)
            elif outcome.forget:
                delete_record(session, run.source_id, outcome.url)
        # In the same transaction, so that a repeated or killed batch is never counted twice.
        count_crawled(session, state.site.account_id, run.indexed + run.unchanged - crawled_before)


def has_waiting_runs(state: RunState) -> bool:
    """Whether other runs wait for a worker."""
    with state.parts.database.read() as session:
        return count_waiting(session) > 0


def has_unread_pages(state: RunState) -> bool:
    """Whether the run skipped pages without requesting them, so that it may have missed their links."""
    with state.parts.database.read() as session:
        url = session.scalar(
            select(RunPage.url).where(RunPage.run_id == state.run.id, RunPage.reason.in_(_UNREAD)).limit(1)
        )
    return url is not None


def read_progress(state: RunState) -> tuple[list[str], int]:
    """Return the branches that the run has ended, and the number of pages that it has requested."""
    settled = (RunPage.run_id == state.run.id) & (RunPage.status != "waiting")
    unrequested = (*_UNREAD, Reason.EXCLUDED, Reason.OTHER_HOST, Reason.TRAP)
    was_requested = RunPage.reason.is_(None) | RunPage.reason.not_in(unrequested)
    with state.parts.database.read() as session:
        ended = session.scalars(select(RunPage.url).where(settled, RunPage.reason == Reason.ENDLESS)).all()
        requests = session.scalar(select(func.count()).select_from(RunPage).where(settled, was_requested))
    return list(ended), requests or 0


def name_branch(state: RunState, url: str) -> None:
    """Add a remark to the report of the run: the branch that begins with a URL was ended."""
    with state.parts.database.write() as session:
        run = _locked_run(session, state)
        page = session.get(RunPage, (run.id, url))
        if page is None:
            # At the beginning of the report.
            page = RunPage(run_id=run.id, url=url, position=0, depth=0, status="waiting")
            session.add(page)
            run.found += 1
        if page.status == "waiting":
            page.status = "skipped"
            run.skipped += 1
        page.reason = Reason.ENDLESS


def count_unreadable(state: RunState) -> tuple[int, int]:
    """Return the number of temporarily unreadable pages, and the number of these and the indexed pages together.

    URLs that indexed pages wrongly name as canonical do not count.
    """
    run, _, _ = load_run(state.parts.database, state.claim)
    with state.parts.database.read() as session:
        reasons = count_reasons(session, run)
        temporary = [reason for reason in reasons if is_temporary_reason(reason)]
        unreadable = sum(reasons[reason] for reason in temporary)
        if unreadable and Reason.WRONG_CANONICAL in reasons:
            is_unreadable = (RunPage.run_id == run.id) & RunPage.reason.in_(temporary)
            urls = list(_wrong_canonicals(session, run))
            for start in range(0, len(urls), DELETE_STEP):
                step = RunPage.url.in_(urls[start : start + DELETE_STEP])
                query = select(func.count()).select_from(RunPage).where(is_unreadable, step)
                unreadable -= session.scalar(query) or 0
    return unreadable, run.indexed + run.unchanged + unreadable


def _wrong_canonicals(session: Session, run: SourceRun) -> set[str]:
    """Return the canonical URLs that turned out to be wrong, so that the pages with them were indexed themselves."""
    query = select(SourcePage.links).where(
        SourcePage.source_id == run.source_id, SourcePage.reason == Reason.WRONG_CANONICAL
    )
    packed = session.scalars(query.execution_options(yield_per=DELETE_STEP))
    return {url for links in packed for url in unpack_links(links)[:1]}


def forget_lost_pages(state: RunState) -> None:
    """Delete the records of pages that the run has not discovered, and list removed documents in its report."""
    with state.parts.database.write() as session:
        run = _locked_run(session, state)
        lost = (SourcePage.source_id == run.source_id) & ~is_discovered(run.id, RunPage.status != "removed")
        row = {"run_id": run.id, "position": run.found, "depth": 0, "status": "removed", "removed": True}
        # In SQL, because a run may lose hundreds of thousands of pages.
        values = select(SourcePage.url, *(literal(value) for value in row.values()))
        documents = values.where(lost, SourcePage.document_id.is_not(None))
        session.execute(insert(RunPage).from_select(["url", *row], documents, include_defaults=False))
        # Only now, because the rows for the report are selected from these records.
        session.execute(delete(SourcePage).where(lost))


def store_end(state: RunState, status: str, error: dict[str, str] | None, removed: int) -> None:
    """End the run, skip the waiting URLs, and queue a run that was requested during this run."""
    with state.parts.database.write() as session:
        # The source is locked before the run, in the same order as when another run is requested.
        source = session.scalar(
            select(Source)
            .join(SourceRun, SourceRun.source_id == Source.id)
            .where(SourceRun.id == state.claim.run_id)
            .with_for_update(of=Source, **ROW_LOCK)
        )
        if source is None:
            raise RunLost
        run = _locked_run(session, state)
        waiting = session.execute(
            update(RunPage)
            .where(RunPage.run_id == run.id, RunPage.status == "waiting")
            .values(status="skipped", reason=Reason.CANCELED),
            execution_options={"synchronize_session": False},
        )
        run.skipped += waiting.rowcount  # type: ignore[attr-defined]  # An UPDATE's result has one.
        run.removed += removed
        end_run(run, status, error=error)
        session.flush()
        site = session.get_one(Site, source.site_id)
        _announce(session, site, source, run)
        public_url = state.parts.public_url
        if status == "failed" and public_url is not None and _failed_twice(session, run):
            queue_failure_notice(session, source, site, run.error, public_url)
        # Only after the run has ended, since a source has at most one open run.
        follow_run(session, source, run)
        delete_old_runs(session, source.id)


def _failed_twice(session: Session, run: SourceRun) -> bool:
    """Whether a failed run is exactly the second consecutive failure. Canceled runs are ignored."""
    ended = select(SourceRun.status).where(
        SourceRun.source_id == run.source_id, SourceRun.status.in_(("finished", "failed"))
    )
    newest = session.scalars(newest_first(ended).limit(3)).all()
    # One failure may pass by itself, and a third one is no news.
    return newest[:2] == ["failed", "failed"] and newest[2:] != ["failed"]


def _announce(session: Session, site: Site, source: Source, run: SourceRun) -> None:
    if run.status not in _EVENTS:
        return
    data = {
        "site": {"id": site.id, "name": site.name},
        "source": {"id": source.id, "kind": source.kind, "url": source.url},
        "run": RunSchema().dump(run),
    }
    announce(session, site.account_id, _EVENTS[run.status], data)


def delete_unlisted(state: RunState) -> None:
    """Delete URLs of the source's ended runs that are not in any report, in steps.

    Reports list skipped and failed URLs of the newest runs, up to the number of URLs that one run may store. Only the
    report of the newest run lists indexed URLs with a remark.
    """
    with state.parts.database.read() as session:
        ended, unlisted_runs = _ended_runs(session, state.source.id, state.max_urls)
    has_remark = RunPage.reason.is_not(None) & (RunPage.run_id == ended[0]) if ended else false()
    unlisted = (RunPage.status.in_(IN_INDEX) & ~has_remark) | RunPage.run_id.in_(unlisted_runs)
    while True:
        with state.parts.database.write() as session:
            rows = session.execute(
                select(RunPage.run_id, RunPage.url).where(RunPage.run_id.in_(ended), unlisted).limit(DELETE_STEP)
            ).all()
            for run_id in {row.run_id for row in rows}:
                urls = [row.url for row in rows if row.run_id == run_id]
                session.execute(delete(RunPage).where(RunPage.run_id == run_id, RunPage.url.in_(urls)))
        if len(rows) < DELETE_STEP:
            return


def _ended_runs(session: Session, source_id: str, limit: int) -> tuple[list[str], list[str]]:
    """Return the IDs of a source's ended runs, newest first, and of older runs whose URLs exceed the limit."""
    counts = session.execute(
        select(SourceRun.id, SourceRun.skipped + SourceRun.failed + SourceRun.removed)
        .where(SourceRun.source_id == source_id, SourceRun.status.in_(("finished", "failed", "cancelled")))
        .order_by(SourceRun.queued_at.desc(), SourceRun.id.desc())
    ).all()
    ended = [row[0] for row in counts]
    # Newest first, so that the oldest runs exceed the limit.
    totals = accumulate(row[1] for row in counts)
    return ended, [run_id for run_id, total in list(zip(ended, totals, strict=True))[1:] if total > limit]


def release_claim(state: RunState) -> None:
    """Release the claim, so that another process can continue the run immediately."""
    with state.parts.database.write() as session:
        hand_back(session, state.claim)
