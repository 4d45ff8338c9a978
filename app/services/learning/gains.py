"""Gains of documents: places that one moves up for a query, by its clicks against those that its place leads to expect.

Whoever sees a list clicks what stands first, good or not. So the clicks of a document are compared with those that its
places would bring any document: of all clicks on results of the query, the part that is usual for these places.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_PLACES = 3.0
"""Most places by which a document moves up."""
LEAST_VISITORS = 5
"""Visitors who must have clicked a result of the query in :data:`VISITOR_DAYS` days."""
VISITOR_DAYS = 30
HALF_LIFE_DAYS = 30
"""Days after which a click counts half."""

_STEEPNESS = 0.7
_USUAL_PLACES = sum(place**-_STEEPNESS for place in range(1, 11))
_SMOOTHING = 5.0
"""Clicks, added to those counted and to those expected."""
_RATIO_OF_A_PLACE = 1.25
"""How many times as good a document must be to pass its neighbour."""


@dataclass(frozen=True, slots=True)
class VisitorClick:
    """A visitor's clicks on one document among the results of one query, which count as one.

    Attributes:
        visitor: A number for all visitors of one network.
        position: The first place at which it was clicked, from 1, as it was told; ``None``: not told, taken as 1.
        age_days: Days since the last of them.
    """

    document_id: str
    visitor: int
    position: int | None
    age_days: float


def place_share(position: int) -> float:
    """The part of the clicks that a place gets if all that is listed is equally good.

    It falls more slowly than most lists of results have it: so a better page must be clearly better.
    """
    share: float = position**-_STEEPNESS / _USUAL_PLACES
    return share


def find_gains(clicks: Iterable[VisitorClick], places: Mapping[str, int]) -> dict[str, float]:
    """Places that documents move up for one query, from more than 0 to :data:`MOST_PLACES`, by id.

    A document passes its neighbour if its gain is greater by 1 or more. Those that are not much worse than the best
    are told apart, whatever the others are.

    Whoever reports a click can make up its position, and so what it is worth: a click on the last of many results says
    more than one on the first. So it counts at most as one at the last place where visitors see the document, and
    clicks on what they do not see count for nothing.

    Args:
        clicks: All of the query, each visitor and document once.
        places: The documents that may move, with their places without any gains, from 1.
    """
    clicks = [click for click in clicks if click.document_id in places]
    if len({click.visitor for click in clicks if click.age_days <= VISITOR_DAYS}) < LEAST_VISITORS:
        return {}
    counted: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    for click in clicks:
        weight = math.exp2(-click.age_days / HALF_LIFE_DAYS)
        counted[click.document_id] += weight
        last = places[click.document_id] + int(MOST_PLACES)
        expected[click.document_id] += weight * place_share(min(click.position or 1, last))
    total = sum(counted.values())
    better: dict[str, float] = {}
    for document_id, number in counted.items():
        usual = total * expected[document_id] / number
        better[document_id] = math.log((number + _SMOOTHING) / (usual + _SMOOTHING), _RATIO_OF_A_PLACE)
    least = max(0.0, max(better.values()) - MOST_PLACES)
    gains = {document_id: round(each - least, 2) for document_id, each in better.items()}
    return {document_id: gain for document_id, gain in gains.items() if gain > 0}
