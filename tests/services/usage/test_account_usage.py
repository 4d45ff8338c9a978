"""Usage of all accounts is correct, and takes as many queries as for one account."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from flask import Flask
from sqlalchemy import event, insert

from app.clock import now
from app.models import Account, Key, Site, UsageDay
from app.plans import PlanLimits
from app.services.usage.account_usage import AccountUsage, list_account_usage
from tests.callers import register_browser

TODAY = date(2026, 3, 10)
COUNT = 10_000


def listed(app: Flask) -> list[AccountUsage]:
    with app.extensions["runtime"].database.read() as session:
        return list(list_account_usage(session, TODAY))


@pytest.mark.slow
def test_usage_of_ten_thousand_accounts_is_exact_with_at_most_five_queries(app: Flask) -> None:
    database = app.extensions["runtime"].database
    numbers = range(1, COUNT + 1)
    accounts = [
        {
            "id": number, "name": "n", "email": f"a{number}@example.com", "email_key": f"a{number}@example.com",
            "password_hash": "x", "plan": "pro", "limit_overrides": {}, "created_at": now(),
        }
        for number in numbers
    ]  # fmt: skip
    sites = [
        {
            "account_id": number, "name": "s", "url": "https://example.com/", "domain": "example.com",
            "engine": "memory", "document_count": number, "created_at": now(), "updated_at": now(),
        }
        for number in numbers for _ in range(number % 3)
    ]  # fmt: skip
    days = [
        {"account_id": number, "day": TODAY - timedelta(days=ago), "searches": number * 10**ago}
        for number in numbers for ago in range(number % 4)
    ]  # fmt: skip
    with database.write() as session:
        session.execute(insert(Account), accounts)
        session.execute(insert(Site), sites)
        session.execute(insert(UsageDay), [{"indexing_operations": 0, "documents_changed": 0, **day} for day in days])
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))

    found = listed(app)

    assert len([statement for statement in statements if statement.startswith("SELECT")]) <= 5
    assert [usage.account.id for usage in found] == list(numbers)
    for usage in found[:: COUNT // 50]:
        number = usage.account.id
        assert usage.sites == number % 3
        assert usage.documents == number * (number % 3)
        assert usage.searches_today == (number if number % 4 else 0)
        assert usage.searches_this_month == sum(number * 10**ago for ago in range(number % 4))
        assert usage.keys == 0


def test_monthly_and_daily_usage_count_only_this_month_and_day(app: Flask) -> None:
    _, account_id = register_browser(app, "ann@example.com")
    with app.extensions["runtime"].database.write() as session:
        for day, searches in ((date(2026, 2, 28), 1), (date(2026, 3, 1), 10), (TODAY, 100), (date(2026, 3, 11), 1000)):
            session.add(UsageDay(account_id=account_id, day=day, searches=searches, indexing_operations=0))

    (usage,) = listed(app)

    assert (usage.searches_today, usage.searches_this_month) == (100, 110)


def test_recent_search_is_in_the_usage_after_it_is_copied(app: Flask) -> None:
    with time_machine.travel(datetime(2026, 3, 10, 12, tzinfo=UTC), tick=True):
        browser, account_id = register_browser(app, "ann@example.com")
        part = app.extensions["runtime"]
        browser.get("/dashboard")
        from app.counters.values import UsageReservation

        part.counters.consume([], reserve=UsageReservation(account_id, None), now=now().timestamp())
        part.usage_copies.finish()

    (usage,) = listed(app)

    assert usage.searches_today == 1


def test_usage_share_is_the_largest_share_of_any_quota(app: Flask) -> None:
    account = Account(id=1)
    limits = PlanLimits(60, 1000, searches_per_day=100, documents=None, keys=2, sites=0)

    def share(**used: int) -> float:
        counts = {
            "searches_today": 0,
            "searches_this_month": 0,
            "asks_this_month": 0,
            "documents": 0,
            "sites": 0,
            "keys": 0,
        }
        return AccountUsage(account, **(counts | used)).share(limits)

    assert share() == 0
    assert share(searches_today=50) == 0.5
    assert share(searches_today=50, keys=2, documents=10**9) == 1.0
    assert share(sites=3) == 3.0


def test_key_count_includes_disabled_keys(app: Flask) -> None:
    browser, _ = register_browser(app, "ann@example.com")
    site = browser.post("/sites", json={"name": "Pages", "url": "https://www.example.com/"}).get_json()["site"]
    browser.post(f"/api/sites/{site['id']}/keys", json={"name": "y", "type": "search"})
    key = browser.post(f"/api/sites/{site['id']}/keys", json={"name": "x", "type": "search"}).get_json()["key"]
    browser.post(f"/api/keys/{key['id']}/toggle")

    (usage,) = listed(app)

    with app.extensions["runtime"].database.read() as session:
        assert usage.keys == session.query(Key).count() == 2
