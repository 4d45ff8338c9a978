"""Response times by day, searches by hour, sparklines, and the comparison with the preceding period."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from flask import Flask

from app.clock import now
from app.pages.analytics.figures import draw_chart
from app.pages.analytics.time_charts import draw_hours, draw_times
from app.services.analytics import search_times
from app.services.analytics.reports import DayCount
from app.services.analytics.search_times import DayTimes, percentiles
from tests.callers import Tenant, page
from tests.pages.people import Person

FIRST = date(2024, 5, 1)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, [None, None, None]),
        ({7: 1}, [7, 7, 7]),
        ({1: 50, 2: 45, 3: 4, 900: 1}, [1, 2, 3]),
        (dict.fromkeys(range(1, 101), 1), [50, 95, 99]),
        ({10: 1, 20: 1}, [10, 20, 20]),
    ],
)
def test_percentiles_are_values_by_nearest_rank(counts: dict[int, int], expected: list[int | None]) -> None:
    assert percentiles(counts) == expected


def test_overview_shows_hours_and_response_times_of_searches(app: Flask, person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    person.go("/api/analytics")
    assert "Response times" not in person.page.text
    for _ in range(3):
        tenant.find("page")
    app.extensions["runtime"].events.flush()

    person.go(f"/api/analytics?site_id={tenant.site_id}")

    hours = person.page.one("section", aria_labelledby="hours-title").one("tbody").all("tr")
    searched = [[cell.text for cell in row.all("th") + row.all("td")] for row in hours if row.all("td")[0].text != "0"]
    assert searched == [[f"{now().hour:02}:00", "3"]]
    times = person.page.one("section", aria_labelledby="times-title").one("tbody").all("tr")
    assert all(cell.text.isdigit() for cell in times[0].all("td"))
    assert {cell.text for cell in times[1].all("td")} == {"–"}


def test_times_are_read_for_the_newest_days_only(
    app: Flask, person: Person, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_times, "MAX_SEARCHES", 0)
    tenant.index(page(1))
    tenant.find("page")
    app.extensions["runtime"].events.flush()

    person.go("/api/analytics")

    assert len(person.page.one("section", aria_labelledby="times-title").one("tbody").all("tr")) == 1


def test_chart_of_times_has_a_line_for_each_percentile_and_gaps() -> None:
    days = [DayTimes(FIRST, 1, 5, 10), DayTimes(FIRST + timedelta(days=1), None, None, None)]

    chart = draw_times(days)

    assert chart is not None
    assert chart.levels == (10, 5, 0)
    assert [(line.name, line.path) for line in chart.lines] == [
        ("p50", "M0 90.0H10"),
        ("p95", "M0 50.0H10"),
        ("p99", "M0 0.0H10"),
    ]
    assert "99% at most 10 ms (p99)" in chart.summary
    assert draw_times(days[1:]) is None


def test_chart_of_hours_names_the_busiest_hour() -> None:
    chart = draw_hours([0] * 9 + [4] + [1] * 14)

    assert chart is not None
    assert chart.summary == "Most searches come between 09:00 and 09:59 UTC."
    assert (chart.bars[9].y, chart.bars[9].height) == (0, 100)
    assert chart.bars[10].searches == 1
    assert draw_hours([0] * 24) is None


def test_chart_compares_with_the_preceding_period() -> None:
    now_days = [DayCount(FIRST + timedelta(days=n), 2, 0) for n in range(2)]
    before = [DayCount(FIRST - timedelta(days=2 - n), 8 * n, 0) for n in range(2)]

    chart = draw_chart(now_days, before)

    assert (chart.top, chart.previous_total) == (8, 8)
    assert chart.previous_path == "M5 100.0L15 0.0"
    assert draw_chart(now_days, [DayCount(FIRST, 0, 0)]).previous_path == ""
