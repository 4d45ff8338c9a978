"""The chart of searches a day, as geometry for an inline SVG and as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, log10

from app.pages.analytics.figures import percent
from app.services.analytics.query_reports import QueryDayCount
from app.services.analytics.reports import DayCount
from app.wording import counted, day_text, number

HEIGHT = 100
DAY_WIDTH = 10
GAP = 2
MOST_LABELS = 7
FEWER_LABELS = 5
"""Labels of the days, where there is no room for one each."""

Day = DayCount | QueryDayCount


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar: searches that found something, and below them those that found nothing.

    Attributes:
        text: What it shows, in words.
        x, found_y, found_height, empty_y, empty_height: In units of the chart.
    """

    day: Day
    text: str
    x: int
    found_y: float
    found_height: float
    empty_y: float
    empty_height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of the axis of days.

    Attributes:
        x: Where its day begins, in units of the chart.
    """

    date: date
    text: str
    x: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart of a series.

    Attributes:
        width, height: Of its coordinates.
        top: The number at its upper edge.
        levels: Numbers that the axis of searches shows, from the top; evenly spaced.
        ticks: Labels of the axis of days, evenly spaced, the first at the left edge.
        summary: What it shows, as a sentence.
        has_clicks: Whether its days tell clicks.
    """

    bars: Sequence[Bar]
    width: int
    height: int
    top: int
    levels: Sequence[int]
    ticks: Sequence[Tick]
    summary: str
    has_clicks: bool


def draw_chart(series: Sequence[Day]) -> Chart:
    """The chart of a series of days, oldest first."""
    top = nice_ceiling(max((day.searches for day in series), default=0))
    bars = []
    for position, day in enumerate(series):
        empty = HEIGHT * day.zero_results / top
        found = HEIGHT * (day.searches - day.zero_results) / top
        bars.append(
            Bar(
                day=day,
                text=_text(day),
                x=position * DAY_WIDTH + GAP // 2,
                found_y=round(HEIGHT - found - empty, 2),
                found_height=round(found, 2),
                empty_y=round(HEIGHT - empty, 2),
                empty_height=round(empty, 2),
            )
        )
    return Chart(
        bars=bars,
        width=len(series) * DAY_WIDTH,
        height=HEIGHT,
        top=top,
        levels=(top, 0) if top % 2 else (top, top // 2, 0),
        ticks=_ticks(series),
        summary=_summary(series),
        has_clicks=any(isinstance(day, QueryDayCount) for day in series),
    )


@dataclass(frozen=True, slots=True)
class RateLine:
    """A rate of each day, as a line.

    Attributes:
        name: Class of the line.
        path: Its geometry; days without searches leave gaps.
        summary: What it shows, as a sentence.
    """

    name: str
    label: str
    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class RateChart:
    """A line chart of rates from 0 to 1; its top is the least round number that is above all of them.

    Attributes:
        levels: Rates that the axis shows, from the top.
    """

    lines: Sequence[RateLine]
    width: int
    height: int
    levels: Sequence[float]
    ticks: Sequence[Tick]
    days: Sequence[DayCount]


def draw_rates(series: Sequence[DayCount], *, has_clicks: bool) -> RateChart:
    """The chart of the rates of a series of days, oldest first."""
    rates = {"empty": ("Without results", [day.zero_result_rate for day in series])}
    if has_clicks:
        rates["clicked"] = ("With a click", [day.click_through_rate for day in series])
    most = max((rate for _, values in rates.values() for rate in values if rate is not None), default=0.0)
    top = next(level for level in _TOPS if most <= level)
    return RateChart(
        lines=[
            RateLine(name, label, _path(values, top), _told(label, values)) for name, (label, values) in rates.items()
        ],
        width=len(series) * DAY_WIDTH,
        height=HEIGHT,
        levels=(top, top / 2, 0.0),
        ticks=_ticks(series),
        days=series,
    )


_TOPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def _path(values: Sequence[float | None], top: float) -> str:
    """A line through the middles of days; a day between days without searches is a dash as wide as itself."""
    parts: list[str] = []
    for position, value in enumerate(values):
        if value is None:
            continue
        x, y = position * DAY_WIDTH + DAY_WIDTH // 2, round(HEIGHT * (1 - value / top), 2)
        goes_on = position > 0 and values[position - 1] is not None
        alone = not goes_on and (position + 1 == len(values) or values[position + 1] is None)
        parts.append(
            f"M{x - DAY_WIDTH // 2} {y}H{x + DAY_WIDTH // 2}" if alone else f"{'L' if goes_on else 'M'}{x} {y}"
        )
    return "".join(parts)


def _told(label: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return f"{label}: no searches."
    return f"{label}: {percent(min(known))} to {percent(max(known))} of a day’s searches."


def _ticks(series: Sequence[Day]) -> list[Tick]:
    step = 1 if len(series) <= MOST_LABELS else ceil(len(series) / FEWER_LABELS)
    return [
        Tick(series[position].date, f"{series[position].date.day} {series[position].date:%b}", position * DAY_WIDTH)
        for position in range(0, len(series), step)
    ]


def nice_ceiling(most: int) -> int:
    """The next of 4, 5, 6, 8, 10, 20, 30, 40, 50, … that is not below ``most``: it reads well as the top of an axis."""
    if most <= 4:
        return 4
    magnitude: int = 10 ** int(log10(most))
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        if most <= step * magnitude:
            return step * magnitude
    return ceil(most / magnitude) * magnitude


def _text(day: Day) -> str:
    clicks = f", {counted(day.clicks, 'click')}" if isinstance(day, QueryDayCount) else ""
    return (
        f"{day_text(day.date)}: {counted(day.searches, 'search')}, {number(day.zero_results)} without results{clicks}"
    )


def _summary(series: Sequence[Day]) -> str:
    total = sum(day.searches for day in series)
    if total == 0:
        return f"No searches in the last {counted(len(series), 'day')}."
    busiest = max(series, key=lambda day: day.searches)
    empty = sum(day.zero_results for day in series)
    return (
        f"{counted(total, 'search')} in {counted(len(series), 'day')}, {number(empty)} of them without results; "
        f"the busiest day was {day_text(busiest.date)} with {number(busiest.searches)}."
    )
