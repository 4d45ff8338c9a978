"""How close the parts of pages are in meaning to a question, by the stored vectors of the pages."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.services.access.credentials import SiteRecord
from app.services.embedding.chunks import spans_of
from app.services.embedding.embedder import Embedder, EmbedderUnavailable, supports
from app.services.embedding.stored_vectors import cosines, max_chunks
from app.services.search.mixed_order import QUERY_SECONDS, ReadVectors
from backends.base import Document
from backends.sections import SECTIONS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkCosine:
    """The cosine between a question and a chunk of a document's content, from ``start`` to ``end``."""

    start: int
    end: int
    cosine: float


class Meaning:
    """Compares questions with the chunks of documents, on sites with semantic search.

    Args:
        read_vectors: As for :class:`~app.services.search.mixed_order.MixedOrder`.
    """

    def __init__(self, embedder: Embedder, read_vectors: ReadVectors):
        self._embedder = embedder
        self._read_vectors = read_vectors

    def compare(
        self, site: SiteRecord, question: str, documents: Mapping[str, Document]
    ) -> dict[str, Sequence[ChunkCosine]]:
        """Return the cosines of documents' chunks by document ID, omitting documents without vectors of their text.

        Empty if the site has no semantic search, the embedder does not support the question's language, or the
        embedder or the database is unavailable: then words alone decide, as in a search.
        """
        settings = site.settings
        if not (documents and settings.semantic and supports(self._embedder, question, settings.language)):
            return {}
        try:
            query = self._embedder.embed_query(question, QUERY_SECONDS)
        except EmbedderUnavailable as error:
            log.debug("sources are chosen by words: %s", error)
            return {}
        stored = self._read_vectors(site.id, list(documents), len(query)) or {}
        compared: dict[str, Sequence[ChunkCosine]] = {}
        for id, vectors in stored.items():
            document = documents[id]
            fields = {**document.fields, SECTIONS: [section._asdict() for section in document.sections]}
            spans = spans_of(fields, self._embedder.chunk_characters, max_chunks(len(query)))
            # Vectors of an earlier release, or of a text that has changed since, may have other chunks.
            if spans and len(vectors) == len(spans) * len(query):
                values = cosines(query, vectors)
                compared[id] = [ChunkCosine(*span, value) for span, value in zip(spans, values, strict=True)]
        return compared
