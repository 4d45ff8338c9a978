"""Updating a site's index from its documents in SQL.

Every write increments the site's ``revision``; the index contains everything up to ``applied_revision``. The holder of
the site's lock applies all pending changes together, regardless of which process wrote them. Concurrent writers
therefore share one commit in the engine, and if a process is killed after writing to SQL, the next writer or the
background job finishes its work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import orjson
from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.models import EngineCredential, Site, StoredDocument
from app.services.access.credentials import credential_change
from app.services.engines import DELETE_INDEX, Engines, add_task
from app.services.indexing.failures import IndexingFailures
from app.services.indexing.stored_documents import bodies_in_parts
from app.services.indexing.writer_turns import WriterTurns
from app.services.search_settings import read_settings
from app.services.site_fields import SeenKinds, kinds_of, remember
from app.services.sites import end_direct_keys
from app.storage.database import ROW_LOCK, Database
from app.storage.machine_process import Locks
from backends.base import Document, SearchBackend
from backends.errors import BackendUnavailable, IndexNotFound
from backends.servers.waiting import sleep, wait_for

STEP = 1_000
"""Maximum number of documents per call to an engine."""

STEP_BYTES = 16_777_216
"""Maximum size of the stored documents per call, in bytes, unless a single document is larger."""

RESTORE_WAIT_SECONDS = 3.0
"""Seconds that a search waits while another process builds the index."""

RESTORE_POLL_SECONDS = 0.05

log = logging.getLogger(__name__)


class NothingToFind(Exception):
    """The site has no documents and its index does not exist yet, so no search has results."""


class Indexer:
    """Applies document changes to indexes, with one writer per site across all processes."""

    def __init__(self, database: Database, locks: Locks, counters: CounterStore, engines: Engines):
        self._database = database
        self._locks = locks
        self._counters = counters
        self._engines = engines
        self._failures = IndexingFailures(database, engines)
        self._turns = WriterTurns()
        self._applied: dict[int, int] = {}
        """The latest revision that each site's index is known to contain; only for engines with persistent indexes."""

    def site_lock(self, site_id: int) -> AbstractContextManager[None]:
        """Return the lock for writing a site's index."""
        return wait_for(self._locks.hold(f"site_{site_id}"))

    def apply(self, site_id: int, revision: int, written: Sequence[Document] = ()) -> None:
        """Return when the index contains everything up to ``revision``.

        Args:
            written: All documents of ``revision``, if the caller has them, so that they need not be read from SQL.

        Raises:
            BackendUnavailable: The index could not be updated; the background job tries again.
        """
        self._failures.raise_if_failed(site_id)
        with self._turns.turn_at(site_id):
            # Checked inside the turn: the thread before may have applied this change, too.
            if self._applied.get(site_id, 0) < revision:
                with self.site_lock(site_id):
                    self._apply(site_id, revision, written)

    def _apply(self, site_id: int, revision: int, written: Sequence[Document]) -> None:
        site = _load(self._database, site_id)
        if site is None:
            return
        if site.applied_revision < revision or not site_is_kept(self._engines, site):
            with self._failures.recording(site):
                # Only then does the index lack nothing but this writer's documents.
                is_only_change = site.applied_revision + 1 == revision == site.revision
                site.applied_revision = self._apply_pending(site, written if is_only_change else ())
        # An index in memory can be lost while its revision stays the same.
        if self._engines.get_engine(site.engine).persistent:
            self._applied[site_id] = site.applied_revision

    def _apply_pending(self, site: Site, written: Sequence[Document]) -> int:
        """Update the index, and return its revision.

        Args:
            written: All pending documents; empty if they must be read from SQL.
        """
        engine = self._engines.get_engine(site.engine)
        try:
            if written:
                for start in range(0, len(written), STEP):
                    engine.upsert(site.engine_index, written[start : start + STEP], kinds_of(site))
                applied = site.revision
            else:
                site_kinds = SeenKinds(kinds_of(site))
                applied = self.send(engine, site.id, site.engine_index, site.applied_revision, site_kinds)
        except IndexNotFound:
            return self._rebuild(engine, site)
        _record_applied(self._database, site, applied)
        return applied

    def send(
        self,
        engine: SearchBackend,
        site_id: int,
        index: str,
        after: int,
        site_kinds: SeenKinds,
        progress: Callable[[int], None] = lambda count: None,
    ) -> int:
        """Apply the changes after revision ``after`` to an index, and return the last applied revision.

        Args:
            site_kinds: The fields of the site's documents. The fields of the changes are added, since other processes
                continue to write.
            progress: Called with the number of changes since the last call.
        """
        last_revision, last_id = after, ""
        while True:
            with self._database.read() as session:
                rows, more = _changes(session, site_id, last_revision, last_id)
            if not rows:
                return last_revision
            written = [Document.of(row.id, orjson.loads(row.body), row.changed_at) for row in rows if row.body]
            removed = [row.id for row in rows if row.body is None]
            if written:
                site_kinds.add_stored(document.fields for document in written)
                engine.upsert(index, written, site_kinds.kinds)
            if removed:
                engine.delete(index, removed)
            last_id, last_revision, *_ = rows[-1]
            progress(len(rows))
            if not more:
                return last_revision

    def _rebuild(self, engine: SearchBackend, site: Site) -> int:
        """Build a missing index, and return its revision.

        Unless it is the site's first index, it gets a new name, and the site switches to it once it is complete, so
        that no search sees an incomplete index.
        """
        log.info("index %s is missing and is built from the stored documents", site.engine_index)
        if not site.applied_revision:
            _create(engine, site, site.engine_index)
            applied = self.send(engine, site.id, site.engine_index, 0, SeenKinds(kinds_of(site)))
            _record_applied(self._database, site, applied)
            return applied
        if site.rebuilding:
            raise BackendUnavailable("The site's index is being rebuilt.", retry_after=5)
        index = begin_index(engine, site)
        applied = self.send(engine, site.id, index, 0, SeenKinds(kinds_of(site)))
        # The site was deleted meanwhile, so nothing else would delete this index.
        if not self.switch(site.id, engine, index, applied, now()):
            engine.delete_index(index)
        return applied

    def switch(
        self,
        site_id: int,
        engine: SearchBackend,
        index: str,
        revision: int,
        old_due_at: datetime,
        index_kinds: SeenKinds | None = None,
    ) -> bool:
        """Switch a site to the index that :func:`begin_index` created. The caller holds the site's lock.

        Args:
            revision: The revision of the index.
            old_due_at: Time to delete the previous index.
            index_kinds: The fields of the documents in the index; the site's other fields are removed. ``None`` removes
                no fields.

        Returns:
            Whether the site still exists.
        """
        with self._database.read() as session:
            account_id = session.scalar(select(Site.account_id).where(Site.id == site_id))
        if account_id is None:
            return False
        with credential_change(self._database, self._counters, account_id) as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is not None:
                _assign_index(session, site, engine, index, revision, old_due_at, index_kinds)
        return site is not None

    def restore(self, site_id: int) -> Site | None:
        """Build a site's index from its documents if the engine does not have it.

        Returns:
            The site with its current index; ``None`` if it was deleted.

        Raises:
            NothingToFind: The site has no documents, and another process or the engine is still creating the index.
            BackendUnavailable: The engine is unavailable, or another process is still building the index.
        """
        deadline = time.monotonic() + RESTORE_WAIT_SECONDS
        while True:
            with self._locks.try_hold(f"site_{site_id}") as is_locked:
                if is_locked:
                    return self._restore(site_id)
            self.fail_if_empty(site_id)
            if time.monotonic() >= deadline:
                raise BackendUnavailable("The site's index is being rebuilt.", retry_after=5)
            sleep(RESTORE_POLL_SECONDS)

    def fail_if_empty(self, site_id: int) -> None:
        """Raise if the site has no documents, so that a missing index is as good as an empty one.

        Raises:
            NothingToFind: The site has no documents.
        """
        with self._database.read() as session:
            if session.scalar(select(Site.document_count).where(Site.id == site_id)) == 0:
                raise NothingToFind

    def _restore(self, site_id: int) -> Site | None:
        site = _load(self._database, site_id)
        if site is None:
            return None
        engine = self._engines.get_engine(site.engine)
        try:
            engine.count(site.engine_index)
        except IndexNotFound:
            try:
                with self._failures.recording(site):
                    self._rebuild(engine, site)
            except BackendUnavailable:
                if self._engines.is_available(site.engine):
                    self.fail_if_empty(site_id)
                raise
            return _load(self._database, site_id)
        return site


def begin_index(engine: SearchBackend, site: Site) -> str:
    """Create the empty index that follows the site's current index, and return its name.

    If a killed process left an incomplete index with this name, it is deleted first.
    """
    index = site.index_name(site.index_generation + 1)
    engine.delete_index(index)
    _create(engine, site, index)
    return index


def _assign_index(
    session: Session,
    site: Site,
    engine: SearchBackend,
    index: str,
    revision: int,
    old_due_at: datetime,
    index_kinds: SeenKinds | None,
) -> None:
    # Gateway keys belong to the site, but keys issued by the engine are for the old index.
    end_direct_keys(session, EngineCredential.site_id == site.id)
    # In the transaction of the switch, so that a process that dies now leaves no index behind.
    add_task(session, site.engine, DELETE_INDEX, site.engine_index, due_at=old_due_at)
    site.engine = engine.identity
    site.engine_index = index
    site.index_generation += 1
    site.applied_revision = revision
    site.indexing_failed_at = site.indexing_error = None
    if index_kinds is not None:
        _remove_unused_fields(session, site, index_kinds)


def _remove_unused_fields(session: Session, site: Site, index_kinds: SeenKinds) -> None:
    """Remove a site's fields that occur neither in its new index nor in documents written after it."""
    # Documents written meanwhile are applied later by their writers, so their fields must stay.
    sizes = session.execute(
        select(StoredDocument.id, func.length(StoredDocument.body)).where(
            StoredDocument.site_id == site.id,
            StoredDocument.revision > site.applied_revision,
            StoredDocument.body.is_not(None),
        )
    )
    written = bodies_in_parts(session, site.id, [(row.id, row[1]) for row in sizes])
    index_kinds.add_stored(orjson.loads(body) for body in written)
    # The site may have removed fields meanwhile, together with its last document.
    current = kinds_of(site)
    kinds_of_fields = index_kinds.kinds.items()
    remember(site, {name: kinds & current[name] for name, kinds in kinds_of_fields if name in current})


def _record_applied(database: Database, site: Site, revision: int) -> None:
    with database.write() as session:
        session.execute(
            update(Site)
            # A concurrent switch has set the revision of the new index, which must not be overwritten.
            .where(Site.id == site.id, Site.index_generation == site.index_generation)
            .values(applied_revision=revision, indexing_failed_at=None, indexing_error=None)
        )
        if session.scalar(select(Site.rebuilding).where(Site.id == site.id)):
            return  # The index that is being built must also receive the deletions.
        session.execute(
            delete(StoredDocument).where(
                StoredDocument.site_id == site.id,
                StoredDocument.revision <= revision,
                StoredDocument.body.is_(None),
            )
        )


def site_is_kept(engines: Engines, site: Site) -> bool:
    """Whether the site's index still has its documents: always, except for ``memory://`` in a new process."""
    engine = engines.get_engine(site.engine)
    if engine.persistent:
        return True
    try:
        engine.count(site.engine_index)
    except IndexNotFound:
        return False
    return True


def _load(database: Database, site_id: int) -> Site | None:
    with database.read() as session:
        return session.get(Site, site_id)


def _create(engine: SearchBackend, site: Site, index: str) -> None:
    """Create an empty index with the site's synonyms."""
    engine.create_index(index)
    settings = read_settings(site.search_settings)
    if settings.synonyms:
        engine.send_synonyms(index, settings)


def _changes(
    session: Session, site_id: int, revision: int, last_id: str
) -> tuple[Sequence[Row[str, int, int, bytes | None]], bool]:
    """Return the next changes, in order of revision and ID, and whether there may be more.

    Returns up to ``STEP`` changes of up to ``STEP_BYTES`` in total, or a single larger change.
    """
    row_revision, row_id = StoredDocument.revision, StoredDocument.id
    later = row_revision > revision
    if last_id:
        later |= (row_revision == revision) & (row_id > last_id)
    is_next = (StoredDocument.site_id == site_id) & later
    sizes = session.execute(
        select(row_revision, row_id, func.coalesce(func.length(StoredDocument.body), 0))
        .where(is_next)
        .order_by(row_revision, row_id)
        .limit(STEP)
    ).all()
    count = total = 0
    for *_, size in sizes:
        total += size
        if count and total > STEP_BYTES:
            break
        count += 1
    if not count:
        return (), False
    end_revision, end_id, _ = sizes[count - 1]
    # A document that changes between the two queries gets a later revision, and is returned with the next changes.
    rows = session.execute(
        select(row_id, row_revision, StoredDocument.changed_at, StoredDocument.body)
        .where(is_next, (row_revision < end_revision) | ((row_revision == end_revision) & (row_id <= end_id)))
        .order_by(row_revision, row_id)
    ).all()
    # A full step may be the last one; then the next query finds nothing.
    return rows, count < len(sizes) or count == STEP
