"""Indexes of sites: finding missing, outdated, and lagging indexes, and rebuilding them.

A rebuild creates a new index for a site while the old index stays in use, on the same or another engine. Searches use
the old index until the new one is complete. The old index is then kept for a while, or until an operator drops it. If a
rebuild is interrupted, the next rebuild removes its incomplete index.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

import orjson
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EngineCredential, EngineTask, Site, StoredDocument
from app.models.base import from_microseconds
from app.services.engines import AT_ENGINES, Engines, ask_available
from app.services.indexing.indexer import STEP, Indexer, begin_index
from app.services.indexing.stored_documents import bodies_in_parts
from app.services.site_fields import SeenKinds
from app.storage.database import Database
from app.storage.machine_process import Locks
from backends.base import SearchBackend


@dataclass(frozen=True, slots=True)
class LaggingSite:
    """A site whose index lacks changes.

    Attributes:
        since: Time of the oldest missing change; ``None`` if its row no longer exists.
        failed_at: Time of the last failed update, if any.
        error: The cause of the failure; for the operator.
    """

    id: int
    since: datetime | None
    failed_at: datetime | None
    error: str | None


def missing_indexes(database: Database, engines: Engines) -> list[int]:
    """Return the IDs of sites that have documents but no index, smallest site first.

    Raises:
        BackendUnavailable: No engine is available. Sites of a single unavailable engine are omitted.
    """
    return _choose_sites(database, engines, lambda engine, indexes: indexes - set(engine.list_indexes()))


def outdated_indexes(database: Database, engines: Engines) -> list[int]:
    """Return the IDs of sites that have documents and whose index must be rebuilt, smallest site first.

    See :meth:`SearchBackend.outdated_indexes`.

    Raises:
        BackendUnavailable: No engine is available. Sites of a single unavailable engine are omitted.
    """
    return _choose_sites(database, engines, lambda engine, indexes: indexes & set(engine.outdated_indexes()))


def _choose_sites(
    database: Database, engines: Engines, choose: Callable[[SearchBackend, set[str]], set[str]]
) -> list[int]:
    """Return the IDs of sites that have documents and whose index ``choose`` selects, smallest site first."""

    def select_on(engine: SearchBackend) -> list[tuple[int, int]]:
        with database.read() as session:
            sites = session.execute(
                select(Site.document_count, Site.id, Site.engine_index).where(
                    Site.engine == engine.identity, Site.document_count > 0
                )
            ).all()
        chosen = choose(engine, {site.engine_index for site in sites})
        return [(site.document_count, site.id) for site in sites if site.engine_index in chosen]

    selected = ask_available((engine for engine in engines.all() if engine.persistent), select_on)
    return [site_id for _, site_id in sorted(chain.from_iterable(selected.values()))]


def lagging_sites(session: Session) -> Sequence[tuple[int, int]]:
    """Return the IDs of sites whose index lacks changes, each with the revision that the index should have."""
    rows = session.execute(select(Site.id, Site.revision).where(Site.applied_revision < Site.revision))
    return [(row.id, row.revision) for row in rows]


def find_lagging(session: Session) -> list[LaggingSite]:
    """Return the sites whose index lacks changes, longest wait first."""
    oldest = (
        select(func.min(StoredDocument.changed_at))
        .where(StoredDocument.site_id == Site.id, StoredDocument.revision > Site.applied_revision)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Site.id, Site.indexing_failed_at, Site.indexing_error, oldest.label("oldest"))
        .where(Site.applied_revision < Site.revision)
        .order_by("oldest", Site.id)
    )
    return [
        LaggingSite(
            row.id,
            None if row.oldest is None else from_microseconds(row.oldest),
            row.indexing_failed_at,
            row.indexing_error,
        )
        for row in rows
    ]


def lagging_since(session: Session, site: Site) -> datetime | None:
    """Return the time of the oldest change that a site's index lacks, if any."""
    oldest = session.scalar(
        select(func.min(StoredDocument.changed_at)).where(
            StoredDocument.site_id == site.id, StoredDocument.revision > site.applied_revision
        )
    )
    return None if oldest is None else from_microseconds(oldest)


OLD_INDEX_LIFETIME = timedelta(minutes=2)
"""Time after the switch for which requests that started before it may still search the old index."""

NEVER: datetime = from_microseconds(253_370_764_800_000_000)
"""Deletion time of an old index that is kept: in the year 9999."""

log = logging.getLogger(__name__)


class RebuildUnderWay(Exception):
    """Another process is rebuilding this site's index."""


class Rebuilder:
    """Builds new indexes while the old indexes stay in use."""

    def __init__(self, database: Database, locks: Locks, engines: Engines, indexer: Indexer):
        self._database = database
        self._locks = locks
        self._engines = engines
        self._indexer = indexer

    def rebuild(
        self,
        site_id: int,
        target: SearchBackend | None = None,
        *,
        keep_old: bool = False,
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Rebuild a site's index, and switch to it.

        Args:
            target: The engine of the new index; by default the site's engine, or the first engine if this process has
                no settings for the site's engine.
            keep_old: Whether to keep the old index until :func:`drop_kept_indexes`.
            progress: Called with the number of documents since the last call.

        Raises:
            RebuildUnderWay: Another process is rebuilding the index.
            BackendUnavailable: The engine is unavailable; the old index stays in use.
        """
        with self._locks.try_hold(f"rebuild_{site_id}") as is_locked:
            if not is_locked:
                raise RebuildUnderWay
            with self._indexer.site_lock(site_id):
                site = self._begin(site_id)
            if site is None:
                return
            try:
                engine = target or self._engines.get_or_default(site.engine)
                index = begin_index(engine, site)
                # All fields are collected first: adding a field later may cost an engine as much as a whole build.
                index_kinds = SeenKinds()
                self._collect_kinds(site_id, index_kinds)
                # Send most documents without the lock, so that writers continue to update the old index.
                revision = self._indexer.send(engine, site_id, index, 0, index_kinds, progress)
                with self._indexer.site_lock(site_id):
                    # Now with the lock: the few changes that arrived meanwhile, so that the new index lacks nothing
                    # when it takes over.
                    revision = self._indexer.send(engine, site_id, index, revision, index_kinds, progress)
                    # An index on an unknown engine cannot be deleted from here.
                    is_kept = keep_old or not self._engines.knows(site.engine)
                    old_due_at = NEVER if is_kept else now() + OLD_INDEX_LIFETIME
                    switched = self._indexer.switch(site_id, engine, index, revision, old_due_at, index_kinds)
                if not switched:  # The site was deleted meanwhile, so nothing else refers to this index.
                    engine.delete_index(index)
            finally:
                self._end(site_id)

    def _begin(self, site_id: int) -> Site | None:
        """Mark the site, so that rows of deleted documents are kept until the new index has received them."""
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(rebuilding=True))
            return session.get(Site, site_id)

    def _end(self, site_id: int) -> None:
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(rebuilding=False))

    def end_if_abandoned(self, site_id: int) -> None:
        """Unmark a site whose rebuilding process has died. The next rebuild removes the incomplete index."""
        with self._locks.try_hold(f"rebuild_{site_id}") as is_locked:
            if is_locked:
                self._end(site_id)

    def _collect_kinds(self, site_id: int, index_kinds: SeenKinds) -> None:
        """Add the fields of all documents to ``index_kinds``."""
        last_id = ""
        while True:
            with self._database.read() as session:
                rows = session.execute(
                    select(StoredDocument.id, func.coalesce(func.length(StoredDocument.body), 0))
                    .where(StoredDocument.site_id == site_id, StoredDocument.id > last_id)
                    .order_by(StoredDocument.id)
                    .limit(STEP)
                ).all()
                bodies = bodies_in_parts(session, site_id, [(row.id, row[1]) for row in rows])
                index_kinds.add_stored(orjson.loads(body) for body in bodies)
            if len(rows) < STEP:
                return
            last_id = rows[-1].id


def count_site_documents(session: Session, site_id: int) -> int:
    """Return the number of rows that a rebuild of a site sends to the engine."""
    return (
        session.scalar(select(func.count()).select_from(StoredDocument).where(StoredDocument.site_id == site_id)) or 0
    )


def kept_indexes(session: Session) -> int:
    """Return the number of old indexes that are kept until an operator drops them."""
    query = select(func.count()).select_from(EngineTask).where(EngineTask.due_at == NEVER)
    return session.scalar(query) or 0


def drop_kept_indexes(session: Session) -> int:
    """Drop the old indexes that were kept, and return their number."""
    count = kept_indexes(session)
    session.execute(update(EngineTask).where(EngineTask.due_at == NEVER).values(due_at=now()))
    return count


def renew_indexes(session: Session, engines: Engines) -> int:
    """Assign a new index to every site, so that the next start builds the indexes from the documents.

    Used after a database is restored: the engine's indexes under the old names contain other documents, or belong to
    another installation. Engine keys are deleted, so clients request new keys. Pending engine tasks are deleted,
    because the original installation runs them; here, they would damage its indexes.

    Sites whose engine is not configured here get the first engine.

    Returns:
        The number of sites.
    """
    session.execute(delete(EngineCredential))
    session.execute(delete(EngineTask).where(EngineTask.action.in_(AT_ENGINES)))
    sites = session.scalars(select(Site).where(Site.searched_sites.is_(None))).all()
    for site in sites:
        site.engine = engines.get_or_default(site.engine).identity
        site.index_tag, site.rebuilding = secrets.token_hex(5), False
        site.indexing_failed_at = site.indexing_error = None
        site.index_generation += 1
        site.engine_index = site.index_name(site.index_generation)
        site.public_epoch += 1
    return len(sites)
