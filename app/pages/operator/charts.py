"""Charts over all accounts, for operators: searches, rejected searches, and response times per day."""

from __future__ import annotations

from collections.abc import Sequence

from flask import request

from app.clock import today
from app.errors import field_error
from app.pages.analytics.charts import Chart, nice_ceiling, stack_bars
from app.pages.analytics.time_charts import draw_times
from app.pages.layout import render
from app.pages.operator.access import for_operators
from app.runtime import runtime
from app.services.analytics.search_times import MAX_SEARCHES
from app.services.operator_reports import ServiceDay, ServiceReport, report_service
from app.web.parsing import check_query_string
from app.wording import counted, number

PERIODS = ("30", "90", "7")
"""Selectable numbers of days, the default first."""


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
        max_searches=MAX_SEARCHES,
    )


def _report(day_count: int) -> ServiceReport:
    current_runtime, last = runtime(), today()

    def compute() -> ServiceReport:
        with current_runtime.database.read() as session:
            return report_service(session, last, day_count)

    return current_runtime.recent_results.get(("service", last, day_count), compute, _count_searches)


def _count_searches(report: ServiceReport) -> int:
    return sum(day.searches + day.refused_searches for day in report.days)


def draw_usage(days: Sequence[ServiceDay]) -> Chart:
    """Create the chart of charged searches, stacked on rejected searches, oldest day first."""
    top = nice_ceiling(max(day.searches + day.refused_searches for day in days))
    searches, rejected = sum(day.searches for day in days), sum(day.refused_searches for day in days)
    summary = f"{counted(searches, 'search')} and {number(rejected)} rejected in {counted(len(days), 'day')}."
    return stack_bars(days, [(day.searches, day.refused_searches) for day in days], top, summary)
