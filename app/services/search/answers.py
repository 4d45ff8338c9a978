"""Answers: the passage of the first hit that answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backends.analysis.sentence_queries import is_sentence
from backends.base import Hit
from backends.query import SearchQuery

MIN_SHARE = 0.7
"""Minimum share of the weight of the query's content words that an answer contains."""

MIN_WORDS, MIN_ALL_WORDS = 3, 2
"""Minimum number of the query's content words that an answer contains; the second one if it contains all of them."""


def may_have_answer(query: SearchQuery) -> bool:
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


def find_answer(hits: Sequence[Hit]) -> dict[str, Any] | None:
    """Return the answer as JSON; ``None`` if the first hit has no passage with enough words of the query.

    Only the first hit is searched for an answer: on two manuals, passages of the next four were wrong twice as often
    (``docs/benchmarks.md``).
    """
    passage = hits[0].find_passage() if hits and hits[0].find_passage is not None else None
    if passage is None or passage.share < MIN_SHARE:
        return None
    if passage.words < (MIN_WORDS if passage.share < 1 else MIN_ALL_WORDS):
        return None
    return {"text": passage.text, "id": hits[0].id, "url": passage.url, "anchor": passage.anchor}
