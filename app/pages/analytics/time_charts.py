"""Charts of response times by day and of searches by hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.pages.analytics.charts import (
    DAY_WIDTH,
    GAP,
    HEIGHT,
    WEEK,
    Chart,
    Line,
    LineChart,
    Tick,
    draw_chart,
    draw_lines,
    levels_of,
    line_path,
    nice_ceiling,
    since_first_search,
    stack_bars,
)
from app.services.analytics.reports import Analytics
from app.services.analytics.search_times import HOURS, MAX_SEARCHES, DayTimes, HourCount, count_by_hour
from app.wording import counted, day_text, number


def draw_searches(
    session: Session, account_id: int, analytics: Analytics, *, site_id: int | None = None, channel: str | None = None
) -> Chart:
    """Create the chart of a period's searches: by hour in the first week with searches, otherwise by day.

    In the first week, a chart by day would be only a few bars at the edge.
    """
    days = since_first_search(analytics.series)
    is_first_week = 0 < len(days) < WEEK and not analytics.previous.total_searches
    if is_first_week and analytics.total_searches <= MAX_SEARCHES:
        hours = count_by_hour(session, account_id, days, site_id=site_id, channel=channel)
        if any(hour.searches for hour in hours):
            return draw_first_hours(hours)
    return draw_chart(analytics.series, analytics.previous_series)


def draw_first_hours(hours: Sequence[HourCount]) -> Chart:
    """Create the chart of all hours of the first days with searches, oldest first."""
    counts = [(hour.searches - hour.zero_results, hour.zero_results) for hour in hours]
    busiest = max(hours, key=lambda hour: hour.searches)
    searches, empty = (sum(getattr(hour, kind) for hour in hours) for kind in ("searches", "zero_results"))
    summary = (
        f"{counted(searches, 'search')} in {counted(len(hours) // HOURS, 'day')}, {number(empty)} of them without "
        f"results; the busiest hour began on {day_text(busiest.date)} at {busiest.hour:02}:00 UTC, with "
        f"{number(busiest.searches)}."
    )
    chart = stack_bars(hours, counts, nice_ceiling(busiest.searches), summary)
    return replace(chart, unit="hour", ticks=_hour_ticks(hours))


def _hour_ticks(hours: Sequence[HourCount]) -> list[Tick]:
    """Label every sixth hour of a single day, or the beginning of each day."""
    is_one_day = len(hours) == HOURS
    step = HOURS // 4 if is_one_day else HOURS
    return [
        Tick(
            hour.date,
            f"{hour.hour:02}:00" if is_one_day else f"{hour.date.day} {hour.date:%b}",
            index * DAY_WIDTH,
        )
        for index, hour in enumerate(hours)
        if index % step == 0
    ]


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
