"""Syncs: passes over all documents of a source, after which unseen documents are removed.

A sync is ``running`` until it is finished, abandoned, or replaced, or receives no call for a day. Finishing it checks
once whether the unseen documents may be removed, and then removes them in steps, so that other writers wait briefly.
From the first step on, :attr:`~app.models.Sync.removed` is a number: if the sweep is interrupted, the next call or the
background job continues it.
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
"""Number of documents that may always be removed, regardless of their share of the source."""

MAX_SYNCS = 100
"""Maximum number of running syncs per site, and of ended syncs that are remembered."""

SWEEP_STEP = 1_000
"""Maximum number of documents removed in one transaction."""

END_IS_KNOWN_FOR = timedelta(hours=24)
"""Time for which an ended sync can be looked up."""

INTERRUPTED_AFTER = timedelta(minutes=1)
"""Time without progress after which the background job continues a sweep."""


@dataclass(frozen=True, slots=True)
class InterruptedSweep:
    """A sync whose sweep began but did not finish."""

    account_id: int
    site_id: int
    sync_id: str


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a sweep.

    Attributes:
        last: Revision and ID of the last removed document; ``None`` if no document was left.
        revision: Revision of the site that the index must reach.
        removed: Documents that the sync has removed in all steps.
    """

    last: tuple[int, str] | None
    revision: int
    removed: int


class Syncs:
    """Begins, advances, and ends syncs, for all sites."""

    def __init__(self, database: Database, counters: CounterStore, indexer: Indexer):
        self._database = database
        self._transactions = GroupCommit(database, counters)
        self._indexer = indexer

    def begin(self, account_id: int, site_id: int, source: str, *, replace: bool = False) -> Sync:
        """Begin a sync of one source.

        Args:
            replace: Whether to abandon a running sync.

        Raises:
            ApiError: 404 for the site; 403 if it is paused; 400 ``sync_running``, also if too many others are running.
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
            # Flushed, so that the count of running syncs excludes the sync that was just abandoned.
            session.flush()
            _delete_older_syncs(session, site.id)
            sync = _new_sync(site.id, source, moment)
            session.add(sync)
            session.flush()
            return Written(sync)

        return self._transactions.run(account_id, write)

    def get(self, account_id: int, site_id: int, sync_id: str) -> Sync:
        """Return a sync, running or ended within the last day. The call keeps it from lapsing.

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
        """End a sync without removing any documents, or without removing more of them if its sweep has begun.

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
        """Mark unchanged documents as seen, so that the client need not send them.

        Returns:
            The IDs in ``ids`` that the site has from the sync's source. The client must send the other documents.

        Raises:
            ApiError: 404 for the site or the sync; 403 if the site is paused.
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
        """Remove the source's unseen documents and end the sync. Returns their number.

        Args:
            max_removed_percent: Maximum share of the source's documents that may be removed, 0 to 100.

        Raises:
            ApiError: 404 for the site or the sync; 403 if the site is paused; 400 ``sync_removes_too_much`` without
                removing anything.
            BackendUnavailable: The documents are removed but searches may still find them; call this again.
        """
        last = self._sweep(account_id, site_id, sync_id, max_removed_percent)
        self._indexer.apply(site_id, last.revision)  # If this fails, the background job finds the sync still running.

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
        """Remove all unseen documents step by step. Returns the last step, which removed no documents."""
        after = (0, "")

        def write(session: Session) -> Written[_Step | ApiError]:
            get_account(session, account_id, lock=True)
            site = get_writable_site(session, account_id, site_id)
            return _sweep_step(session, site, _open(session, site, sync_id), max_removed_percent, after)

        while True:
            step = self._transactions.run(account_id, write)
            if isinstance(step, ApiError):
                raise step
            if step.last is None:
                return step
            after = step.last

    def lapse(self) -> None:
        """End syncs that received no call for a day, and delete syncs that ended a day ago."""
        moment = now()
        with self._database.write() as session:
            # One by one, because each sync ends at the time when it lapsed, not now.
            lapsed = session.scalars(
                select(Sync).where(
                    Sync.status == "running", Sync.removed.is_(None), Sync.called_at <= moment - SYNC_LAPSES_AFTER
                )
            ).all()
            for sync in lapsed:
                session.execute(
                    update(Sync)  # A call may have arrived since the sync was read, so the time is compared again.
                    .where(Sync.number == sync.number, Sync.status == "running", Sync.called_at == sync.called_at)
                    .values(status="lapsed", ended_at=sync.called_at + SYNC_LAPSES_AFTER)
                )
            session.execute(delete(Sync).where(Sync.status != "running", Sync.ended_at <= moment - END_IS_KNOWN_FOR))

    def interrupted(self) -> list[InterruptedSweep]:
        """Return sweeps whose process was killed, or whose client gave up while the engine was unavailable."""
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
        """Finish an interrupted sweep. Does nothing if the sweep was finished or its sync ended meanwhile.

        Raises:
            BackendUnavailable: The engine is still unavailable.
        """
        try:
            self.finish(sweep.account_id, sweep.site_id, sweep.sync_id)
        except ApiError as error:
            if error.code not in (ErrorCode.SYNC_NOT_FOUND, ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE):
                raise


def _new_sync(site_id: int, source: str, moment: datetime) -> Sync:
    id = "sync_" + base64.b32encode(secrets.token_bytes(10)).decode("ascii")
    return Sync(id=id, site_id=site_id, source=source, status="running", seen=0, started_at=moment, called_at=moment)


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


def _delete_older_syncs(session: Session, site_id: int) -> None:
    """Delete older ended syncs of a site.

    Raises:
        ApiError: 400 if too many syncs are running.
    """
    of_site = select(Sync.number).where(Sync.site_id == site_id).order_by(Sync.number.desc()).offset(MAX_SYNCS)
    session.execute(delete(Sync).where(Sync.number.in_(session.scalars(of_site.where(Sync.status != "running")).all())))
    if session.scalar(of_site.where(Sync.status == "running").offset(MAX_SYNCS - 1).limit(1)) is not None:
        raise ApiError(
            ErrorCode.SYNC_RUNNING, f"{counted(MAX_SYNCS, 'sync')} of this site are running; finish or abandon one."
        )


def _sweep_step(
    session: Session, site: Site, sync: Sync, max_removed_percent: int, after: tuple[int, str]
) -> Written[_Step | ApiError]:
    """Remove the next unseen documents, after checking in the first step whether they may be removed.

    Args:
        after: Revision and ID of the last document that the previous step removed.
    """
    sync.called_at = now()
    if sync.removed is None:
        rejection = _check_share(session, sync, max_removed_percent)
        if rejection is not None:
            session.flush()
            return Written(rejection)  # The caller raises it, so that the time of the call is stored.
        sync.removed = 0
    rows = unseen_rows(session, sync, after, SWEEP_STEP)
    removed = remove_stored(session, site, [identifier for _, identifier in rows])
    sync.removed += removed
    forgot_fields = False
    if removed:
        forgot_fields = forget_if_empty(site)
        session.flush()
        count_changed(session, site.account_id, removed, added=-removed)
    session.flush()
    step = _Step(rows[-1] if rows else None, site.revision, sync.removed)
    return Written(step, site.account_id if forgot_fields else None)


def _check_share(session: Session, sync: Sync, max_removed_percent: int) -> ApiError | None:
    """Return the 400 if a sync would remove too large a share of its source's documents; otherwise ``None``."""
    # Compared once, in the transaction of the first removal, so that no write in between changes the share.
    total, unseen = count_of_source(session, sync)
    if unseen <= ALWAYS_REMOVED or unseen * 100 <= max_removed_percent * total:
        return None
    return ApiError(
        ErrorCode.SYNC_REMOVES_TOO_MUCH,
        f"This would remove {number(unseen)} of the source's {counted(total, 'document')}, more than "
        f"{max_removed_percent} percent. Nothing was removed; to allow it, send a higher max_removed_percent.",
    )
