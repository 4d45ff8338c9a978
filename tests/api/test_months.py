"""Customers see their usage of each month, exactly as the operator does."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.runtime import Runtime
from app.services.usage.month_usage import close_months
from tests.callers import ApiClient, Tenant, add_member, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok

TOKEN = "an-operator-token-of-the-tests-0123456789"
FEBRUARY = datetime(2031, 2, 27, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(FEBRUARY, tick=False) as clock:
        yield clock


@pytest.fixture
def app(clock: time_machine.Traveller, tmp_path: Path) -> Iterator[Flask]:
    made = make_app(make_settings(tmp_path, operator_token=TOKEN))
    yield made
    close_app(made)


@pytest.fixture
def customer(app: Flask) -> Tenant:
    """A customer with usage in February and March, of which February is closed."""
    tenant = register_tenant(app, "ann@example.com")
    use(tenant, searches=3)
    return tenant


def use(tenant: Tenant, searches: int) -> None:
    tenant.index(page(1), page(2))
    for _ in range(searches):
        tenant.find("page")


def move_to_april(clock: time_machine.Traveller, app: Flask, customer: Tenant) -> None:
    runtime: Runtime = app.extensions["runtime"]
    runtime.usage_copies.finish()
    clock.move_to(datetime(2031, 3, 1, 2, tzinfo=UTC))
    close_months(runtime.database, runtime.counters)
    use(customer, searches=2)
    runtime.usage_copies.finish()
    clock.move_to(datetime(2031, 4, 1, 0, 30, tzinfo=UTC))


def usage_of(tenant: Tenant, month: str) -> dict[str, Any]:
    return assert_ok(tenant.private.get(f"/api/usage?month={month}"))


def test_each_month_equals_the_operators_report(clock: time_machine.Traveller, app: Flask, customer: Tenant) -> None:
    move_to_april(clock, app, customer)
    months = assert_ok(customer.private.get("/api/usage"))["months"]
    assert months == ["2031-04", "2031-03", "2031-02"]

    for month in months:
        report = assert_ok(ApiClient(app, TOKEN).get(f"/api/operator/usage?month={month}"))
        (row,) = report["accounts"]
        answer = usage_of(customer, month)
        assert answer.items() >= {name: row[name] for name in row.keys() & answer.keys()}.items()
        assert (answer["month"], answer["final"]) == (report["month"], report["final"])


def test_month_has_the_figures_of_its_days(clock: time_machine.Traveller, app: Flask, customer: Tenant) -> None:
    move_to_april(clock, app, customer)

    answers = [usage_of(customer, month) for month in ("2031-02", "2031-03", "2031-04")]
    assert [(usage["searches"], usage["final"]) for usage in answers] == [(3, True), (2, False), (0, False)]
    assert usage_of(customer, "2031-04")["most_documents"] == 2


def test_current_month_is_the_default(customer: Tenant) -> None:
    assert assert_ok(customer.private.get("/api/usage")) == usage_of(customer, "2031-02")


def test_csv_has_the_same_figures(customer: Tenant) -> None:
    response = customer.private.get("/api/usage?month=2031-02", headers={"Accept": "text/csv"})

    assert (response.status_code, response.mimetype) == (200, "text/csv")
    (row,) = csv.DictReader(io.StringIO(response.text))
    answer = usage_of(customer, "2031-02")
    assert row.pop("final") == "false"
    assert row == {name: str(answer[name]) for name in row}


@pytest.mark.parametrize(
    ("month", "message"),
    [
        ("2031-01", "month must not be before 2031-02, when the account was created"),
        ("2031-03", "month must not be in the future"),
        ("2031-2", "month must be a month, such as 2026-11"),
    ],
)
def test_month_without_the_account_is_rejected(customer: Tenant, month: str, message: str) -> None:
    body = assert_error(customer.private.get(f"/api/usage?month={month}"), 400, "validation_failed", field="month")
    assert body["details"][0]["message"] == message


def test_viewers_see_the_account_and_other_accounts_do_not(app: Flask, customer: Tenant) -> None:
    viewer, stranger = add_member(customer, "vera@example.com", "viewer"), register_tenant(app, "eve@example.com")
    assert assert_ok(viewer.get("/api/usage"))["searches"] == 3
    assert usage_of(stranger, "2031-02")["searches"] == 0


def test_key_of_one_site_cannot_read_the_accounts_usage(customer: Tenant) -> None:
    body = {"name": "Narrow", "type": "private", "scopes": ["sites"], "site_only": True}
    token = assert_ok(customer.browser.post(f"/api/sites/{customer.site_id}/keys", json=body), 201)["api_key"]
    narrow = ApiClient(customer.app, token)
    assert_error(narrow.get("/api/usage"), 403, "insufficient_permission")
