"""Copies of daily usage in SQL."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now, today
from app.counters.metering import MinimumUsage
from app.counters.values import UsageReservation
from app.models import UsageDay
from app.services.usage import daily_usage
from app.storage.database import Database
from tests.callers import Tenant


def month_of(tenant: Tenant) -> dict[str, int]:
    usage: dict[str, int] = tenant.browser.get("/dashboard").get_json()["usage"]
    return usage


@pytest.fixture
def used(tenant: Tenant) -> Tenant:
    """A tenant with three searches and five reported indexing operations."""
    for _ in range(3):
        tenant.find("anything")
    report = {"operation": "indexing", "count": 5, "index": tenant.site["index"]}
    assert tenant.private.post("/v1/report-usage", json=report).status_code == 200
    return tenant


def test_monthly_usage_survives_the_loss_of_the_counter_store(used: Tenant) -> None:
    part = used.app.extensions["runtime"]
    part.usage_copies.finish()

    part.counters.clear()

    usage = month_of(used)
    assert (usage["searches_this_month"], usage["indexing_operations_this_month"]) == (3, 5)


def test_counter_store_value_is_used_if_it_is_larger(used: Tenant) -> None:
    used.app.extensions["runtime"].usage_copies.finish()

    used.find("anything")

    assert month_of(used)["searches_this_month"] == 4


def test_running_search_that_fails_is_not_copied(used: Tenant) -> None:
    part = used.app.extensions["runtime"]
    part.usage_copies.finish()
    under_way = part.counters.consume((), reserve=UsageReservation(used.account_id, None, None), now=now().timestamp())
    part.usage_copies.record(used.account_id)
    part.usage_copies.flush()

    part.counters.refund(reservation=under_way.reservation, now=now().timestamp())
    part.usage_copies.flush()

    assert month_of(used)["searches_this_month"] == 3


def test_copying_usage_twice_changes_nothing_and_deleted_accounts_are_skipped(used: Tenant) -> None:
    copies = used.app.extensions["runtime"].usage_copies
    copies.finish()
    copies.finish()
    assert month_of(used)["searches_this_month"] == 3

    copies.record(used.account_id)
    assert used.browser.delete("/profile", json={"password": "correct horse battery"}).status_code == 200
    copies.record(used.account_id)

    copies.finish()
    with used.app.extensions["runtime"].database.read() as session:
        assert session.scalars(select(UsageDay)).all() == []


def test_copied_usage_is_the_floor_for_a_counter_store_that_lost_the_day(used: Tenant) -> None:
    part = used.app.extensions["runtime"]
    part.usage_copies.finish()

    copied = part.counters.raised_days.read

    assert copied(used.account_id, today()) == MinimumUsage(3, 5)
    assert copied(used.account_id, today() - timedelta(days=1)) == MinimumUsage(0, 0)
    assert copied(used.account_id + 1, today()) == MinimumUsage(0, 0)


def test_unavailable_database_is_not_queried_again_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 0.0
    monkeypatch.setattr(daily_usage, "time", SimpleNamespace(monotonic=lambda: moment))
    database = Database(f"sqlite:///{tmp_path}/nowhere/service.db")
    read, asked = database.read, 0

    def counted() -> AbstractContextManager[Session]:
        nonlocal asked
        asked += 1
        return read()

    monkeypatch.setattr(database, "read", counted)
    copied = daily_usage.CopiedUsage(database)

    moment = 20.0
    assert [copied.read(1, today()) for _ in range(3)] == [None] * 3
    assert asked == 1
    moment += 10.0
    assert copied.read(1, today()) is None
    assert asked == 2
