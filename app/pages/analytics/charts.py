"""Charts for analytics, as coordinates for inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import ceil, log10
from typing import Protocol

from app.services.analytics.query_reports import QueryDayCount
from app.services.analytics.reports import DayCount
from app.wording import counted, day_text, number

HEIGHT = 100
DAY_WIDTH = 10
GAP = 2
WEEK = 7
MAX_LABELS = 7
FEWER_LABELS = 5
"""Maximum number of day labels if there are too many days to label each."""

Day = DayCount | QueryDayCount


class Dated(Protocol):
    """The values of a day."""

    @property
    def date(self) -> date: ...


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar of two stacked parts, named after their colors: ``found`` above, ``empty`` below.

    Attributes:
        x, found_y, found_height, empty_y, empty_height: Chart units.
    """

    day: Dated
    x: int
    found_y: float
    found_height: float
    empty_y: float
    empty_height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of the day axis.

    Attributes:
        x: Start of the day, in chart units.
    """

    date: date
    text: str
    x: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart of a series.

    Attributes:
        width, height: Size in chart units.
        top: The value at the upper edge.
        levels: Evenly spaced labels of the value axis, from the top.
        ticks: Evenly spaced labels of the day axis, starting at the left edge.
        summary: The chart in one sentence.
        has_clicks: Whether the days include click counts.
        unit: ``day``, or ``hour`` if each bar shows an hour.
        previous_path: SVG path of the preceding period's searches; empty for none.
        previous_total: Number of searches in the preceding period.
    """

    bars: Sequence[Bar]
    width: int
    height: int
    top: int
    levels: Sequence[int]
    ticks: Sequence[Tick]
    summary: str
    has_clicks: bool = False
    unit: str = "day"
    previous_path: str = ""
    previous_total: int = 0


def since_first_search(series: Sequence[DayCount]) -> Sequence[DayCount]:
    """Return the days of a series from the first one with searches; empty if there is none."""
    first = next((index for index, day in enumerate(series) if day.searches), len(series))
    return series[first:]


def percent(rate: float) -> str:
    """Format a rate from 0 to 1 as a percentage, such as ``12.5%``."""
    return f"{100 * rate:.1f}".removesuffix(".0") + "%"


def draw_chart(series: Sequence[Day], previous: Sequence[Day] = ()) -> Chart:
    """Create the chart for a series of days, oldest first.

    Args:
        previous: The days of the preceding period, drawn as a line if it had searches and consists of whole weeks, so
            that the weekdays match.
    """
    line = previous if len(previous) % WEEK == 0 and any(day.searches for day in previous) else ()
    top = nice_ceiling(max((day.searches for day in (*series, *line)), default=0))
    previous_total = sum(day.searches for day in previous)
    counts = [(day.searches - day.zero_results, day.zero_results) for day in series]
    return replace(
        stack_bars(series, counts, top, _summary(series)),
        has_clicks=any(isinstance(day, QueryDayCount) for day in series),
        previous_path=line_path([day.searches for day in line], top),
        previous_total=previous_total,
    )


def stack_bars(days: Sequence[Dated], counts: Sequence[tuple[int, int]], top: int, summary: str) -> Chart:
    """Create a chart of days with two counts each, oldest day first.

    Args:
        counts: The upper and the lower part of each day's bar.
        top: The value at the upper edge.
        summary: The chart in one sentence.
    """
    bars = []
    for position, (day, (upper_count, lower_count)) in enumerate(zip(days, counts, strict=True)):
        upper, lower = HEIGHT * upper_count / top, HEIGHT * lower_count / top
        bars.append(
            Bar(
                day=day,
                x=position * DAY_WIDTH + GAP // 2,
                found_y=round(HEIGHT - upper - lower, 2),
                found_height=round(upper, 2),
                empty_y=round(HEIGHT - lower, 2),
                empty_height=round(lower, 2),
            )
        )
    return Chart(bars, len(days) * DAY_WIDTH, HEIGHT, top, levels_of(top), ticks_of(days), summary)


@dataclass(frozen=True, slots=True)
class Line:
    """A value of each day as a line.

    Attributes:
        name: CSS class of the line.
        path: SVG path, with gaps at days without searches.
        summary: The line in one sentence; empty if the chart's summary covers it.
    """

    name: str
    label: str
    path: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class LineChart:
    """A line chart of days, oldest first.

    Attributes:
        width, height: Size in chart units.
        levels: Labels of the value axis, from the top.
        summary: The chart in one sentence; empty if each line has a summary.
    """

    lines: Sequence[Line]
    days: Sequence[Dated]
    width: int
    height: int
    levels: Sequence[float]
    ticks: Sequence[Tick]
    summary: str


def draw_lines(days: Sequence[Dated], lines: Sequence[Line], levels: Sequence[float], summary: str = "") -> LineChart:
    """Create a line chart."""
    return LineChart(lines, days, len(days) * DAY_WIDTH, HEIGHT, levels, ticks_of(days), summary)


def draw_rates(series: Sequence[DayCount], *, has_clicks: bool) -> LineChart:
    """Create the chart of daily rates, oldest day first. Its axis ends at a round number that is at least the highest
    rate.
    """
    rates = {"empty": ("Without results", [day.zero_result_rate for day in series])}
    if has_clicks:
        rates["clicked"] = ("With a click", [day.click_through_rate for day in series])
    highest = max((rate for _, values in rates.values() for rate in values if rate is not None), default=0.0)
    top = next(level for level in _TOPS if highest <= level)
    lines = [
        Line(name, label, line_path(values, top), _rate_sentence(label, values))
        for name, (label, values) in rates.items()
    ]
    return draw_lines(series, lines, (top, top / 2, 0.0))


_TOPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def line_path(values: Sequence[float | None], top: float) -> str:
    """Return the SVG path of a line through the midpoints of days. A single day between gaps becomes a dash."""
    parts: list[str] = []
    for position, value in enumerate(values):
        if value is None:
            continue
        x, y = position * DAY_WIDTH + DAY_WIDTH // 2, round(HEIGHT * (1 - value / top), 2)
        continues = position > 0 and values[position - 1] is not None
        alone = not continues and (position + 1 == len(values) or values[position + 1] is None)
        parts.append(
            f"M{x - DAY_WIDTH // 2} {y}H{x + DAY_WIDTH // 2}" if alone else f"{'L' if continues else 'M'}{x} {y}"
        )
    return "".join(parts)


def _rate_sentence(label: str, values: Sequence[float | None]) -> str:
    rates = [value for value in values if value is not None]
    if not rates:
        return f"{label}: no searches."
    low, high = percent(min(rates)), percent(max(rates))
    return f"{label}: {low if low == high else f'{low} to {high}'} of a day’s searches."


def ticks_of(series: Sequence[Dated]) -> list[Tick]:
    step = 1 if len(series) <= MAX_LABELS else ceil(len(series) / FEWER_LABELS)
    # The labels have columns of the same width, so a step that divides the days comes first: 7 of 28 days.
    step = next((fitting for fitting in range(step, 2 * step) if len(series) % fitting == 0), step)
    return [
        Tick(series[position].date, f"{series[position].date.day} {series[position].date:%b}", position * DAY_WIDTH)
        for position in range(0, len(series), step)
    ]


def levels_of(top: int) -> tuple[int, ...]:
    """Return the labels of a value axis that ends at ``top``, from the top: in thirds or halves of whole numbers.

    Example: ``300 -> (300, 200, 100, 0)``, ``40 -> (40, 20, 0)``
    """
    parts = 3 if str(top)[0] in "36" else 2
    return (top, 0) if top % parts else tuple(top * part // parts for part in range(parts, -1, -1))


def nice_ceiling(largest: int) -> int:
    """Return the smallest of 4, 5, 6, 8, 10, 20, 30, 40, 50, … that isn't below ``largest``, as the end of an axis."""
    if largest <= 4:
        return 4
    magnitude: int = 10 ** int(log10(largest))
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        if largest <= step * magnitude:
            return step * magnitude
    return ceil(largest / magnitude) * magnitude


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
