"""Queries that are sentences, such as questions, and the passage of a site's documents that answers them."""

from __future__ import annotations

from typing import Any

from backends.base import Hit, TakeHit
from backends.embedded.analysis.languages import recognise, stop_words
from backends.embedded.analysis.normalization import terms_of
from backends.embedded.query.parser import parse_query
from backends.embedded.query.ranking import RANKING
from backends.query import SearchQuery
from backends.sections import Passage


def is_sentence(text: str, language: str | None) -> bool:
    """Whether a query is a sentence: at least four words, including two stop words, without quotes or minus signs.

    In languages without stop words, no query is a sentence.

    Args:
        language: ISO 639-1 code of the site's language; ``None`` to detect the query's.
    """
    words = terms_of(text)
    if len(words) < RANKING.sentence_terms:
        return False
    stops = stop_words(language or recognise(text))
    if sum(word in stops for word in words) < RANKING.sentence_stop_words:
        return False
    parsed = parse_query(text)
    return not parsed.phrases and not parsed.excluded


ANSWERING_HITS = 5
"""Number of first hits whose passages are searched for the answer."""

MIN_SHARE = 0.7
"""Minimum share of the query's distinct content words that an answer contains."""

MIN_WORDS = 2
"""Minimum number of the query's content words that an answer contains."""


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
    """Finds the answer to a query among its hits while it passes them on.

    Args:
        take: Receives every hit.
    """

    def __init__(self, take: TakeHit):
        self._take = take
        self._hit_count = 0
        self._best: tuple[Passage, Hit] | None = None

    def take(self, hit: Hit) -> None:
        """Process the next hit."""
        self._take(hit)
        self._hit_count += 1
        if self._hit_count > ANSWERING_HITS or hit.find_passage is None:
            return
        passage = hit.find_passage()
        if passage is None or passage.words < MIN_WORDS or passage.share < MIN_SHARE:
            return
        if self._best is None or passage.share > self._best[0].share:
            self._best = passage, hit

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer as JSON; ``None`` if no passage contains enough of the query."""
        if self._best is None:
            return None
        passage, hit = self._best
        return {"text": passage.text, "id": hit.id, "url": hit.document.get("url", ""), "anchor": passage.anchor}
