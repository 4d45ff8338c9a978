"""The order of hits by words and by meaning.

For sentences, the first hits are ordered by their position and by the cosine between the query and the best chunk of
each document. The position is used instead of the score because scores of different engines are not comparable, and
because mixing scores gained nothing on judged query sets (``docs/benchmarks.md``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log2
from operator import itemgetter

from prometheus_client import Counter

from app.services.embedding.embedder import Embedder, EmbedderUnavailable, supports
from app.services.embedding.stored_vectors import best_cosines
from backends.analysis.sentence_queries import is_sentence
from backends.base import Hit, SearchBackend, SearchResult
from backends.errors import ResponseTooLarge
from backends.filters import And, OneOf
from backends.query import MATCH_ALL, SearchQuery

MIXED_HITS = 100
"""Number of an engine's first hits that are also ordered by meaning. Later hits keep their positions."""

MEANING_WEIGHT = 0.8
"""Weight of the cosine; the weight of the position is 1 minus this."""

QUERY_SECONDS = 0.1
"""Seconds that a search waits for the vector of its query. Without it, the hits are ordered by words."""

MIXED_SEARCHES = Counter(
    "search_mixed_searches_total",
    "Searches to be ranked by meaning as well: mixed, or the reason why they were not.",
    ["outcome"],
)

ReadVectors = Callable[[int, Sequence[str], int], Mapping[str, bytes] | None]
"""Function that returns stored vectors, given a site's ID, document IDs, and the dimension of the vectors."""

log = logging.getLogger(__name__)


class MixedOrder:
    """Orders hits by words and meaning if the query is a sentence and the site has semantic search.

    Args:
        embedder: Computes the vectors of queries.
        read_vectors: Returns the documents' stored vectors from the embedder's model; ``None`` while the database is
            unavailable. A document that the embedder rejected has an empty vector.
    """

    def __init__(self, embedder: Embedder, read_vectors: ReadVectors):
        self._embedder = embedder
        self._read_vectors = read_vectors

    def is_for(self, query: SearchQuery) -> bool:
        """Whether a search is also ordered by meaning: a sentence in a language that the embedder supports."""
        if not query.settings.semantic or query.sort or not query.limit or query.text == MATCH_ALL or query.fields:
            return False
        if query.offset >= MIXED_HITS or not is_sentence(query.text, query.settings.language):
            return False
        return supports(self._embedder, query.text, query.settings.language)

    def search(self, engine: SearchBackend, index: str, site_id: int, query: SearchQuery) -> SearchResult:
        """Run a search for which :meth:`is_for` is true.

        It searches twice: for the IDs of the first hits, and for the hits of the page.
        """

        def by_words(reason: str) -> SearchResult:
            MIXED_SEARCHES.labels(reason).inc()
            return engine.search(index, query)

        try:
            vector = self._embedder.embed_query(query.text, QUERY_SECONDS)
        except EmbedderUnavailable as error:
            log.debug("a search is ordered by words: %s", error)
            return by_words("embedder_unavailable")
        end = query.offset + query.limit
        limit = max(end, MIXED_HITS)
        first = replace(
            query, offset=0, limit=limit, highlight=None, sections=0, answers=False, returned_fields=frozenset({"id"})
        )
        try:
            result = engine.search(index, first)
        except ResponseTooLarge:  # A page of hits may still be small enough.
            return by_words("reply_too_large")
        explanations = {hit.id: hit.explanation for hit in result.hits}
        ids = list(explanations)
        pinned = set(query.pinned)
        ordered = [id for id in ids[:MIXED_HITS] if id not in pinned]
        positions = {id: position for position, id in enumerate(ordered, 1)}
        stored = self._read_vectors(site_id, ordered, len(vector))
        vectors = {id: encoded for id, encoded in (stored or {}).items() if encoded and len(encoded) % len(vector) == 0}
        if not vectors:
            return by_words("database_unavailable" if stored is None else "no_vectors")
        cosine_by_id = dict(zip(vectors, best_cosines(vector, list(vectors.values())), strict=True))
        scores = mixed(ordered, cosine_by_id)
        first_hits = [*(id for id in ids if id in pinned), *scores]
        page_ids = [*first_hits, *(id for id in ids[MIXED_HITS:] if id not in pinned)][query.offset : end]
        MIXED_SEARCHES.labels("mixed").inc()
        page: list[Hit] = []
        for hit in _hits_of(engine, index, query, page_ids):
            if query.explain:
                hit = replace(hit, explanation=explanations[hit.id])
            if query.explain and hit.id in scores:
                meaning = {
                    "place_by_words": positions[hit.id], "cosine": cosine_by_id.get(hit.id), "score": scores[hit.id],
                }  # fmt: skip
                hit = replace(hit, explanation={**(hit.explanation or {}), "meaning": meaning})
            page.append(hit)
        return replace(result, hits=tuple(page), mixed=True)


def mixed(ids: Sequence[str], cosine: Mapping[str, float]) -> dict[str, float]:
    """Order documents by words and meaning, and return them with their scores. The first positions change least.

    The score is ``(1 - w) / (1 + log2(position)) + w * cosine``, with positions from 1. A document without a vector
    gets the mean cosine of the other documents, since its words match.

    Args:
        ids: Document IDs, as ranked by words.
        cosine: The cosines of the documents with a vector; at least one.
    """
    mean = sum(cosine.values()) / len(cosine)

    def score(position: int, id: str) -> float:
        return (1 - MEANING_WEIGHT) / (1 + log2(position)) + MEANING_WEIGHT * cosine.get(id, mean)

    scored = [(id, score(position, id)) for position, id in enumerate(ids, 1)]
    return dict(sorted(scored, key=itemgetter(1), reverse=True))


def _hits_of(engine: SearchBackend, index: str, query: SearchQuery, ids: Sequence[str]) -> list[Hit]:
    """Return a search's hits with the given IDs, in this order, omitting documents that were deleted meanwhile."""
    if not ids:
        return []
    among = OneOf("id", tuple(ids))
    condition = among if query.portable_filter is None else And((query.portable_filter, among))
    page_query = replace(
        query, offset=0, limit=len(ids), portable_filter=condition, facets=(), distinct="", explain=False
    )
    hits = {hit.id: hit for hit in engine.search(index, page_query).hits}
    return [hits[id] for id in ids if id in hits]
