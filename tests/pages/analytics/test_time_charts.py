"""Response times by day, searches by hour, sparklines, and the comparison with the preceding period."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from flask import Flask

from app.clock import isoformat, now, today
from app.pages.analytics.charts import draw_chart
from app.pages.analytics.time_charts import draw_first_hours, draw_hours, draw_times
from app.services.analytics import search_times
from app.services.analytics.reports import DayCount, get_analytics
from app.services.analytics.search_times import DayTimes, HourCount, percentiles
from app.wording import day_text
from tests.callers import Tenant, page
from tests.pages.markup import Element
from tests.pages.people import Person
from tests.responses import assert_ok

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


def log_search(tenant: Tenant, days_ago: int, results: int = 1) -> None:
    """Log a search as many whole days ago."""
    moment = now() - timedelta(days=days_ago)
    fields = {"query": f"{days_ago} days", "results_count": results, "timestamp": isoformat(moment)}
    assert_ok(tenant.private.post("/api/v1/search-log", json=fields))
    tenant.app.extensions["runtime"].events.flush()


def section(person: Person, tenant: Tenant, title: str, period: str = "28d") -> Element:
    person.go(f"/api/analytics?site_id={tenant.site_id}&period={period}")
    return person.page.one("section", aria_labelledby=title)


def test_first_day_shows_its_searches_by_hour_and_response_times_in_words(
    app: Flask, person: Person, tenant: Tenant
) -> None:
    tenant.index(page(1))
    person.go("/api/analytics")
    assert "Response times" not in person.page.text
    for _ in range(3):
        tenant.find("page")
    log_search(tenant, 0, results=0)

    shown = section(person, tenant, "per-day")

    assert shown.one("h2").text == "Searches per hour"
    hours = [[cell.text for cell in row.all("th") + row.all("td")] for row in shown.one("tbody").all("tr")]
    assert len(hours) == 24
    searched = [hour for hour in hours if hour[1] != "0"]
    assert searched == [[f"{day_text(today())}, {now().hour:02}:00", "4", "1"]]
    assert "4 searches in 1 day, 1 of them without results; the busiest hour began on" in shown.text
    assert "half of them took at most" in section(person, tenant, "times-title").text
    # One point is not a trend, and the hours are already there.
    assert not person.page.has(lambda found: found.attributes.get("id") in ("hours-title", "rates"))
    assert not person.page.all("dd", class_="spark")
    assert (
        person.go("/dashboard")
        .one("svg", role="img")
        .attributes["aria-label"]
        .startswith("Bar chart of searches per hour.")
    )


def test_times_and_hours_of_the_day_are_charts_after_the_first_week(app: Flask, person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.find("page")
    for days_ago in (7, 8, 9):
        log_search(tenant, days_ago)

    assert len(section(person, tenant, "per-day").one("tbody").all("tr")) == 28
    hours = section(person, tenant, "hours-title").one("tbody").all("tr")
    assert [row.all("td")[0].text for row in hours if row.all("td")[0].text != "0"] == ["4"]
    assert len(section(person, tenant, "rates").one("tbody").all("tr")) == 28


@pytest.mark.parametrize(
    ("days_ago", "period", "rows"),
    [((0, 2), "28d", 3 * 24), ((6,), "28d", 7), ((5,), "7d", 6 * 24), ((5, 7), "7d", 7)],
    ids=["three days", "a week", "a short period", "with a period before"],
)
def test_searches_are_shown_by_hour_before_they_fill_a_week(
    app: Flask, person: Person, tenant: Tenant, days_ago: tuple[int, ...], period: str, rows: int
) -> None:
    for back in days_ago:
        log_search(tenant, back)

    shown = section(person, tenant, "per-day", period)

    assert len(shown.one("tbody").all("tr")) == (28 if rows == 7 and period == "28d" else rows)


def test_hours_of_the_first_days_are_labeled_by_day_and_one_day_by_hour() -> None:
    hours = [HourCount(FIRST + timedelta(days=n // 24), n % 24, n == 30, n == 30) for n in range(48)]

    chart = draw_first_hours(hours)

    assert [(tick.text, tick.x) for tick in chart.ticks] == [("1 May", 0), ("2 May", 240)]
    assert [tick.text for tick in draw_first_hours(hours[24:]).ticks] == ["00:00", "06:00", "12:00", "18:00"]
    assert chart.summary == (
        "1 search in 2 days, 1 of them without results; the busiest hour began on 2 May 2024 at 06:00 UTC, with 1."
    )
    assert (chart.bars[30].empty_height, chart.bars[30].found_height, chart.bars[29].empty_height) == (25, 0, 0)


def test_times_are_read_for_the_newest_days_only(
    app: Flask, person: Person, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_times, "MAX_SEARCHES", 0)
    tenant.index(page(1))
    tenant.find("page")
    log_search(tenant, 1)

    with app.extensions["runtime"].database.read() as session:
        series = get_analytics(session, tenant.account_id, 7).series
        times = search_times.get_search_times(session, tenant.account_id, series, site_id=None, channel=None)

    assert ([day.date for day in times.days], sum(times.searches_by_hour)) == ([today()], 1)


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
    now_days = [DayCount(FIRST + timedelta(days=n), 2, 0) for n in range(7)]
    before = [DayCount(FIRST - timedelta(days=7 - n), 4 * (n % 3), 0) for n in range(7)]

    chart = draw_chart(now_days, before)

    assert (chart.top, chart.previous_total) == (8, 24)
    assert chart.previous_path.startswith("M5 100.0L15 50.0L25 0.0L35 100.0")
    assert draw_chart(now_days, [DayCount(FIRST, 0, 0)] * 7).previous_path == ""


def test_chart_omits_a_comparison_period_with_different_weekdays() -> None:
    before = [DayCount(FIRST - timedelta(days=30 - n), 8, 0) for n in range(30)]

    chart = draw_chart([DayCount(FIRST + timedelta(days=n), 2, 0) for n in range(30)], before)

    assert (chart.previous_path, chart.previous_total, chart.top) == ("", 240, 4)
