"""The order of hits by what a site learned from clicks, for every engine: a page is made of a few more hits."""

from __future__ import annotations

import heapq
from dataclasses import replace

from backends.base import Hit, TakeHit
from backends.query import SearchQuery

MOST_PLACES = 3
"""Most places by which a hit moves, up or down."""


class LearnedOrder:
    """Reorders the hits of one search as they come.

    Each hit is ordered by its place less its gain. So one passes another only if its gain is greater by at least the
    places between, and none moves by more than :data:`MOST_PLACES`: a page depends on no hit further away.

    Args:
        query: The search; its settings have the gains.
        take: Is given the hits of its page.
    """

    def __init__(self, query: SearchQuery, take: TakeHit):
        self._gains = query.learned
        self._take = take
        self._first, self._end = query.offset, query.offset + query.limit
        self._place = max(0, self._first - MOST_PLACES)
        """That of the next hit that comes."""
        self._shown_at = self._place
        """Where the next hit that is passed on stands."""
        self._waiting: list[tuple[float, int, Hit]] = []
        limit = self._end + MOST_PLACES - self._place
        self.query = replace(query, offset=self._place, limit=limit, max_bytes=None)
        """What to ask the engine for."""

    def take(self, hit: Hit) -> None:
        """Take the next hit of the engine's."""
        heapq.heappush(self._waiting, (self._place - self._gains.get(hit.id, 0.0), -self._place, hit))
        self._place += 1
        while self._waiting and self._waiting[0][0] < self._place - MOST_PLACES:  # No later hit comes before it.
            self._pass_on()

    def finish(self) -> None:
        """Pass on the hits that waited for more."""
        while self._waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        _, place, hit = heapq.heappop(self._waiting)
        shown_at = self._shown_at
        self._shown_at += 1
        if self._first <= shown_at < self._end:
            moved = -place - shown_at
            if moved and hit.explanation is not None:
                told = {"moved_up": moved, "gain": self._gains.get(hit.id, 0.0)}
                hit = replace(hit, explanation={**hit.explanation, "clicks": told})
            self._take(hit)
