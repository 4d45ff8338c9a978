"""The order of a sentence's hits by meaning as well as by words, for every engine.

An engine's first hits are ordered by their place and by the cosine between the query and each document. Places rather
than scores: engines' scores cannot be compared with each other, and on judged sets a mix of scores was no better
(``docs/benchmarks.md``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log2
from operator import itemgetter
from typing import Any

from prometheus_client import Counter

from app.services.embedding.embedder import Embedder, EmbedderUnavailable
from app.services.search.sentences import is_sentence
from app.services.vectors.stored_vectors import cosines
from backends.base import Hit, SearchBackend, SearchResult, TakeHit
from backends.embedded.analysis.languages import recognise
from backends.errors import ReplyTooLarge
from backends.filters import And, OneOf
from backends.query import MATCH_ALL, SearchQuery

MIXED_HITS = 100
"""First hits of an engine that are ordered; those behind them stay where they are."""

MEANING_WEIGHT = 0.6
"""Weight of the cosine; the rest is that of the place."""

QUERY_SECONDS = 0.1
"""How long a search waits for the vector of its query. Without it, the order is by words."""

MIXED_SEARCHES = Counter(
    "search_mixed_searches_total",
    "Searches whose hits were to be ordered by meaning, too: mixed, or why it was not done.",
    ["outcome"],
)

ReadVectors = Callable[[int, Sequence[str], int], Mapping[str, bytes] | None]
"""From a site's id, ids of documents, and the dimension of the vectors."""

log = logging.getLogger(__name__)


class MixedOrder:
    """Orders the hits of sentences at sites that wish for it.

    Args:
        embedder: Makes the vectors of queries.
        read_vectors: Gives the vectors, of the embedder's model, of those of some documents of a site that have one;
            ``None``: they cannot be read now. Empty ones are of documents that the embedder refused.
    """

    def __init__(self, embedder: Embedder, read_vectors: ReadVectors):
        self._embedder = embedder
        self._read_vectors = read_vectors

    def is_for(self, query: SearchQuery) -> bool:
        """Tell whether a search is ordered by meaning, too: a sentence of a language that the embedder knows."""
        if not query.settings.semantic or query.sort or not query.limit or query.text == MATCH_ALL or query.fields:
            return False
        if query.offset >= MIXED_HITS or not is_sentence(query.text, query.settings.language):
            return False
        languages = self._embedder.languages
        return languages is None or (query.settings.language or recognise(query.text)) in languages

    def search(
        self, engine: SearchBackend, index: str, site_id: int, query: SearchQuery, take: TakeHit
    ) -> SearchResult:
        """Run a search, for which :meth:`is_for` holds.

        The engine is asked twice: for the ids of its first hits, and for those that are shown.

        Args:
            take: Is given the hits of the page.
        """

        def by_words(reason: str) -> SearchResult:
            MIXED_SEARCHES.labels(reason).inc()
            return engine.search(index, query, take)

        try:
            vector = self._embedder.embed_query(query.text, QUERY_SECONDS)
        except EmbedderUnavailable as error:
            log.debug("a search is ordered by words: %s", error)
            return by_words("embedder_unavailable")
        explanations: dict[str, Mapping[str, Any] | None] = {}
        end = query.offset + query.limit
        limit = max(end, MIXED_HITS)
        first = replace(query, offset=0, limit=limit, highlight=None, sections=0, answers=False, max_bytes=None)

        def note(hit: Hit) -> None:
            explanations[hit.id] = hit.explanation

        try:
            result = engine.search(index, first, note)
        except ReplyTooLarge:  # A page of the hits may be none.
            return by_words("reply_too_large")
        ids = list(explanations)
        pinned = set(query.pinned)
        ordered = [id for id in ids[:MIXED_HITS] if id not in pinned]
        places = {id: place for place, id in enumerate(ordered, 1)}
        stored = self._read_vectors(site_id, ordered, len(vector))
        vectors = {id: each for id, each in (stored or {}).items() if len(each) == len(vector)}
        if not vectors:
            return by_words("database_unavailable" if stored is None else "no_vectors")
        alike = dict(zip(vectors, cosines(vector, list(vectors.values())), strict=True))
        scores = mixed(ordered, alike)
        first_hits = [*(id for id in ids if id in pinned), *scores]
        shown = [*first_hits, *(id for id in ids[MIXED_HITS:] if id not in pinned)][query.offset : end]
        MIXED_SEARCHES.labels("mixed").inc()
        for hit in _hits_of(engine, index, query, shown):
            if query.explain:
                hit = replace(hit, explanation=explanations[hit.id])
            if query.explain and hit.id in scores:
                meaning = {
                    "place_by_words": places[hit.id], "cosine": alike.get(hit.id), "score": scores[hit.id],
                }  # fmt: skip
                hit = replace(hit, explanation={**(hit.explanation or {}), "meaning": meaning})
            take(hit)
        return replace(result, mixed=True)


def mixed(ids: Sequence[str], cosine: Mapping[str, float]) -> dict[str, float]:
    """Documents in the order of words and meaning, of which the first changes least, with the scores that order them.

    Each scores ``(1 - w) / (1 + log2(place)) + w * cosine``, the place counted from 1. A document without a vector
    counts as if it had the mean cosine of the others: it is found by its words.

    Args:
        ids: In the order of words.
        cosine: Of those that have a vector, one at least.
    """
    mean = sum(cosine.values()) / len(cosine)

    def score(place: int, id: str) -> float:
        return (1 - MEANING_WEIGHT) / (1 + log2(place)) + MEANING_WEIGHT * cosine.get(id, mean)

    scored = [(id, score(place, id)) for place, id in enumerate(ids, 1)]
    return dict(sorted(scored, key=itemgetter(1), reverse=True))


def _hits_of(engine: SearchBackend, index: str, query: SearchQuery, ids: Sequence[str]) -> list[Hit]:
    """The hits of a search with some ids, in their order; without those that have gone meanwhile."""
    if not ids:
        return []
    among = OneOf("id", tuple(ids))
    condition = among if query.filter is None else And((query.filter, among))
    found: dict[str, Hit] = {}

    def keep(hit: Hit) -> None:
        found[hit.id] = hit

    wanted = replace(query, offset=0, limit=len(ids), filter=condition, facets=(), distinct="", explain=False)
    engine.search(index, wanted, keep)
    return [found[id] for id in ids if id in found]
