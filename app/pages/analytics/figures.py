"""Analytics figures as text, and sparklines as coordinates for inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.pages.analytics.charts import HEIGHT, percent, since_first_search
from app.services.analytics.query_reports import QueryAnalytics
from app.services.analytics.report_parts import share_of
from app.services.analytics.reports import Analytics, DayCount, Totals
from app.services.asks.questions import AskReport
from app.wording import counted, number

Number = TypeVar("Number", int, float)

NONE = "–"
"""Placeholder for missing values."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and its change since the previous period.

    Attributes:
        change: The change in words; empty if there is nothing to compare with.
        tone: ``better``, ``worse``, or empty if the change is neutral.
        sparkline: SVG path of the figure's days in a box of ``SPARK_WIDTH`` by ``HEIGHT``; empty for none.
        is_minor: Whether the figure is shown below the others, in a line of text.
    """

    label: str
    value: str
    change: str = ""
    tone: str = ""
    sparkline: str = ""
    is_minor: bool = False


def make_query_figures(report: QueryAnalytics, finds_now: int | None) -> list[Figure]:
    """Return the figures of one query.

    Args:
        finds_now: Number of documents that the query finds; ``None`` if the engine is unavailable.
    """
    rate, position = report.click_through_rate, report.average_click_position
    return [
        Figure("Searches", number(report.searches)),
        Figure("Results now", NONE if finds_now is None else counted(finds_now, "page") if finds_now else "none"),
        Figure("Clicks", number(report.clicks)),
        Figure("Searches with a click", NONE if rate is None else percent(rate)),
        Figure("Average position of clicks", NONE if position is None else f"{position:.1f}"),
    ]


def make_ask_figures(report: AskReport) -> list[Figure]:
    """Return the figures of the questions to the language model."""
    answered, rated = share_of(report.answered, report.questions), report.helpful + report.unhelpful
    helpful = share_of(report.helpful, rated)
    of_rated = f"of {number(rated)} rated" if rated else ""
    return [
        Figure("Questions", number(report.questions)),
        Figure("Answered", NONE if answered is None else percent(answered)),
        Figure("Helpful answers", NONE if helpful is None else percent(helpful), of_rated),
    ]


MAJOR_FIGURES = 4
"""Number of figures that have a card. The dashboard and the overview of a site show only these."""
MIN_POINTS = 3
"""Minimum number of days for a line; fewer would suggest a trend that does not exist."""
MAX_SHARE = 10
"""Relative change above which a percentage is not meaningful, such as “2,145% more”."""
MIN_CHANGE = 0.05
"""Relative change from which a figure is marked as better or worse."""


def make_figures(analytics: Analytics) -> list[Figure]:
    """Return the figures of a period."""
    now, before = analytics.totals, analytics.previous
    mixed = now.mixed_searches or before.mixed_searches
    days = since_first_search(analytics.series)
    figures = [
        _with_sparkline(_count("Searches", now.total_searches, before.total_searches), [day.searches for day in days]),
        _with_sparkline(
            _rate("Searches without results", now.zero_result_rate, before.zero_result_rate, less_is_better=True),
            [day.zero_result_rate or 0 for day in days],
        ),
        *_click_figures(now, before, days),
        _level("Average response time", _response_ms(now), _response_ms(before), lambda value: f"{number(value)} ms"),
        *([_count("Semantic searches", now.mixed_searches, before.mixed_searches)] if mixed else []),
        Figure("Unique queries", number(analytics.unique_queries)),
    ]
    return [replace(figure, is_minor=index >= MAJOR_FIGURES) for index, figure in enumerate(figures)]


def _click_figures(now: Totals, before: Totals, series: Sequence[DayCount]) -> list[Figure]:
    """Return figures about clicks; empty if no clicks were reported."""
    if not (now.clicks or before.clicks):
        return []
    return [
        _with_sparkline(_count("Clicks", now.clicks, before.clicks), [day.clicks for day in series]),
        _rate("Searches with a click", now.click_through_rate, before.click_through_rate if before.clicks else None),
        _level(
            "Average position of clicks",
            now.average_click_position,
            before.average_click_position,
            lambda value: f"{value:.1f}",
        ),
    ]


SPARK_WIDTH = 100


def _with_sparkline(figure: Figure, values: Sequence[float]) -> Figure:
    """Add a sparkline of the daily values, unless it would be flat or have too few points."""
    top = max(values, default=0)
    if top == min(values, default=0) or len(values) < MIN_POINTS:
        return figure
    step = SPARK_WIDTH / (len(values) - 1)
    points = [f"{round(step * index, 1)} {round(HEIGHT * (1 - value / top), 1)}" for index, value in enumerate(values)]
    return replace(figure, sparkline=f"M{'L'.join(points)}")


def _response_ms(totals: Totals) -> int | None:
    return totals.avg_response_time_ms if totals.measured_searches else None


def _count(label: str, value: int, before: int) -> Figure:
    if not before:
        return Figure(label, number(value))
    if value == before:
        return Figure(label, number(value), "same as before")
    share = abs(value - before) / before
    if share >= MAX_SHARE:
        return Figure(label, number(value), f"{number(before)} before")
    direction = "more" if value > before else "fewer"
    return Figure(label, number(value), f"{percent(round(share, 2))} {direction} than {number(before)} before")


def _rate(label: str, value: float | None, before: float | None, *, less_is_better: bool = False) -> Figure:
    if value is None:
        return Figure(label, NONE)
    if before is None:
        return Figure(label, percent(value))
    if percent(value) == percent(before):
        return Figure(label, percent(value), "same as before")
    direction = "up" if value > before else "down"
    return Figure(label, percent(value), f"{direction} from {percent(before)}", _tone(value, before, less_is_better))


def _tone(value: float, before: float, less_is_better: bool) -> str:
    """Return the tone of a change; empty for a change smaller than :data:`MIN_CHANGE`."""
    if before and abs(value - before) / before < MIN_CHANGE:
        return ""
    return "better" if (value < before) == less_is_better else "worse"


def _level(label: str, value: Number | None, before: Number | None, show: Callable[[Number], str]) -> Figure:
    """Return a figure for which lower values are better."""
    if value is None:
        return Figure(label, NONE)
    if before is None:
        return Figure(label, show(value))
    if show(value) == show(before):
        return Figure(label, show(value), "same as before")
    change = f"{'up' if value > before else 'down'} from {show(before)}"
    return Figure(label, show(value), change, _tone(value, before, less_is_better=True))
