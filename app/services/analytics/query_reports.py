"""Analytics of one query: how often it was searched, and what was clicked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class QueryDayCount:
    """One UTC day of the series."""

    date: date
    searches: int
    zero_results: int
    clicks: int


@dataclass(frozen=True, slots=True)
class ClickedDocument:
    """A document that was clicked among the results.

    Attributes:
        title: As it is now; ``None`` if it is gone.
        average_position: Mean of the positions that were told, from 1; ``None`` if none was.
    """

    id: str
    title: str | None
    clicks: int
    average_position: float | None


@dataclass(frozen=True, slots=True)
class QueryAnalytics:
    """What became of one query at one site in a window of UTC calendar days.

    Attributes:
        query: In normal form.
        searches: How often it was searched, keystrokes merged.
        click_through_rate: Searches with a click, from 0 to 1; ``None`` without searches.
        average_click_position: From 1; ``None`` if no click told its position.
        series: One entry per day, oldest first.
        clicked_documents: By clicks, then id.
    """

    query: str
    searches: int
    clicks: int
    click_through_rate: float | None
    average_click_position: float | None
    series: Sequence[QueryDayCount]
    clicked_documents: Sequence[ClickedDocument]
