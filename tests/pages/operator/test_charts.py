"""Charts show the searches, rejections, and response times of all accounts, and no query."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.clock import now, today
from app.models import SearchEvent, UsageDay
from app.services import operator_reports
from app.services.operator_reports import report_service
from tests.callers import Tenant, page, register_tenant
from tests.pages.operator.test_health import rows
from tests.pages.people import Person

CHARTS = "/operator/charts"


def add_usage(session: Session, tenant: Tenant, days_ago: int, searches: int, rejected: int) -> None:
    session.merge(
        UsageDay(
            account_id=tenant.account_id,
            day=today() - timedelta(days=days_ago),
            searches=searches,
            refused_searches=rejected,
        )
    )


def add_searches(
    session: Session, site_id: int, days_ago: int, times: list[int | None], *, counted: bool = True
) -> None:
    moment = now() - timedelta(days=days_ago)
    for response_ms in times:
        session.add(
            SearchEvent(
                site_id=site_id,
                query="secretquery",
                results_count=1,
                response_ms=response_ms,
                occurred_at=moment,
                recorded_at=moment,
                counted=counted,
            )
        )
    session.flush()


def test_charts_sum_each_day_over_all_accounts(app: Flask, operator: Person, tenant: Tenant, stranger: Tenant) -> None:
    with app.extensions["runtime"].database.write() as session:
        add_usage(session, tenant, 0, 5, 1)
        add_usage(session, stranger, 0, 7, 2)
        add_usage(session, stranger, 8, 100, 0)
        add_searches(session, tenant.site_id, 0, [10, 20, None])
        add_searches(session, stranger.site_id, 0, [30])
        add_searches(session, stranger.site_id, 0, [9000], counted=False)
    operator.go(f"{CHARTS}?days=7")

    searches = list(rows(operator, "Searches per day").values())
    assert searches[0] == ["12", "3"]
    assert len(searches) == 7
    assert "12 searches and 3 rejected in 7 days." in operator.page.text
    assert next(iter(rows(operator, "Response times").values())) == ["20", "30", "30"]
    assert "secretquery" not in operator.response.get_data(as_text=True)

    operator.press("Show", days="30")
    assert "112 searches and 3 rejected in 30 days." in operator.page.text


def test_charts_of_an_installation_without_searches_are_empty(operator: Person) -> None:
    operator.go(CHARTS)

    assert "0 searches and 0 rejected in 30 days." in operator.page.text
    assert "No response times were measured" in operator.page.text


@pytest.mark.parametrize("days", ["0", "-1", "8", "9999999999", "x", "", "７"])
def test_unknown_chart_period_returns_400(operator: Person, days: str) -> None:
    assert operator.call("GET", CHARTS, query_string={"days": days}).status_code == 400


def test_response_times_read_only_the_newest_searches_and_whole_days(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_reports, "MAX_SEARCHES", 5)
    with app.extensions["runtime"].database.write() as session:
        add_searches(session, tenant.site_id, 2, [1000] * 3)
        add_searches(session, tenant.site_id, 1, [50, 60, 70])
        add_searches(session, tenant.site_id, 0, [10, 20])
        assert [day.p99 for day in report_service(session, today(), 4).times] == [None, None, None, 20]

        monkeypatch.setattr(operator_reports, "MAX_SEARCHES", 8)
        assert [day.p99 for day in report_service(session, today(), 4).times] == [None, 1000, 70, 20]

        monkeypatch.setattr(operator_reports, "MAX_SEARCHES", 1)
        assert [day.p50 for day in report_service(session, today(), 2).times] == [None, 20]


def test_searches_of_customers_appear_in_the_charts(app: Flask, operator: Person) -> None:
    tenant = register_tenant(app, "cy@example.com")
    tenant.index(page(1))
    tenant.find("page")
    runtime = app.extensions["runtime"]
    runtime.usage_copies.finish()
    runtime.events.flush()
    with runtime.database.write() as session:
        session.execute(update(SearchEvent).values(response_ms=1234))
    operator.go(CHARTS)

    assert "1 search and 0 rejected" in operator.page.text
    assert "at most 1,234 ms (p50)" in operator.page.text
