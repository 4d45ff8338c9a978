"""Charts over all accounts, for operators: searches, refused searches, and response times per day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import request

from app.clock import today
from app.errors import field_error
from app.pages.analytics.figures import DAY_WIDTH, GAP, HEIGHT, Tick, levels_of, nice_ceiling, ticks_of
from app.pages.analytics.time_charts import draw_times
from app.pages.layout import render
from app.pages.operator.access import for_operators
from app.runtime import runtime
from app.services.operator_reports import ServiceDay, ServiceReport, report_service
from app.web.parsing import check_query_string
from app.wording import counted, number

PERIODS = ("30", "90", "7")
"""Selectable numbers of days, the default first."""


@dataclass(frozen=True, slots=True)
class UsageBar:
    """The searches of a day. Coordinates are chart units; refused searches are at the bottom."""

    day: ServiceDay
    x: int
    charged_y: float
    charged_height: float
    refused_y: float
    refused_height: float


@dataclass(frozen=True, slots=True)
class UsageChart:
    """A bar chart of charged and refused searches per day.

    Attributes:
        levels: Labels of the value axis, from the top.
        summary: The chart in one sentence.
    """

    bars: Sequence[UsageBar]
    width: int
    height: int
    levels: Sequence[int]
    ticks: Sequence[Tick]
    summary: str


@for_operators
def show_charts() -> str:
    """Show the charts of a period.

    Raises:
        ApiError: 400 for another period.
    """
    check_query_string(request)
    period = request.args.get("days", PERIODS[0])
    if period not in PERIODS:
        raise field_error("days", "invalid_choice", f"must be one of {', '.join(PERIODS)}")
    report = _report(int(period))
    return render(
        "operator_charts.html",
        period=period,
        periods=sorted(PERIODS, key=int),
        chart=draw_usage(report.days),
        times=draw_times(report.times),
    )


def _report(day_count: int) -> ServiceReport:
    current_runtime, last = runtime(), today()

    def compute() -> ServiceReport:
        with current_runtime.database.read() as session:
            return report_service(session, last, day_count)

    return current_runtime.recent_results.get(("service", last, day_count), compute, _count_searches)


def _count_searches(report: ServiceReport) -> int:
    return sum(day.searches + day.refused_searches for day in report.days)


def draw_usage(days: Sequence[ServiceDay]) -> UsageChart:
    """Create the chart of searches, oldest day first."""
    top = nice_ceiling(max(day.searches + day.refused_searches for day in days))
    bars = []
    for position, day in enumerate(days):
        charged, refused = HEIGHT * day.searches / top, HEIGHT * day.refused_searches / top
        bars.append(
            UsageBar(
                day,
                position * DAY_WIDTH + GAP // 2,
                round(HEIGHT - charged - refused, 2),
                round(charged, 2),
                round(HEIGHT - refused, 2),
                round(refused, 2),
            )
        )
    searches, all_refused = sum(day.searches for day in days), sum(day.refused_searches for day in days)
    summary = f"{counted(searches, 'search')} and {number(all_refused)} refused in {counted(len(days), 'day')}."
    return UsageChart(bars, len(days) * DAY_WIDTH, HEIGHT, levels_of(top), ticks_of(days), summary)
