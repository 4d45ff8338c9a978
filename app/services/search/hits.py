"""Processing the hits of an engine: finding the answer to a sentence, and reordering by clicks and by meaning.

For sentences, the first hits are ordered by their position and by the cosine between the query and the best chunk of
each document. The position is used instead of the score because scores of different engines are not comparable, and
because mixing scores gained nothing on judged query sets (``docs/benchmarks.md``).
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log2
from operator import itemgetter
from typing import Any

from prometheus_client import Counter

from app.services.embedding.embedder import Embedder, EmbedderUnavailable
from app.services.embedding.stored_vectors import best_cosines
from backends.analysis.languages import recognize, stop_words
from backends.analysis.normalization import terms_of
from backends.base import Hit, SearchBackend, SearchResult, TakeHit
from backends.embedded.query.parser import parse_query
from backends.embedded.query.ranking import RANKING
from backends.errors import ReplyTooLarge
from backends.filters import And, OneOf
from backends.query import MATCH_ALL, SearchQuery


def is_sentence(text: str, language: str | None) -> bool:
    """Whether a query is a sentence: at least four words, including two stop words, without quotes or minus signs.

    In languages without stop words, no query is a sentence.

    Args:
        language: ISO 639-1 code of the site's language; ``None`` to detect the query's.
    """
    words = terms_of(text)
    if len(words) < RANKING.sentence_terms:
        return False
    stops = stop_words(language or recognize(text))
    if sum(word in stops for word in words) < RANKING.sentence_stop_words:
        return False
    parsed = parse_query(text)
    return not parsed.phrases and not parsed.excluded


MIN_SHARE = 0.7
"""Minimum share of the weight of the query's content words that an answer contains."""

MIN_WORDS, MIN_ALL_WORDS = 3, 2
"""Minimum number of the query's content words that an answer contains; the second one if it contains all of them."""


def asks(query: SearchQuery) -> bool:
    """Whether a search may have an answer: the site shows answers, and the request is for the first page of a sentence.

    A search with ``sort`` never has an answer.
    """
    return (
        query.answers
        and query.settings.answers
        and not query.offset
        and not query.sort
        and is_sentence(query.text, query.settings.language)
    )


class AnswerFinder:
    """Finds the answer to a query in its first hit while it passes the hits on.

    Only the first hit is searched for an answer: on two manuals, passages of the next four were wrong twice as often
    (``docs/benchmarks.md``).

    Args:
        take: Receives every hit.
    """

    def __init__(self, take: TakeHit):
        self._take = take
        self._is_first = True
        self.answer: dict[str, Any] | None = None
        """The answer as JSON; ``None`` if the first hit has no passage with enough of the query."""

    def take(self, hit: Hit) -> None:
        """Process the next hit."""
        self._take(hit)
        passage = hit.find_passage() if self._is_first and hit.find_passage is not None else None
        self._is_first = False
        if passage is None or passage.share < MIN_SHARE:
            return
        if passage.words >= (MIN_WORDS if passage.share < 1 else MIN_ALL_WORDS):
            url = hit.document.get("url", "")
            self.answer = {"text": passage.text, "id": hit.id, "url": url, "anchor": passage.anchor}


MAX_PLACES = 3
"""Maximum number of places by which a hit moves, up or down."""


class LearnedOrder:
    """Reorders the hits of one search while they arrive.

    The hits are sorted by place minus gain. A hit therefore passes another hit only if the difference of their gains is
    at least the distance between them. No hit moves by more than :data:`MAX_PLACES`, so a page does not depend on hits
    further away.

    Args:
        query: The search, with the gains.
        take: Receives the hits of the page.
    """

    def __init__(self, query: SearchQuery, take: TakeHit):
        self._gains = query.learned
        self._take = take
        self._first, self._end = query.offset, query.offset + query.limit
        self._place = max(0, self._first - MAX_PLACES)
        """Place of the next hit from the engine."""
        self._next_place = self._place
        """Place of the next hit that is passed on."""
        self._waiting: list[tuple[float, int, Hit]] = []
        limit = self._end + MAX_PLACES - self._place
        self.query = replace(query, offset=self._place, limit=limit, max_bytes=None)
        """The query for the engine."""

    def take(self, hit: Hit) -> None:
        """Process the next hit from the engine."""
        heapq.heappush(self._waiting, (self._place - self._gains.get(hit.id, 0.0), -self._place, hit))
        self._place += 1
        while self._waiting and self._waiting[0][0] < self._place - MAX_PLACES:  # No later hit can pass it.
            self._pass_on()

    def finish(self) -> None:
        """Pass on the remaining hits."""
        while self._waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        _, place, hit = heapq.heappop(self._waiting)
        new_place = self._next_place
        self._next_place += 1
        if self._first <= new_place < self._end:
            moved = -place - new_place
            if moved and hit.explanation is not None:
                clicks = {"moved_up": moved, "gain": self._gains.get(hit.id, 0.0)}
                hit = replace(hit, explanation={**hit.explanation, "clicks": clicks})
            self._take(hit)


MIXED_HITS = 100
"""Number of an engine's first hits that are also ordered by meaning. Later hits keep their places."""

MEANING_WEIGHT = 0.8
"""Weight of the cosine; the rest is the weight of the place."""

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
    """Orders the hits of sentences on sites with semantic search.

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
        languages = self._embedder.languages
        return languages is None or (query.settings.language or recognize(query.text)) in languages

    def search(
        self, engine: SearchBackend, index: str, site_id: int, query: SearchQuery, take: TakeHit
    ) -> SearchResult:
        """Run a search for which :meth:`is_for` is true.

        It searches twice: for the IDs of the first hits, and for the hits of the page.

        Args:
            take: Receives the hits of the page.
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
        except ReplyTooLarge:  # A page of hits may still be small enough.
            return by_words("reply_too_large")
        ids = list(explanations)
        pinned = set(query.pinned)
        ordered = [id for id in ids[:MIXED_HITS] if id not in pinned]
        places = {id: place for place, id in enumerate(ordered, 1)}
        stored = self._read_vectors(site_id, ordered, len(vector))
        vectors = {id: each for id, each in (stored or {}).items() if each and len(each) % len(vector) == 0}
        if not vectors:
            return by_words("database_unavailable" if stored is None else "no_vectors")
        cosine_by_id = dict(zip(vectors, best_cosines(vector, list(vectors.values())), strict=True))
        scores = mixed(ordered, cosine_by_id)
        first_hits = [*(id for id in ids if id in pinned), *scores]
        page_ids = [*first_hits, *(id for id in ids[MIXED_HITS:] if id not in pinned)][query.offset : end]
        MIXED_SEARCHES.labels("mixed").inc()
        for hit in _hits_of(engine, index, query, page_ids):
            if query.explain:
                hit = replace(hit, explanation=explanations[hit.id])
            if query.explain and hit.id in scores:
                meaning = {
                    "place_by_words": places[hit.id], "cosine": cosine_by_id.get(hit.id), "score": scores[hit.id],
                }  # fmt: skip
                hit = replace(hit, explanation={**(hit.explanation or {}), "meaning": meaning})
            take(hit)
        return replace(result, mixed=True)


def mixed(ids: Sequence[str], cosine: Mapping[str, float]) -> dict[str, float]:
    """Order documents by words and meaning, and return them with their scores. The first places change least.

    The score is ``(1 - w) / (1 + log2(place)) + w * cosine``, with places from 1. A document without a vector gets the
    mean cosine of the other documents, since its words match.

    Args:
        ids: Document IDs, as ranked by words.
        cosine: The cosines of the documents with a vector; at least one.
    """
    mean = sum(cosine.values()) / len(cosine)

    def score(place: int, id: str) -> float:
        return (1 - MEANING_WEIGHT) / (1 + log2(place)) + MEANING_WEIGHT * cosine.get(id, mean)

    scored = [(id, score(place, id)) for place, id in enumerate(ids, 1)]
    return dict(sorted(scored, key=itemgetter(1), reverse=True))


def _hits_of(engine: SearchBackend, index: str, query: SearchQuery, ids: Sequence[str]) -> list[Hit]:
    """Return a search's hits with the given IDs, in this order, omitting documents that were deleted meanwhile."""
    if not ids:
        return []
    among = OneOf("id", tuple(ids))
    condition = among if query.filter is None else And((query.filter, among))
    hits: dict[str, Hit] = {}

    def store(hit: Hit) -> None:
        hits[hit.id] = hit

    page_query = replace(query, offset=0, limit=len(ids), filter=condition, facets=(), distinct="", explain=False)
    engine.search(index, page_query, store)
    return [hits[id] for id in ids if id in hits]
