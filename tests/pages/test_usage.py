"""The page on which customers check invoices."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
import time_machine
from flask import Flask

from app.counters.values import CountersUnavailable
from app.pages.usage import SHOWN_MONTHS
from app.services.health import COUNTERS
from tests.callers import PASSWORD, Tenant, register_tenant
from tests.pages.people import Person, person_of


def rows(person: Person) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in person.page.one("tbody").all("tr")]


def test_dashboard_and_plans_lead_to_the_usage_of_each_month(tenant: Tenant) -> None:
    tenant.index({"id": "1", "title": "A", "url": "https://example.com/a", "content": "a"})
    tenant.find("a")
    person = person_of(tenant)
    for start in ("/dashboard", "/plans"):
        person.go(start)
        person.follow("Usage by month")
        assert rows(person) == [[f"{datetime.now(UTC):%Y-%m} Not final", "1", "0", "1", "1", "0"]]


def test_old_account_sees_its_newest_months_and_can_choose_any(app: Flask) -> None:
    with time_machine.travel(datetime(2031, 5, 14, 12, tzinfo=UTC), tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        clock.move_to(datetime(2031, 7, 1, tzinfo=UTC))
        person = Person(app)
        person.go("/login?next=/api/usage")
        person.press("Log in", email=tenant.email, password=PASSWORD)
        assert [row[0] for row in rows(person)] == ["2031-07 Not final", "2031-06 Not final", "2031-05 Not final"]

        person.press("Show", month="2031-05")
        assert [row[0] for row in rows(person)] == ["2031-05 Not final"]
        response = person.call("GET", "/usage/export")
    listed = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["month"] for row in listed] == ["2031-07", "2031-06", "2031-05"]
    assert len(listed) < SHOWN_MONTHS


def test_page_shows_at_most_two_years(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.pages.usage.SHOWN_MONTHS", 0)
    person = person_of(tenant)
    person.go("/api/usage")
    assert rows(person) == []
    assert len(person.page.one("select", name="month").all("option")) == 2


def test_page_shows_copies_while_counters_are_unavailable(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tenant.app.extensions["runtime"]
    tenant.find("a")
    runtime.usage_copies.finish()

    def fail(*_: object, **__: object) -> None:
        raise CountersUnavailable("away")

    monkeypatch.setattr(runtime.counters, "usage_between", fail)
    monkeypatch.setattr(runtime.health, "failing_since", lambda part: datetime.now(UTC) if part == COUNTERS else None)
    person = person_of(tenant)
    person.go("/api/usage")
    assert rows(person)[0][1] == "1"
