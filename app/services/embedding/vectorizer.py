"""Computing document vectors in the background, after the responses to the writes."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta

import orjson
from sqlalchemy import func, or_, select, update

from app.clock import Backoff, now
from app.models import DocumentVector, Site
from app.services.embedding.chunks import chunks_of
from app.services.embedding.embedder import Embedder, EmbedderRejected, EmbedderUnavailable
from app.services.embedding.stored_vectors import (
    max_chunks,
    model_of,
    models_of,
    pending_rows,
    prefix_of,
    quantize,
    read_bodies,
    remove_orphans,
    remove_vectors,
    store_vectors,
)
from app.storage.database import ROW_LOCK, Database
from app.storage.machine_process import Locks

BATCH_DOCUMENTS = 16
"""Maximum number of documents whose vectors are computed and stored together, and repeated if the process is killed."""

BATCH_CHUNKS = 64
"""Number of chunks with which a batch is complete. Embedding them takes a small model seconds."""

REMOVAL_STEP = 500

EMBEDDING_SECONDS = 60.0
"""Timeout in seconds for computing the vectors of a batch."""

PREVIEW_LIFETIME = timedelta(days=7)
"""Time after a preview for which a site's vectors are kept current."""

PREVIEW_RENEWAL = timedelta(hours=1)
"""Time after which another preview extends this period, so that not every keystroke in the settings causes a write."""

PROBE = "search"
"""A text that every embedder accepts: if it fails, the cause is the embedder, not a document."""

PROBE_SECONDS = 10.0

log = logging.getLogger(__name__)

Pending = Sequence[tuple[int, str]]
"""Revision and ID of documents."""


class Vectorizer:
    """Keeps the vectors of sites current.

    A site's row contains the revision up to which its documents have vectors, and the model. If the model or its
    dimension changes, all vectors are computed again. One process works on a site at a time. Sites take turns, across
    runs, and a site whose documents make the embedder fail waits longer after each failure.
    """

    def __init__(self, database: Database, locks: Locks, embedder: Embedder, failing: Backoff | None = None):
        self._database = database
        self._locks = locks
        self._embedder = embedder
        self._failing = failing or Backoff()
        self._last_site_id = 0

    def enable_for_preview(self, site_id: int) -> None:
        """Keep a site's vectors current for :data:`PREVIEW_LIFETIME`, even if its settings do not use them."""
        until = now() + PREVIEW_LIFETIME
        with self._database.read() as session:
            enabled_until = session.scalar(select(Site.vectors_wanted_until).where(Site.id == site_id))
        if enabled_until is not None and enabled_until > until - PREVIEW_RENEWAL:
            return
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(vectors_wanted_until=until))

    def count_missing(self, site_id: int) -> int:
        """Return the approximate number of a site's documents without a vector of the model."""
        with self._database.read() as session:
            site = session.get(Site, site_id)
            if site is None:
                return 0
            dimension = self._embedder.dimension
            is_current = _is_of(self._embedder.model, site.vectors_model, dimension)
            if is_current and site.vectors_revision == site.revision:
                return 0
            models = (site.vectors_model,) if dimension is None else models_of(self._embedder.model, dimension)
            vectors = select(func.count()).where(DocumentVector.site_id == site_id, DocumentVector.model.in_(models))
            return max(0, site.document_count - (session.scalar(vectors) or 0))

    def run(self, is_stopping: Callable[[], bool] = lambda: False) -> int:
        """Compute missing vectors, with sites taking turns, and remove unused vectors.

        Returns:
            The number of documents that got a vector.

        Raises:
            EmbedderUnavailable: The embedder is unavailable; vectors computed so far are stored.
        """
        total = 0
        is_working = True
        while is_working:
            is_working = False
            for site_id in self._due():  # Read again each time, so that a site with new writes takes its turn, too.
                if is_stopping():
                    break
                with self._locks.try_hold(f"vectors-{site_id}") as is_locked:
                    try:
                        count = self._step(site_id) if is_locked else 0
                    except EmbedderUnavailable as error:
                        self._probe()  # Raises if the embedder is unavailable, so that no site is blamed.
                        log.warning("site %s: the embedder failed on its documents: %s", site_id, error)
                        self._failing.record_failure(site_id)
                        count = 0
                self._last_site_id = site_id
                if count:
                    total += count
                    is_working = True
                    self._failing.forget(site_id)
        return total

    def _probe(self) -> None:
        """Check that the embedder works, and find the dimension of its vectors.

        Raises:
            EmbedderUnavailable: The embedder does not work.
        """
        self._embedder.embed_documents([PROBE], PROBE_SECONDS)

    def _due(self) -> list[int]:
        """Return the sites with pending work, starting after the site that had the last turn."""
        is_semantic = Site.search_settings["semantic"].as_boolean()
        is_previewed = Site.vectors_wanted_until > now()
        uses_vectors = or_(is_semantic.is_(True), is_previewed) & Site.active
        model, dimension = self._embedder.model, self._embedder.dimension
        if dimension is None:
            is_other = ~Site.vectors_model.startswith(prefix_of(model), autoescape=True)
        else:
            is_other = Site.vectors_model != model_of(model, dimension)
        missing = is_other | (Site.vectors_revision < Site.revision)
        unused = (Site.vectors_model != "") & is_semantic.is_not(True) & is_previewed.is_not(True)
        with self._database.read() as session:
            due = session.scalars(select(Site.id).where(or_(uses_vectors & missing, unused)).order_by(Site.id)).all()
        waiting = {site_id for site_id in due if site_id in self._failing}.difference(self._failing.due())
        ready = [site_id for site_id in due if site_id not in waiting]
        start = bisect_right(ready, self._last_site_id)
        return ready[start:] + ready[:start]

    def _step(self, site_id: int) -> int:
        """Compute some vectors of a site. Returns the number of documents, 0 if there is nothing more to do."""
        with self._database.read() as session:
            site = session.get(Site, site_id)
        if site is None:
            return 0
        if not _uses_vectors(site):
            self._remove(site_id)
            return 0
        if not site.active:
            return 0
        if self._embedder.dimension is None:
            self._probe()
        dimension = self._embedder.dimension
        assert dimension is not None, "the embedder is available again"
        model = model_of(self._embedder.model, dimension)
        after = site.vectors_revision if site.vectors_model == model else 0
        with self._database.read() as session:
            pending = pending_rows(session, site_id, model, after, BATCH_DOCUMENTS)
        if not pending:
            self._finish(site_id, model, site.revision)
            return 0
        vectors = self._compute(site_id, pending, max_chunks(dimension))
        if self._embedder.dimension != dimension:
            return 0  # The server has changed its model meanwhile, so all vectors of the site are due again.
        with self._database.write() as session:
            store_vectors(session, site_id, model, vectors)
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is not None:
                # Documents may share a revision, and a batch may end between them, so only earlier revisions are
                # complete.
                site.vectors_model, site.vectors_revision = model, max(after, pending[0][0] - 1)
        return len(vectors)

    def _compute(self, site_id: int, pending: Pending, max_chunks: int) -> dict[tuple[int, str], bytes]:
        """Compute the vectors of the first documents, up to :data:`BATCH_CHUNKS`.

        A document that the embedder rejects gets no vectors, but an empty value.

        Raises:
            EmbedderUnavailable: The embedder is unavailable.
        """
        with self._database.read() as session:
            bodies = read_bodies(session, site_id, [id for _, id in pending])
        chunks: dict[tuple[int, str], list[str]] = {}
        count = 0
        for document, body in sorted(bodies.items()):
            texts = chunks_of(orjson.loads(body), self._embedder.chunk_characters, max_chunks)
            count += len(texts)
            if chunks and count > BATCH_CHUNKS:
                break
            chunks[document] = texts
        try:
            return _embed(self._embedder, chunks)
        # Any document of the batch may be the cause, so each is embedded separately.
        except EmbedderRejected:
            vectors: dict[tuple[int, str], bytes] = {}
            rejections: dict[tuple[int, str], EmbedderRejected] = {}
        for document, texts in chunks.items():
            try:
                vectors |= _embed(self._embedder, {document: texts})
            except EmbedderRejected as error:
                rejections[document] = error
        if len(rejections) == len(chunks):
            self._probe()  # Raises if the embedder rejects everything, so that the documents are not blamed.
        for (_, id), rejection in rejections.items():
            log.warning("site %s: the embedder rejected the document %r: %s", site_id, id, rejection)
        return vectors | dict.fromkeys(rejections, b"")

    def _finish(self, site_id: int, model: str, revision: int) -> None:
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is None:
                return
            site.vectors_model, site.vectors_revision = model, revision
            count = session.scalar(select(func.count()).where(DocumentVector.site_id == site_id)) or 0
            if count > site.document_count:
                remove_orphans(session, site_id)

    def _remove(self, site_id: int) -> None:
        has_more = self._reset_progress(site_id)
        while has_more:
            with self._database.write() as session:
                has_more = remove_vectors(session, site_id, REMOVAL_STEP)
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is not None and not _uses_vectors(site):
                site.vectors_model = ""

    def _reset_progress(self, site_id: int) -> bool:
        """Reset a site's revision before its vectors are removed, so that all are computed again if needed."""
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is None or _uses_vectors(site):
                return False
            site.vectors_revision = 0
            return True


def _embed(embedder: Embedder, chunks: dict[tuple[int, str], list[str]]) -> dict[tuple[int, str], bytes]:
    vectors = embedder.embed_documents([text for texts in chunks.values() for text in texts], EMBEDDING_SECONDS)
    quantized: dict[tuple[int, str], bytes] = {}
    start = 0
    for document, texts in chunks.items():
        quantized[document] = quantize(vectors[start : start + len(texts)])
        start += len(texts)
    return quantized


def _is_of(model: str, stored: str, dimension: int | None) -> bool:
    """Whether stored vectors belong to a model. The dimension is ignored until the first response has revealed it."""
    return stored.startswith(prefix_of(model)) if dimension is None else stored == model_of(model, dimension)


def _uses_vectors(site: Site) -> bool:
    until = site.vectors_wanted_until
    return bool(site.search_settings.get("semantic")) or (until is not None and until > now())
