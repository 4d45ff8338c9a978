"""Bringing a site's index up to date with its documents in SQL.

Every write of documents raises the site's ``revision``. The index has everything up to
``applied_revision``. Whoever holds the site's lock applies all that is pending, whoever wrote it,
in one go: writers that come together share one commit of the engine, and a process that was
killed between the two leaves work that the next writer or the background job finishes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import orjson
from sqlalchemy import Row, delete, select, update
from sqlalchemy.orm import Session

from app.database import Database
from app.locks import Locks
from app.models import Site, StoredDocument
from app.services.engines import Engines
from app.services.site_fields import SeenKinds, kinds_of
from backends.base import Document, SearchBackend
from backends.errors import BackendUnavailable, IndexNotFound

STEP = 1_000
"""Most documents handed to an engine in one call."""

FAILURE_PAUSE_SECONDS = 2.0
"""How long after a failure those who waited for the same index are told so without trying."""

log = logging.getLogger(__name__)


class Indexer:
    """Applies documents to indexes, one writer per site among all processes."""

    def __init__(self, database: Database, locks: Locks, engines: Engines):
        self._database = database
        self._locks = locks
        self._engines = engines
        self._failures: dict[int, tuple[float, BackendUnavailable]] = {}
        self._failures_lock = threading.Lock()
        self._turns: dict[int, threading.Lock] = {}
        self._applied: dict[int, int] = {}
        """Site to a revision its index is known to have; only for engines whose indexes last."""

    def site_lock(self, site_id: int) -> AbstractContextManager[None]:
        """The lock under which a site's index is written."""
        return self._locks.hold(f"site_{site_id}")

    def apply(self, site_id: int, revision: int, written: Sequence[Document] = ()) -> None:
        """Return when the index has everything up to ``revision``.

        Args:
            written: All that ``revision`` wrote, if the caller has it at hand: it need not be read back then.

        Raises:
            BackendUnavailable: It has not; the background job tries again.
        """
        self._refuse_after_failure(site_id)
        with self._turns.setdefault(site_id, threading.Lock()):
            if self._applied.get(site_id, 0) < revision:
                with self.site_lock(site_id):
                    self._apply(site_id, revision, written)

    def _apply(self, site_id: int, revision: int, written: Sequence[Document]) -> None:
        with self._database.read() as session:
            site = session.get(Site, site_id)
        if site is None:
            return
        if site.applied_revision < revision or not site_is_kept(self._engines, site):
            self._refuse_after_failure(site_id)
            try:
                alone = site.applied_revision + 1 == revision == site.revision
                site.applied_revision = self._apply_pending(site, written if alone else ())
            except BackendUnavailable as error:
                with self._failures_lock:
                    self._failures[site_id] = (time.monotonic() + FAILURE_PAUSE_SECONDS, error)
                raise
        if self._engines.get_engine(site.engine).persistent:
            self._applied[site_id] = site.applied_revision

    def _refuse_after_failure(self, site_id: int) -> None:
        with self._failures_lock:
            until, error = self._failures.get(site_id, (0.0, None))
            if error is None:
                return
            if time.monotonic() >= until:
                del self._failures[site_id]
                return
        raise BackendUnavailable(str(error), retry_after=error.retry_after) from error

    def _apply_pending(self, site: Site, written: Sequence[Document]) -> int:
        """Bring the index up to date; gives the revision it has.

        Args:
            written: All there is to apply; empty if that must be read from SQL.
        """
        engine = self._engines.get_engine(site.engine)
        try:
            if written:
                for start in range(0, len(written), STEP):
                    engine.upsert(site.engine_index, written[start : start + STEP], kinds_of(site))
                applied = site.revision
            else:
                seen = SeenKinds(kinds_of(site))
                applied = self.send(engine, site.id, site.engine_index, site.applied_revision, seen)
        except IndexNotFound:
            log.info("index %s is missing and is built from the stored documents", site.engine_index)
            return self._rebuild(engine, site)
        self._note_applied(site, applied)
        return applied

    def send(
        self,
        engine: SearchBackend,
        site_id: int,
        index: str,
        after: int,
        seen: SeenKinds,
        progress: Callable[[int], None] = lambda count: None,
    ) -> int:
        """Apply changes after revision ``after`` to ``index``; gives the revision reached.

        Args:
            seen: The fields of the documents that are there; those of the changes are added, since others go on
                writing.
            progress: Called with the number of changes handed over since the last call.
        """
        reached, last_id = after, ""
        while True:
            with self._database.read() as session:
                rows = _changes(session, site_id, reached, last_id)
            if not rows:
                return reached
            written = [Document(row.id, orjson.loads(row.source), row.changed_at) for row in rows if row.source]
            removed = [row.id for row in rows if row.source is None]
            if written:
                seen.add_stored(document.fields for document in written)
                engine.upsert(index, written, seen.kinds)
            if removed:
                engine.delete(index, removed)
            last_id, reached, *_ = rows[-1]
            progress(len(rows))
            if len(rows) < STEP:
                return reached

    def _rebuild(self, engine: SearchBackend, site: Site) -> int:
        """Build a missing index from the start, in its place; gives the revision it has."""
        engine.create_index(site.engine_index)
        applied = self.send(engine, site.id, site.engine_index, 0, SeenKinds(kinds_of(site)))
        self._note_applied(site, applied)
        return applied

    def _note_applied(self, site: Site, revision: int) -> None:
        with self._database.write() as session:
            session.execute(
                update(Site)
                .where(Site.id == site.id, Site.index_generation == site.index_generation)
                .values(applied_revision=revision)
            )
            if session.scalar(select(Site.rebuilding).where(Site.id == site.id)):
                return  # The index that is built beside must learn of deletions too.
            session.execute(
                delete(StoredDocument).where(
                    StoredDocument.site_id == site.id,
                    StoredDocument.revision <= revision,
                    StoredDocument.source.is_(None),
                )
            )

    def restore(self, site_id: int) -> None:
        """Build a site's index from its documents, because the engine has lost it.

        Raises:
            BackendUnavailable: The engine cannot.
        """
        with self.site_lock(site_id):
            with self._database.read() as session:
                site = session.get(Site, site_id)
            if site is None:
                return
            engine = self._engines.get_engine(site.engine)
            try:
                engine.count(site.engine_index)
            except IndexNotFound:
                self._rebuild(engine, site)


def site_is_kept(engines: Engines, site: Site) -> bool:
    """Whether what was applied to the site's index is still there in this process: always, but for ``memory://``."""
    engine = engines.get_engine(site.engine)
    if engine.persistent:
        return True
    try:
        engine.count(site.engine_index)
    except IndexNotFound:
        return False
    return True


def _changes(session: Session, site_id: int, revision: int, last_id: str) -> Sequence[Row[str, int, int, bytes | None]]:
    """The next changes in order of revision and id."""
    after = (StoredDocument.revision > revision) | (
        (StoredDocument.revision == revision) & (StoredDocument.id > last_id) if last_id else False
    )
    return session.execute(
        select(StoredDocument.id, StoredDocument.revision, StoredDocument.changed_at, StoredDocument.source)
        .where(StoredDocument.site_id == site_id, after)
        .order_by(StoredDocument.revision, StoredDocument.id)
        .limit(STEP)
    ).all()


def lagging_sites(session: Session) -> Sequence[tuple[int, int]]:
    """Sites whose index lacks changes, and the revision it should have."""
    rows = session.execute(select(Site.id, Site.revision).where(Site.applied_revision < Site.revision))
    return [(row.id, row.revision) for row in rows]
