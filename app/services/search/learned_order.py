"""The order of hits that the site learned from clicks.

The hits are sorted by position minus gain. A hit therefore passes another hit only if the difference of their gains is
at least their distance. No hit moves by more than :data:`MAX_POSITIONS_MOVED`, so a page does not depend on hits
farther away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backends.base import Hit
from backends.query import SearchQuery
from schemas.validation.documents import MAX_DOCUMENT_BYTES

MAX_POSITIONS_MOVED = 3
"""Maximum number of positions by which a hit moves, up or down."""

MAX_MOVED_BYTES = 2 * MAX_POSITIONS_MOVED * MAX_DOCUMENT_BYTES
"""Size of the hits, in bytes, that may move onto the page or off it."""


def widen_page(query: SearchQuery) -> SearchQuery:
    """Return the query for the page and the hits around it that may move onto it."""
    first = max(0, query.offset - MAX_POSITIONS_MOVED)
    max_bytes = None if query.max_bytes is None else query.max_bytes + MAX_MOVED_BYTES
    return replace(
        query, offset=first, limit=query.offset + query.limit + MAX_POSITIONS_MOVED - first, max_bytes=max_bytes
    )


def learned_page(query: SearchQuery, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the page of a query in the learned order.

    Args:
        hits: The hits of :func:`widen_page`.
    """
    gains = query.learned
    first = max(0, query.offset - MAX_POSITIONS_MOVED)
    ordered = sorted(enumerate(hits, first), key=lambda item: (item[0] - gains.get(item[1].id, 0.0), -item[0]))
    page = list(enumerate(ordered, first))[query.offset - first :][: query.limit]
    return tuple([_explained(hit, position - new_position, gains) for new_position, (position, hit) in page])


def _explained(hit: Hit, moved_up: int, gains: Mapping[str, float]) -> Hit:
    if not moved_up or hit.explanation is None:
        return hit
    return replace(
        hit, explanation={**hit.explanation, "clicks": {"moved_up": moved_up, "gain": gains.get(hit.id, 0.0)}}
    )
