"""Making the vectors of documents in the background, after their writes have been answered."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta

import orjson
from sqlalchemy import func, or_, select, update

from app.clock import now
from app.models import DocumentVector, Site
from app.services.embedding.embedder import Embedder, EmbedderRefused, EmbedderUnavailable
from app.services.vectors.chunks import chunks_of
from app.services.vectors.stored_vectors import (
    model_of,
    pending_rows,
    quantize,
    read_bodies,
    remove_orphans,
    remove_vectors,
    store_vectors,
)
from app.storage.backoff import Backoff
from app.storage.database import ROW_LOCK, Database
from app.storage.machine_process import Locks

DOCUMENTS_AT_ONCE = 16
"""Documents whose vectors are made and stored together: a process that is killed repeats no more."""

REMOVED_AT_ONCE = 500

EMBEDDING_SECONDS = 60.0
"""How long the vectors of these may take."""

WANTED_FOR = timedelta(days=7)
"""How long a site's vectors are kept up for previews after the last one."""

WANTED_AGAIN_AFTER = timedelta(hours=1)

PROBE = "search"
"""A text that every embedder accepts: if one does not, the embedder is at fault, and not the documents."""

PROBE_SECONDS = 10.0

log = logging.getLogger(__name__)

Pending = Sequence[tuple[int, str]]
"""Revision and id of documents."""


class Vectorizer:
    """Keeps the vectors of sites in step with their documents.

    A site's row tells up to which revision its documents have vectors, and of which model: with another one, or with
    another dimension of the same one, all are made anew. One process works on a site at a time. Sites take turns, also
    from one run to the next, and a site whose documents make the embedder fail waits longer with each failure.
    """

    def __init__(self, database: Database, locks: Locks, embedder: Embedder, failing: Backoff | None = None):
        self._database = database
        self._locks = locks
        self._embedder = embedder
        self._failing = failing or Backoff()
        self._last_site_id = 0

    def want(self, site_id: int) -> None:
        """Make a site's vectors for a while, for previews, also if its settings do not wish for them."""
        until = now() + WANTED_FOR
        with self._database.read() as session:
            wanted_until = session.scalar(select(Site.vectors_wanted_until).where(Site.id == site_id))
        if wanted_until is not None and wanted_until > until - WANTED_AGAIN_AFTER:
            return  # Settings are previewed as somebody types them.
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site_id).values(vectors_wanted_until=until))

    def count_missing(self, site_id: int) -> int:
        """The number of documents of a site that have no vector of the model yet, as far as is known."""
        with self._database.read() as session:
            site = session.get(Site, site_id)
            if site is None:
                return 0
            dimension = self._embedder.dimension
            is_current = _is_of(self._embedder.model, site.vectors_model, dimension)
            if is_current and site.vectors_revision == site.revision:
                return 0
            model = site.vectors_model if is_current or dimension is None else model_of(self._embedder.model, dimension)
            made = select(func.count()).where(DocumentVector.site_id == site_id, DocumentVector.model == model)
            return max(0, site.document_count - (session.scalar(made) or 0))

    def run(self, is_stopping: Callable[[], bool] = lambda: False) -> int:
        """Make the vectors that are missing, in turns of all sites that lack some, and remove those not wished for.

        Returns:
            For how many documents one was made.

        Raises:
            EmbedderUnavailable: It cannot answer now; what is done stays.
        """
        made = 0
        is_working = True
        while is_working:
            is_working = False
            for site_id in self._due():  # Anew each time: a site written to meanwhile takes its turns, too.
                if is_stopping():
                    break
                with self._locks.try_hold(f"vectors-{site_id}") as held:
                    try:
                        count = self._step(site_id) if held else 0
                    except EmbedderUnavailable as error:
                        self._probe()  # If it raises, the embedder is away, and no site is at fault.
                        log.warning("site %s: the embedder fails at its documents: %s", site_id, error)
                        self._failing.note_failure(site_id)
                        count = 0
                self._last_site_id = site_id
                if count:
                    made += count
                    is_working = True
                    self._failing.forget(site_id)
        return made

    def _probe(self) -> None:
        """Find out whether the embedder works, and the dimension of its vectors.

        Raises:
            EmbedderUnavailable: It does not work.
        """
        self._embedder.embed_documents([PROBE], PROBE_SECONDS)

    def _due(self) -> list[int]:
        """The sites with work to do, beginning with the one after the last that had its turn."""
        is_semantic = Site.search_settings["semantic"].as_boolean()
        is_previewed = Site.vectors_wanted_until > now()
        wished = or_(is_semantic.is_(True), is_previewed) & Site.active
        model, dimension = self._embedder.model, self._embedder.dimension
        if dimension is None:
            is_other = ~Site.vectors_model.startswith(f"{model}:", autoescape=True)
        else:
            is_other = Site.vectors_model != model_of(model, dimension)
        missing = is_other | (Site.vectors_revision < Site.revision)
        unwished = (Site.vectors_model != "") & is_semantic.is_not(True) & is_previewed.is_not(True)
        with self._database.read() as session:
            due = session.scalars(select(Site.id).where(or_(wished & missing, unwished)).order_by(Site.id)).all()
        waiting = {site_id for site_id in due if site_id in self._failing}.difference(self._failing.due())
        ready = [site_id for site_id in due if site_id not in waiting]
        start = bisect_right(ready, self._last_site_id)
        return ready[start:] + ready[:start]

    def _step(self, site_id: int) -> int:
        """Make some vectors of a site; gives for how many documents, 0 if there is nothing more to do."""
        with self._database.read() as session:
            site = session.get(Site, site_id)
        if site is None:
            return 0
        if not _is_wished(site):
            self._remove(site_id)
            return 0
        if not site.active:
            return 0
        if self._embedder.dimension is None:
            self._probe()
        dimension = self._embedder.dimension
        assert dimension is not None  # It has answered.
        model = model_of(self._embedder.model, dimension)
        after = site.vectors_revision if site.vectors_model == model else 0
        with self._database.read() as session:
            wanted = pending_rows(session, site_id, model, after, DOCUMENTS_AT_ONCE)
        if not wanted:
            self._finish(site_id, model, site.revision)
            return 0
        vectors = self._make(site_id, wanted)
        if self._embedder.dimension != dimension:
            return 0  # The server has changed its model meanwhile: all vectors of the site are due again.
        with self._database.write() as session:
            store_vectors(session, site_id, model, vectors)
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is not None:
                site.vectors_model, site.vectors_revision = model, max(after, wanted[0][0] - 1)
        return len(wanted)

    def _make(self, site_id: int, wanted: Pending) -> dict[tuple[int, str], bytes]:
        """The vectors of documents as they are; empty ones for those that the embedder refuses.

        Raises:
            EmbedderUnavailable: It cannot answer now.
        """
        with self._database.read() as session:
            bodies = read_bodies(session, site_id, [id for _, id in wanted])
        chunks = {place: chunks_of(orjson.loads(body)) for place, body in bodies.items()}
        try:
            return self._embed(chunks)
        except EmbedderRefused:
            made: dict[tuple[int, str], bytes] = {}
            refusals: dict[tuple[int, str], EmbedderRefused] = {}
        for place, texts in chunks.items():
            try:
                made |= self._embed({place: texts})
            except EmbedderRefused as error:
                refusals[place] = error
        if len(refusals) == len(chunks):
            self._probe()  # It raises if the embedder refuses everything: then the documents are not at fault.
        for (_, id), refusal in refusals.items():
            log.warning("site %s: the embedder refuses the document %r: %s", site_id, id, refusal)
        return made | dict.fromkeys(refusals, b"")

    def _embed(self, chunks: dict[tuple[int, str], list[str]]) -> dict[tuple[int, str], bytes]:
        vectors = self._embedder.embed_documents(
            [text for texts in chunks.values() for text in texts], EMBEDDING_SECONDS
        )
        made: dict[tuple[int, str], bytes] = {}
        start = 0
        for place, texts in chunks.items():
            made[place] = quantize(vectors[start : start + len(texts)].mean(axis=0))
            start += len(texts)
        return made

    def _finish(self, site_id: int, model: str, reached: int) -> None:
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is None:
                return
            site.vectors_model, site.vectors_revision = model, reached
            count = session.scalar(select(func.count()).where(DocumentVector.site_id == site_id)) or 0
            if count > site.document_count:
                remove_orphans(session, site_id)

    def _remove(self, site_id: int) -> None:
        left = self._forget_progress(site_id)
        while left:
            with self._database.write() as session:
                left = remove_vectors(session, site_id, REMOVED_AT_ONCE)
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is not None and not _is_wished(site):
                site.vectors_model = ""

    def _forget_progress(self, site_id: int) -> bool:
        """Note that vectors are missing, before some are: whoever wishes for them meanwhile gets all of them anew."""
        with self._database.write() as session:
            site = session.get(Site, site_id, with_for_update=ROW_LOCK)
            if site is None or _is_wished(site):
                return False
            site.vectors_revision = 0
            return True


def _is_of(model: str, stored: str, dimension: int | None) -> bool:
    """Whether stored vectors are of a model, as far as is known before its first answer tells the dimension."""
    return stored.startswith(f"{model}:") if dimension is None else stored == model_of(model, dimension)


def _is_wished(site: Site) -> bool:
    until = site.vectors_wanted_until
    return bool(site.search_settings.get("semantic")) or (until is not None and until > now())
