"""The chart of searches a day, as geometry for an inline SVG and as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

from app.services.analytics.reports import DayCount
from app.wording import counted, day_text, number

HEIGHT = 100
DAY_WIDTH = 10
GAP = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar: searches that found something, and below them those that found nothing.

    Attributes:
        x, found_y, found_height, empty_y, empty_height: In units of the chart.
    """

    day: DayCount
    x: int
    found_y: float
    found_height: float
    empty_y: float
    empty_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart of a series.

    Attributes:
        width, height: Of its coordinates.
        top: The number at its upper edge.
        summary: What it shows, as a sentence.
    """

    bars: Sequence[Bar]
    width: int
    height: int
    top: int
    summary: str


def draw_chart(series: Sequence[DayCount]) -> Chart:
    """The chart of a series of days, oldest first."""
    top = nice_ceiling(max((day.searches for day in series), default=0))
    bars = []
    for position, day in enumerate(series):
        empty = HEIGHT * day.zero_results / top
        found = HEIGHT * (day.searches - day.zero_results) / top
        bars.append(
            Bar(
                day=day,
                x=position * DAY_WIDTH + GAP // 2,
                found_y=round(HEIGHT - found - empty, 2),
                found_height=round(found, 2),
                empty_y=round(HEIGHT - empty, 2),
                empty_height=round(empty, 2),
            )
        )
    return Chart(bars, len(series) * DAY_WIDTH, HEIGHT, top, _summary(series))


def nice_ceiling(most: int) -> int:
    """The next of 4, 5, 6, 8, 10, 20, 30, 40, 50, … that is not below ``most``: it reads well as the top of an axis."""
    if most <= 4:
        return 4
    magnitude: int = 10 ** int(log10(most))
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        if most <= step * magnitude:
            return step * magnitude
    return ceil(most / magnitude) * magnitude


def _summary(series: Sequence[DayCount]) -> str:
    total = sum(day.searches for day in series)
    if total == 0:
        return f"No searches in the last {counted(len(series), 'day')}."
    busiest = max(series, key=lambda day: day.searches)
    empty = sum(day.zero_results for day in series)
    return (
        f"{counted(total, 'search')} in {counted(len(series), 'day')}, {number(empty)} of them without results; "
        f"the busiest day was {day_text(busiest.date)} with {number(busiest.searches)}."
    )
