"""Scores of a server's hits that can be compared with the hits of other indexes and engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from backends.base import Hit, Level, Score, with_scores
from backends.query import SearchQuery

PERFECT: Final = 8.0
"""Share of a perfect match: about what the embedded engine gives to a page with all words in its title."""


def scored(
    hits: tuple[Hit, ...],
    engine_hits: Sequence[Mapping[str, Any]],
    query: SearchQuery,
    quality: Callable[[Mapping[str, Any]], float],
) -> tuple[Hit, ...]:
    """Return hits with scores if the query is ``scored``.

    Args:
        engine_hits: The server's hits, in the same order.
        quality: Returns how well one of them matches, from 0 to 1 (perfectly).
    """
    if not query.scored:
        return hits
    pinned = frozenset(query.pinned)
    levels = [Level.PINNED if hit.id in pinned else Level.WORDS for hit in hits]
    scores = [Score(level, PERFECT * quality(each)) for level, each in zip(levels, engine_hits, strict=True)]
    return with_scores(hits, scores)
