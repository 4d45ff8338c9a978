"""Syncs: passes over all documents of one source, after which those that were not seen are removed.

A sync is ``running`` until it is finished, abandoned, replaced by another, or nobody calls it for a day. Finishing it
decides once, for all documents, whether they may go; they go in steps, so that no other writer waits for long. From
the first step on :attr:`~app.models.Sync.removed` is a number: what was interrupted then is continued by whoever calls
again, or by the background job.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.errors import ApiError, ErrorCode
from app.models import Site, Sync
from app.services.indexing.group_commit import GroupCommit, Written
from app.services.indexing.indexer import Indexer
from app.services.indexing.stored_documents import (
    SYNC_LAPSES_AFTER,
    count_of_source,
    find_open_sync,
    find_sync,
    has_lapsed,
    mark_stored,
    remove_stored,
    sync_not_found,
    unseen_rows,
)
from app.services.site_fields import forget_if_empty
from app.services.sites import get_account, get_site, get_writable_site
from app.services.usage.daily_usage import count_changed
from app.storage.database import Database
from app.wording import counted, number

DEFAULT_MAX_REMOVED_PERCENT = 20
ALWAYS_REMOVED = 10
"""So many documents may go whatever share of the source they are."""

MAX_SYNCS = 100
"""Syncs of one site that may run at the same time; as many that ended are remembered."""

SWEEP_STEP = 1_000
"""Most documents removed in one transaction."""

END_IS_KNOWN_FOR = timedelta(hours=24)

INTERRUPTED_AFTER = timedelta(minutes=1)
"""A sweep that nobody works on for so long is continued in the background."""


@dataclass(frozen=True, slots=True)
class InterruptedSweep:
    """A sync whose sweep began and did not end."""

    account_id: int
    site_id: int
    sync_id: str


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a sweep.

    Attributes:
        last: Revision and id of the last document that it removed; ``None`` when none was left.
        revision: The site's, which the index must have.
        removed: How many the sync has removed, in all steps.
    """

    last: tuple[int, str] | None
    revision: int
    removed: int


class Syncs:
    """The syncs of all sites."""

    def __init__(self, database: Database, counters: CounterStore, indexer: Indexer):
        self._database = database
        self._transactions = GroupCommit(database, counters)
        self._indexer = indexer

    def begin(self, account_id: int, site_id: int, source: str, *, replace: bool = False) -> Sync:
        """Begin a sync of one source.

        Args:
            replace: Whether one that runs is abandoned.

        Raises:
            ApiError: 404 for the site; 403 when it is paused; 400 ``sync_running``, also if too many others are.
        """

        def write(session: Session) -> Written[Sync]:
            get_account(session, account_id, lock=True)
            site = get_writable_site(session, account_id, site_id)
            moment = now()
            running = session.scalar(
                select(Sync).where(Sync.site_id == site.id, Sync.source == source, Sync.status == "running")
            )
            if running is not None and has_lapsed(running, moment):
                _lapse(running)
            elif running is not None and replace:
                _end(running, "abandoned", moment)
            elif running is not None:
                raise ApiError(
                    ErrorCode.SYNC_RUNNING,
                    f"The sync {running.id} of this source is running; finish or abandon it, or send replace: true.",
                )
            session.flush()
            _make_room(session, site.id)
            sync = Sync(
                id=_make_id(),
                site_id=site.id,
                source=source,
                status="running",
                seen=0,
                started_at=moment,
                called_at=moment,
            )
            session.add(sync)
            session.flush()
            return Written(sync)

        return self._transactions.run(account_id, write)

    def get(self, account_id: int, site_id: int, sync_id: str) -> Sync:
        """A sync as it is, or how it ended within the last day. That it is looked at keeps it from lapsing.

        Raises:
            ApiError: 404 for the site or the sync.
        """

        def write(session: Session) -> Written[Sync]:
            get_account(session, account_id, lock=True)
            sync = find_sync(session, get_site(session, account_id, site_id, lock=True).id, sync_id)
            moment = now()
            if sync is not None and sync.status == "running":
                if has_lapsed(sync, moment):
                    _lapse(sync)
                else:
                    sync.called_at = moment
            if sync is None or (sync.ended_at is not None and sync.ended_at + END_IS_KNOWN_FOR <= moment):
                raise sync_not_found()
            session.flush()
            return Written(sync)

        return self._transactions.run(account_id, write)

    def abandon(self, account_id: int, site_id: int, sync_id: str) -> None:
        """End a sync without removing anything, or anything more.

        Raises:
            ApiError: 404 for the site or the sync.
        """

        def write(session: Session) -> Written[None]:
            get_account(session, account_id, lock=True)
            site = get_site(session, account_id, site_id, lock=True)
            _end(_open(session, site, sync_id), "abandoned", now())
            session.flush()
            return Written(None)

        self._transactions.run(account_id, write)

    def mark_seen(self, account_id: int, site_id: int, sync_id: str, ids: list[str]) -> set[str]:
        """Mark documents as seen that did not change, so that they need not be sent.

        Returns:
            Those of ``ids`` that the site has from the sync's source; the others must be sent.

        Raises:
            ApiError: 404 for the site or the sync; 403 when the site is paused.
        """

        def write(session: Session) -> Written[set[str]]:
            get_account(session, account_id, lock=True)
            sync = _open(session, get_writable_site(session, account_id, site_id), sync_id)
            sync.called_at = now()
            marked = mark_stored(session, sync, ids)
            session.flush()
            return Written(marked)

        return self._transactions.run(account_id, write)

    def finish(
        self, account_id: int, site_id: int, sync_id: str, max_removed_percent: int = DEFAULT_MAX_REMOVED_PERCENT
    ) -> int:
        """Remove the source's documents that were not seen, and end the sync; gives how many.

        Args:
            max_removed_percent: The largest part of the source's documents that may go, 0 to 100.

        Raises:
            ApiError: 404 for the site or the sync; 403 when the site is paused; 400 ``sync_removes_too_much``, and
                nothing is removed.
            BackendUnavailable: They are removed here but perhaps still found; to be called again.
        """
        last = self._sweep(account_id, site_id, sync_id, max_removed_percent)
        self._indexer.apply(site_id, last.revision)

        def write(session: Session) -> Written[int]:
            get_account(session, account_id, lock=True)
            sync = find_sync(session, get_site(session, account_id, site_id, lock=True).id, sync_id)
            if sync is None or sync.removed is None:
                raise sync_not_found()
            if sync.status == "running":
                _end(sync, "finished", now())
            session.flush()
            return Written(sync.removed)

        return self._transactions.run(account_id, write)

    def _sweep(self, account_id: int, site_id: int, sync_id: str, max_removed_percent: int) -> _Step:
        """Remove all that was not seen, step by step; gives the last step, which found nothing."""
        after = (0, "")

        def write(session: Session) -> Written[_Step | ApiError]:
            get_account(session, account_id, lock=True)
            site = get_writable_site(session, account_id, site_id)
            sync = _open(session, site, sync_id)
            sync.called_at = now()
            if sync.removed is None:
                refusal = _check_share(session, sync, max_removed_percent)
                if refusal is not None:
                    session.flush()
                    return Written(refusal)  # Raised only by whoever called: that they did is kept.
                sync.removed = 0
            rows = unseen_rows(session, sync, after, SWEEP_STEP)
            removed = remove_stored(session, site, [identifier for _, identifier in rows])
            sync.removed += removed
            forgot_fields = False
            if removed:
                forgot_fields = forget_if_empty(site)
                session.flush()
                count_changed(session, account_id, removed)
            session.flush()
            step = _Step(rows[-1] if rows else None, site.revision, sync.removed)
            return Written(step, account_id if forgot_fields else None)

        while True:
            step = self._transactions.run(account_id, write)
            if isinstance(step, ApiError):
                raise step
            if step.last is None:
                return step
            after = step.last

    def lapse(self) -> None:
        """End syncs that nobody called for a day, and forget those whose end is a day old."""
        moment = now()
        with self._database.write() as session:
            # One by one: each ends when it lapsed, not when that was noticed.
            lapsed = session.scalars(
                select(Sync).where(
                    Sync.status == "running", Sync.removed.is_(None), Sync.called_at <= moment - SYNC_LAPSES_AFTER
                )
            ).all()
            for sync in lapsed:
                session.execute(
                    update(Sync)
                    .where(Sync.number == sync.number, Sync.status == "running", Sync.called_at == sync.called_at)
                    .values(status="lapsed", ended_at=sync.called_at + SYNC_LAPSES_AFTER)
                )
            session.execute(delete(Sync).where(Sync.status != "running", Sync.ended_at <= moment - END_IS_KNOWN_FOR))

    def interrupted(self) -> list[InterruptedSweep]:
        """Sweeps whose process was killed, or whose client gave up when the engine was away."""
        with self._database.read() as session:
            rows = session.execute(
                select(Site.account_id, Sync.site_id, Sync.id)
                .join(Site, Site.id == Sync.site_id)
                .where(
                    Sync.status == "running",
                    Sync.removed.is_not(None),
                    Sync.called_at <= now() - INTERRUPTED_AFTER,
                    Site.active,
                )
            ).all()
        return [InterruptedSweep(*row) for row in rows]

    def resume(self, sweep: InterruptedSweep) -> None:
        """Finish an interrupted sweep. Whoever did so meanwhile, or ended its sync, is right.

        Raises:
            BackendUnavailable: The engine is still away.
        """
        try:
            self.finish(sweep.account_id, sweep.site_id, sweep.sync_id)
        except ApiError as error:
            if error.code not in (ErrorCode.SYNC_NOT_FOUND, ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE):
                raise


def _make_id() -> str:
    return "sync_" + base64.b32encode(secrets.token_bytes(10)).decode("ascii")


def _open(session: Session, site: Site, sync_id: str) -> Sync:
    sync = find_open_sync(session, site.id, sync_id)
    if sync is None:
        raise sync_not_found()
    return sync


def _end(sync: Sync, status: str, moment: datetime) -> None:
    sync.status = status
    sync.ended_at = moment


def _lapse(sync: Sync) -> None:
    _end(sync, "lapsed", sync.called_at + SYNC_LAPSES_AFTER)


def _make_room(session: Session, site_id: int) -> None:
    """Forget the ends of a site's older syncs.

    Raises:
        ApiError: 400 if too many are running.
    """
    of_site = select(Sync.number).where(Sync.site_id == site_id).order_by(Sync.number.desc()).offset(MAX_SYNCS)
    session.execute(delete(Sync).where(Sync.number.in_(session.scalars(of_site.where(Sync.status != "running")).all())))
    if session.scalar(of_site.where(Sync.status == "running").offset(MAX_SYNCS - 1).limit(1)) is not None:
        raise ApiError(
            ErrorCode.SYNC_RUNNING, f"{counted(MAX_SYNCS, 'sync')} of this site are running; finish or abandon one."
        )


def _check_share(session: Session, sync: Sync, max_removed_percent: int) -> ApiError | None:
    """The 400 if a sync would remove too large a part of its source."""
    total, unseen = count_of_source(session, sync)
    if unseen <= ALWAYS_REMOVED or unseen * 100 <= max_removed_percent * total:
        return None
    return ApiError(
        ErrorCode.SYNC_REMOVES_TOO_MUCH,
        f"This would remove {number(unseen)} of the source's {counted(total, 'document')}, more than "
        f"{max_removed_percent} percent. Nothing was removed; to allow it, send a higher max_removed_percent.",
    )
