"""Charts of response times by day and of searches by hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.pages.analytics.figures import (
    DAY_WIDTH,
    GAP,
    HEIGHT,
    Line,
    LineChart,
    draw_lines,
    levels_of,
    line_path,
    nice_ceiling,
)
from app.services.analytics.search_times import DayTimes
from app.wording import number


def draw_times(days: Sequence[DayTimes]) -> LineChart | None:
    """Create the chart of response times, oldest day first; ``None`` if none was measured."""
    measured = [day for day in days if day.p99 is not None]
    if not measured:
        return None
    top = nice_ceiling(max(day.p99 or 0 for day in measured))
    newest = measured[-1]
    lines = [
        Line(name, f"{name} (ms)", line_path([getattr(day, name) for day in days], top))
        for name in ("p50", "p95", "p99")
    ]
    return draw_lines(
        days,
        lines,
        levels_of(top),
        f"On the last day with searches, half of them took at most {number(newest.p50 or 0)} ms (p50), 95% at most "
        f"{number(newest.p95 or 0)} ms (p95), and 99% at most {number(newest.p99 or 0)} ms (p99).",
    )


@dataclass(frozen=True, slots=True)
class HourBar:
    """The searches in one hour of the day. ``x``, ``y``, and ``height`` are chart units."""

    hour: int
    searches: int
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class HourChart:
    """A bar chart of searches by hour of the day.

    Attributes:
        levels: Labels of the value axis, from the top.
        summary: The chart in one sentence.
    """

    bars: Sequence[HourBar]
    width: int
    height: int
    levels: Sequence[int]
    summary: str


def draw_hours(searches: Sequence[int]) -> HourChart | None:
    """Create the chart of searches by hour of the day; ``None`` without searches."""
    if not any(searches):
        return None
    top = nice_ceiling(max(searches))
    heights = [round(HEIGHT * count / top, 2) for count in searches]
    busiest = max(range(len(searches)), key=searches.__getitem__)
    return HourChart(
        [
            HourBar(
                hour,
                count,
                hour * DAY_WIDTH + GAP // 2,
                round(HEIGHT - height, 2),
                height,
            )
            for hour, (count, height) in enumerate(zip(searches, heights, strict=True))
        ],
        len(searches) * DAY_WIDTH,
        HEIGHT,
        levels_of(top),
        f"Most searches come between {busiest:02}:00 and {busiest:02}:59 UTC.",
    )
