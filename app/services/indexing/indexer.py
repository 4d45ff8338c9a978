"""Bringing a site's index up to date with its documents in SQL.

Every write of documents raises the site's ``revision``. The index has everything up to
``applied_revision``. Whoever holds the site's lock applies all that is pending, whoever wrote it,
in one go: writers that come together share one commit of the engine, and a process that was
killed between the two leaves work that the next writer or the background job finishes.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

import orjson
from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.models import EngineCredential, Site, StoredDocument
from app.services import outbox
from app.services.access.credentials import credential_change
from app.services.engines import Engines
from app.services.indexing.stored_documents import bodies_in_parts
from app.services.search_settings import read_settings
from app.services.site_fields import SeenKinds, kinds_of, remember
from app.services.sites import end_direct_keys
from app.storage.backoff import Backoff
from app.storage.database import ROW_LOCK, Database, is_unavailable
from app.storage.machine_process import Locks
from backends.base import Document, SearchBackend
from backends.errors import BackendError, BackendUnavailable, IndexNotFound

STEP = 1_000
"""Most documents handed to an engine in one call."""

STEP_BYTES = 16_777_216
"""Most bytes of them, as they are stored, unless one is larger: what one request may bring."""

RESTORE_WAIT_SECONDS = 3.0
"""How long a search waits for others to build the index it needs."""

RESTORE_POLL_SECONDS = 0.05

FAILURE_PAUSE_SECONDS = 2.0
"""How long after a failure those who wait for the same index are told so without trying, while the engine is away.

If it is there and does not take a site's changes, the pause doubles with every failure: all that is pending is sent
with every try.
"""

MOST_ERROR_CHARACTERS = 500
LONGEST_RETRY_SECONDS = 60
"""Most that somebody who writes is told to wait; the changes are stored and tried again whether they do or not."""

log = logging.getLogger(__name__)


class NothingToFind(Exception):
    """A site has no documents, and its index is not there yet: whatever is searched, nothing is found."""


class Indexer:
    """Applies documents to indexes, one writer per site among all processes."""

    def __init__(self, database: Database, locks: Locks, counters: CounterStore, engines: Engines):
        self._database = database
        self._locks = locks
        self._counters = counters
        self._engines = engines
        self._failures: dict[int, tuple[float, BackendUnavailable]] = {}
        self._failures_lock = threading.Lock()
        self._backoff = Backoff()
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
        site = self._load(site_id)
        if site is None:
            return
        if site.applied_revision < revision or not site_is_kept(self._engines, site):
            with self._noted_if_it_fails(site):
                alone = site.applied_revision + 1 == revision == site.revision
                site.applied_revision = self._apply_pending(site, written if alone else ())
        if self._engines.get_engine(site.engine).persistent:
            self._applied[site_id] = site.applied_revision

    @contextmanager
    def _noted_if_it_fails(self, site: Site) -> Iterator[None]:
        """Work on a site's index, unless it failed just now; if it fails, that is kept for the operator, too.

        Raises:
            BackendUnavailable: It failed just now.
        """
        self._refuse_after_failure(site.id)
        try:
            yield
        except Exception as error:
            if not is_unavailable(error):
                self._note_failure(site, error)
            raise
        self._backoff.forget(site.id)

    def _note_failure(self, site: Site, error: Exception) -> None:
        pause = self._backoff.note_failure(site.id) if self._works(site.engine) else FAILURE_PAUSE_SECONDS
        if not isinstance(error, BackendUnavailable):
            told = BackendUnavailable("The site's index cannot be brought up to date.")
        else:
            told = error
        with self._failures_lock:
            self._failures[site.id] = (time.monotonic() + pause, told)
        why = f"{error} ({error.__cause__})" if error.__cause__ else str(error) or type(error).__name__
        values = {"indexing_failed_at": now(), "indexing_error": why.replace("\0", "")[:MOST_ERROR_CHARACTERS]}
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site.id).values(values))

    def _works(self, engine: str) -> bool:
        try:
            self._engines.get_engine(engine).check()
        except BackendError:
            return False
        return True

    def _refuse_after_failure(self, site_id: int) -> None:
        with self._failures_lock:
            until, error = self._failures.get(site_id, (0.0, None))
            if error is None:
                return
            left = until - time.monotonic()
            if left <= 0:
                del self._failures[site_id]
                return
        retry_after = min(LONGEST_RETRY_SECONDS, max(error.retry_after, math.ceil(left)))
        raise BackendUnavailable(str(error), retry_after=retry_after) from error

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
                rows, more = _changes(session, site_id, reached, last_id)
            if not rows:
                return reached
            written = [Document.of(row.id, orjson.loads(row.body), row.changed_at) for row in rows if row.body]
            removed = [row.id for row in rows if row.body is None]
            if written:
                seen.add_stored(document.fields for document in written)
                engine.upsert(index, written, seen.kinds)
            if removed:
                engine.delete(index, removed)
            last_id, reached, *_ = rows[-1]
            progress(len(rows))
            if not more:
                return reached

    def _rebuild(self, engine: SearchBackend, site: Site) -> int:
        """Build a missing index from the start; gives the revision it has.

        Nobody searches a part of what was searchable before: unless it is the site's first, the index gets a name of
        its own, and the site is pointed to it when it has everything.
        """
        log.info("index %s is missing and is built from the stored documents", site.engine_index)
        if not site.applied_revision:
            _create(engine, site, site.engine_index)
            applied = self.send(engine, site.id, site.engine_index, 0, SeenKinds(kinds_of(site)))
            self._note_applied(site, applied)
            return applied
        if site.rebuilding:
            raise BackendUnavailable("The site's index is being rebuilt.", retry_after=5)
        index = self.begin_index(engine, site)
        applied = self.send(engine, site.id, index, 0, SeenKinds(kinds_of(site)))
        if not self.switch(site.id, engine, index, applied, now()):
            engine.delete_index(index)
        return applied

    def begin_index(self, engine: SearchBackend, site: Site) -> str:
        """Make the empty index that follows the site's present one; gives its name.

        What a killed process left under that name goes first.
        """
        index = site.index_name(site.index_generation + 1)
        engine.delete_index(index)
        _create(engine, site, index)
        return index

    def switch(
        self,
        site_id: int,
        engine: SearchBackend,
        index: str,
        revision: int,
        old_due_at: datetime,
        seen: SeenKinds | None = None,
    ) -> bool:
        """Point a site to the index that :meth:`begin_index` made.

        Args:
            revision: What it has; to be called under the site's lock.
            old_due_at: When the index in use until now is to be deleted.
            seen: The fields of the documents it has; others are forgotten. ``None`` forgets none.

        Returns:
            Whether the site is still there.
        """
        with self._database.read() as session:
            account_id = session.scalar(select(Site.account_id).where(Site.id == site_id))
        if account_id is None:
            return False
        with credential_change(self._database, self._counters, account_id) as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is None:
                return False
            # Keys of the gateway are the site's, whichever index it has; an engine's own are for the old index.
            end_direct_keys(session, EngineCredential.site_id == site.id)
            outbox.add(session, site.engine, outbox.DELETE_INDEX, site.engine_index, due_at=old_due_at)
            site.engine = engine.identity
            site.engine_index = index
            site.index_generation += 1
            site.applied_revision = revision
            site.indexing_failed_at = site.indexing_error = None
            if seen is not None:
                _forget_unseen(session, site, seen)
        return True

    def _note_applied(self, site: Site, revision: int) -> None:
        with self._database.write() as session:
            session.execute(
                update(Site)
                .where(Site.id == site.id, Site.index_generation == site.index_generation)
                .values(applied_revision=revision, indexing_failed_at=None, indexing_error=None)
            )
            if session.scalar(select(Site.rebuilding).where(Site.id == site.id)):
                return  # The index that is built beside must learn of deletions too.
            session.execute(
                delete(StoredDocument).where(
                    StoredDocument.site_id == site.id,
                    StoredDocument.revision <= revision,
                    StoredDocument.body.is_(None),
                )
            )

    def restore(self, site_id: int) -> Site | None:
        """Build a site's index from its documents if the engine does not have it.

        Returns:
            The site as it is then; ``None`` if it was deleted.

        Raises:
            NothingToFind: The site has no documents, and others are still at it, or the engine is slow to make it.
            BackendUnavailable: The engine cannot, or others are still at it.
        """
        deadline = time.monotonic() + RESTORE_WAIT_SECONDS
        while True:
            with self._locks.try_hold(f"site_{site_id}") as held:
                if held:
                    return self._restore(site_id)
            self.refuse_if_empty(site_id)
            if time.monotonic() >= deadline:
                raise BackendUnavailable("The site's index is being rebuilt.", retry_after=5)
            time.sleep(RESTORE_POLL_SECONDS)

    def refuse_if_empty(self, site_id: int) -> None:
        """Find out whether an index that is missing would hold anything.

        Raises:
            NothingToFind: The site has no documents.
        """
        with self._database.read() as session:
            if session.scalar(select(Site.document_count).where(Site.id == site_id)) == 0:
                raise NothingToFind

    def _restore(self, site_id: int) -> Site | None:
        site = self._load(site_id)
        if site is None:
            return None
        engine = self._engines.get_engine(site.engine)
        try:
            engine.count(site.engine_index)
        except IndexNotFound:
            try:
                with self._noted_if_it_fails(site):
                    self._rebuild(engine, site)
            except BackendUnavailable:
                if self._works(site.engine):
                    self.refuse_if_empty(site_id)
                raise
            return self._load(site_id)
        return site

    def _load(self, site_id: int) -> Site | None:
        with self._database.read() as session:
            return session.get(Site, site_id)

    def missing_indexes(self) -> list[int]:
        """Sites with documents whose index the engine does not have, the smallest first.

        Raises:
            BackendUnavailable: An engine cannot tell.
        """
        return self._choose_sites(lambda engine, indexes: indexes - set(engine.list_indexes()))

    def outdated_indexes(self) -> list[int]:
        """Sites with documents whose index is to be built anew, see :meth:`SearchBackend.outdated_indexes`.

        Returns:
            The smallest first.

        Raises:
            BackendUnavailable: An engine cannot tell.
        """
        return self._choose_sites(lambda engine, indexes: indexes & set(engine.outdated_indexes()))

    def _choose_sites(self, choose: Callable[[SearchBackend, set[str]], set[str]]) -> list[int]:
        """The sites with documents of whose indexes at an engine some are chosen, the smallest first."""
        found: list[tuple[int, int]] = []
        for engine in self._engines.all():
            if engine.persistent:
                with self._database.read() as session:
                    sites = session.execute(
                        select(Site.document_count, Site.id, Site.engine_index).where(
                            Site.engine == engine.identity, Site.document_count > 0
                        )
                    ).all()
                chosen = choose(engine, {site.engine_index for site in sites})
                found.extend((site.document_count, site.id) for site in sites if site.engine_index in chosen)
        return [site_id for _, site_id in sorted(found)]


def _forget_unseen(session: Session, site: Site, seen: SeenKinds) -> None:
    """Keep of a site's fields those of the documents in its new index and of those written since."""
    # What was written meanwhile is applied by its writers, and must be known.
    sizes = session.execute(
        select(StoredDocument.id, func.length(StoredDocument.body)).where(
            StoredDocument.site_id == site.id,
            StoredDocument.revision > site.applied_revision,
            StoredDocument.body.is_not(None),
        )
    )
    written = bodies_in_parts(session, site.id, [(row.id, row[1]) for row in sizes])
    seen.add_stored(orjson.loads(body) for body in written)
    # Of what was seen, some may have been removed since, and forgotten with the last document.
    known = kinds_of(site)
    remember(site, {name: kinds & known[name] for name, kinds in seen.kinds.items() if name in known})


def site_is_kept(engines: Engines, site: Site) -> bool:
    """Tell whether what was applied to the site's index is still there in this process: always, but for ``memory://``."""
    engine = engines.get_engine(site.engine)
    if engine.persistent:
        return True
    try:
        engine.count(site.engine_index)
    except IndexNotFound:
        return False
    return True


def _create(engine: SearchBackend, site: Site, index: str) -> None:
    """Make an empty index with the site's synonyms."""
    engine.create_index(index)
    if synonyms := read_settings(site.search_settings).synonyms:
        engine.send_synonyms(index, synonyms)


def _changes(
    session: Session, site_id: int, revision: int, last_id: str
) -> tuple[Sequence[Row[str, int, int, bytes | None]], bool]:
    """The next changes in order of revision and id, and whether there may be more.

    They are at most ``STEP``, of at most ``STEP_BYTES`` together unless a single one has more.
    """
    row_revision, row_id = StoredDocument.revision, StoredDocument.id
    later = row_revision > revision
    if last_id:
        later |= (row_revision == revision) & (row_id > last_id)
    wanted = (StoredDocument.site_id == site_id) & later
    sizes = session.execute(
        select(row_revision, row_id, func.coalesce(func.length(StoredDocument.body), 0))
        .where(wanted)
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
    # What somebody changes in between has a later place by then, and comes with the next ones.
    rows = session.execute(
        select(row_id, row_revision, StoredDocument.changed_at, StoredDocument.body)
        .where(wanted, (row_revision < end_revision) | ((row_revision == end_revision) & (row_id <= end_id)))
        .order_by(row_revision, row_id)
    ).all()
    return rows, count < len(sizes) or count == STEP
