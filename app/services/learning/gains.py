"""Gains of documents: places that one moves up for a query, by its clicks against those that its place leads to expect.

Whoever sees a list clicks what stands first, good or not. So the clicks of a document are compared with those that its
places would bring any document: of all clicks on results of the query, the part that is usual for these places.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

MOST_PLACES = 3.0
"""Most places by which a document moves up."""
LEAST_VISITORS = 5
"""Visitors who must have clicked a result of the query in :data:`VISITOR_DAYS` days."""
VISITOR_DAYS = 30
HALF_LIFE_DAYS = 30
"""Days after which a click counts half."""

_PLACES = 20
"""Places told apart; those behind count as the last of them."""
_PRIOR_CLICKS = 100.0
"""Clicks after which a site's own clicks weigh as much as the usual shares of places."""
_SMOOTHING = 5.0
"""Clicks, added to those counted and to those expected."""
_RATIO_OF_A_PLACE = 1.25
"""How many times as good a document must be to pass its neighbour."""


@dataclass(frozen=True, slots=True)
class VisitorClick:
    """A visitor's clicks on one document among the results of one query, which count as one.

    Attributes:
        position: The first place at which it was clicked, from 1; ``None``: not told.
        age_days: Days since the last of them.
    """

    document_id: str
    visitor: int
    position: int | None
    age_days: float


class PlaceShares:
    """Shares of the clicks that the places of a list get.

    The further down, the less: where a site has it the other way round, its results are to blame rather than the place.

    Args:
        clicks: Number of the site's clicks by position, from 1.
    """

    def __init__(self, clicks: Mapping[int, float]):
        usual = [1 / place for place in range(1, _PLACES + 1)]
        counted = [0.0] * _PLACES
        for position, number in clicks.items():
            counted[min(position, _PLACES) - 1] += number
        total = sum(counted) + _PRIOR_CLICKS
        shares = [(own + _PRIOR_CLICKS * share / sum(usual)) / total for own, share in zip(counted, usual, strict=True)]
        self._shares = list(accumulate(reversed(shares), max))[::-1]

    def of(self, position: int | None) -> float:
        """The share of a place; of the first, which expects most, where none was told."""
        return self._shares[min(position or 1, _PLACES) - 1]


def find_gains(clicks: Iterable[VisitorClick], shares: PlaceShares) -> dict[str, float]:
    """Places that documents move up for one query, from more than 0 to :data:`MOST_PLACES`, by id.

    A document passes its neighbour if its gain is greater by more than 1.

    Args:
        clicks: All of the query, each visitor and document once.
    """
    clicks = list(clicks)
    if len({click.visitor for click in clicks if click.age_days <= VISITOR_DAYS}) < LEAST_VISITORS:
        return {}
    counted: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    for click in clicks:
        weight = math.exp2(-click.age_days / HALF_LIFE_DAYS)
        counted[click.document_id] += weight
        expected[click.document_id] += weight * shares.of(click.position)
    total = sum(counted.values())
    found: dict[str, float] = {}
    for document_id, number in counted.items():
        usual = total * expected[document_id] / number
        ratio = (number + _SMOOTHING) / (usual + _SMOOTHING)
        gain = round(min(MOST_PLACES, math.log(ratio, _RATIO_OF_A_PLACE)), 2)
        if gain > 0:
            found[document_id] = gain
    return found
