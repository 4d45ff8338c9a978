"""The passage of a site's documents that answers a question, by its words alone."""

from __future__ import annotations

from typing import Any

from app.services.search.sentences import is_sentence
from backends.base import Hit, TakeHit
from backends.query import SearchQuery
from backends.sections import Passage

ANSWERING_HITS = 5
"""First hits among whose passages the answer is looked for."""

LEAST_SHARE = 0.7
"""Least share of the query's words that mean something, each counted once, that an answer has."""

LEAST_WORDS = 2
"""Words of the query that mean something and stand in an answer, at least."""


def asks(query: SearchQuery) -> bool:
    """Tell whether a search may have an answer: the site shows them, and it is the first page of a sentence's hits.

    With an order of the caller's own there is none.
    """
    return (
        query.answers
        and query.settings.answers
        and not query.offset
        and not query.sort
        and is_sentence(query.text, query.settings.language)
    )


class AnswerFinder:
    """Looks for the answer among hits as they are shown.

    Args:
        take: Is given every hit.
    """

    def __init__(self, take: TakeHit):
        self._take = take
        self._seen = 0
        self._best: tuple[Passage, Hit] | None = None

    def take(self, hit: Hit) -> None:
        """Take the next hit that is shown."""
        self._take(hit)
        self._seen += 1
        if self._seen > ANSWERING_HITS or hit.find_passage is None:
            return
        passage = hit.find_passage()
        if passage is None or passage.words < LEAST_WORDS or passage.share < LEAST_SHARE:
            return
        if self._best is None or passage.share > self._best[0].share:
            self._best = passage, hit

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer as JSON; ``None`` if no passage has enough of the query."""
        if self._best is None:
            return None
        passage, hit = self._best
        return {"text": passage.text, "id": hit.id, "url": hit.document.get("url", ""), "anchor": passage.anchor}
