"""Building a site's index anew beside the old one, on the same engine or another, and switching at once.

Searches see the old index until the new one has everything. The old one is kept for a while, or until
an operator says so. A build that was interrupted leaves nothing that the next one does not clear.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

import orjson
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EngineCredential, EngineTask, Site, StoredDocument
from app.models.base import from_microseconds
from app.services import outbox
from app.services.engines import Engines
from app.services.indexing.indexer import STEP, Indexer
from app.services.indexing.stored_documents import bodies_in_parts
from app.services.site_fields import SeenKinds
from app.storage.database import Database
from app.storage.machine_process import Locks
from backends.base import SearchBackend

OLD_INDEX_KEPT = timedelta(minutes=2)
"""How long requests that began before the switch may still search the old index."""

UNTIL_TOLD: datetime = from_microseconds(253_370_764_800_000_000)
"""When an old index that is kept is due: in the year 9999."""

log = logging.getLogger(__name__)


class RebuildUnderWay(Exception):
    """Another process is building this site's index."""


class Rebuilder:
    """Builds indexes beside the ones in use."""

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
        """Build a site's index anew and switch to it.

        Args:
            target: The engine it goes to; if not given the one it is on or, if this process was not told of that
                one, the current one.
            keep_old: Whether the old index stays until :func:`drop_kept_indexes`.
            progress: Called with the number of documents handed over since the last call.

        Raises:
            RebuildUnderWay: Somebody else is at it.
            BackendUnavailable: The engine cannot; the old index stays in use.
        """
        with self._locks.try_hold(f"rebuild_{site_id}") as held:
            if not held:
                raise RebuildUnderWay
            with self._indexer.site_lock(site_id):
                site = self._begin(site_id)
            if site is None:
                return
            try:
                engine = target or self._engine_of(site)
                index = self._indexer.begin_index(engine, site)
                # Known beforehand, since an engine that learns of a field takes up to the work of a build for it.
                seen = SeenKinds()
                self._see_all(site_id, seen)
                reached = self._indexer.send(engine, site_id, index, 0, seen, progress)
                with self._indexer.site_lock(site_id):
                    reached = self._indexer.send(engine, site_id, index, reached, seen, progress)
                    kept = keep_old or not self._engines.knows(site.engine)
                    old_due_at = UNTIL_TOLD if kept else now() + OLD_INDEX_KEPT
                    switched = self._indexer.switch(site_id, engine, index, reached, old_due_at, seen)
                if not switched:  # The site was deleted meanwhile; nobody else knows of this index.
                    engine.delete_index(index)
            finally:
                self._end(site_id)

    def _engine_of(self, site: Site) -> SearchBackend:
        return self._engines.get_engine(site.engine) if self._engines.knows(site.engine) else self._engines.current

    def _begin(self, site_id: int) -> Site | None:
        """From here on deletions are remembered until the build has seen them."""
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(rebuilding=True))
            return session.get(Site, site_id)

    def _end(self, site_id: int) -> None:
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(rebuilding=False))

    def end_if_abandoned(self, site_id: int) -> None:
        """Forget a build whose process died; the next one clears what it left at the engine."""
        with self._locks.try_hold(f"rebuild_{site_id}") as held:
            if held:
                self._end(site_id)

    def _see_all(self, site_id: int, seen: SeenKinds) -> None:
        """Note the fields of all documents there are."""
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
                seen.add_stored(orjson.loads(body) for body in bodies)
            if len(rows) < STEP:
                return
            last_id = rows[-1].id


def count_site_documents(session: Session, site_id: int) -> int:
    """The number of rows a build of this site hands over."""
    return (
        session.scalar(select(func.count()).select_from(StoredDocument).where(StoredDocument.site_id == site_id)) or 0
    )


def kept_indexes(session: Session) -> int:
    """The number of old indexes that are kept until told."""
    query = select(func.count()).select_from(EngineTask).where(EngineTask.due_at == UNTIL_TOLD)
    return session.scalar(query) or 0


def drop_kept_indexes(session: Session) -> int:
    """Let the old indexes go that were kept; gives how many."""
    kept = kept_indexes(session)
    session.execute(update(EngineTask).where(EngineTask.due_at == UNTIL_TOLD).values(due_at=now()))
    return kept


def renew_indexes(session: Session, engine: str) -> int:
    """Give every site an index that is not there yet, so that the next start builds it from the documents.

    For a restored database: what an engine has under the old names is of other documents, or another installation's.
    Engine keys that were handed out are forgotten, and asked for anew. So is what was still to be done at engines: the
    original does it, and it would be done to what the original uses.

    Args:
        engine: Identity of the engine that is to hold the indexes.

    Returns:
        How many sites there are.
    """
    session.execute(delete(EngineCredential))
    session.execute(delete(EngineTask).where(EngineTask.action.in_(outbox.AT_ENGINES)))
    sites = session.scalars(select(Site)).all()
    for site in sites:
        site.engine, site.index_tag, site.rebuilding = engine, secrets.token_hex(5), False
        site.indexing_failed_at = site.indexing_error = None
        site.index_generation += 1
        site.engine_index = site.index_name(site.index_generation)
        site.public_epoch += 1
    return len(sites)
