"""Usage of a month: exact while it lasts, and stored once after it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select

from app.application import create_app
from app.counters.values import CountersUnavailable
from app.models import UsageDay, UsageMonth
from app.operations.operator import delete_account
from app.runtime import Runtime
from app.services.usage.month_usage import (
    MonthReport,
    MonthUsage,
    close_months,
    first_of_last_month,
    first_of_next_month,
    report_month,
    usage_of_month,
)
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app
from tests.responses import assert_error, assert_ok

MAY = date(2031, 5, 1)
NOON = datetime(2031, 5, 14, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


@pytest.fixture
def customer(clock: time_machine.Coordinates, app: Flask) -> Tenant:
    """A customer who registered in May."""
    return register_tenant(app, "ann@example.com")


def usage(part: Runtime, tenant: Tenant, month: date = MAY, *, copies_only: bool = False) -> MonthUsage:
    counters = None if copies_only else part.counters
    with part.database.read() as session:
        return usage_of_month(session, counters, [tenant.account_id], month)[tenant.account_id]


def report(part: Runtime, month: date = MAY) -> MonthReport:
    with part.database.read() as session:
        return report_month(session, part.counters, month)


def documents(part: Runtime, tenant: Tenant, month: date = MAY) -> int:
    return usage(part, tenant, month).most_documents


def pages(count: int) -> list[dict[str, Any]]:
    return [page(number) for number in range(count)]


def remove(tenant: Tenant, *numbers: int) -> None:
    ids = [f"page-{number}" for number in numbers]
    assert_ok(tenant.private.post("/api/v1/documents/delete", json={"ids": ids}))


@pytest.mark.parametrize(
    ("month", "before", "after"),
    [
        (date(2026, 1, 1), date(2025, 12, 1), date(2026, 2, 1)),
        (date(2028, 2, 1), date(2028, 1, 1), date(2028, 3, 1)),
        (date(2026, 12, 1), date(2026, 11, 1), date(2027, 1, 1)),
    ],
)
def test_months_before_and_after_are_computed_across_years(month: date, before: date, after: date) -> None:
    for day in (month, month + timedelta(days=27)):
        assert (first_of_last_month(day), first_of_next_month(day)) == (before, after)


class TestMostDocuments:
    """The highest number of documents stored at any time in a month."""

    def test_most_documents_includes_documents_removed_later(self, part: Runtime, customer: Tenant) -> None:
        customer.index(*pages(5))
        remove(customer, 0, 1, 2)
        customer.index(page(0))

        assert documents(part, customer) == 5

    def test_replaced_documents_count_once(self, part: Runtime, customer: Tenant) -> None:
        customer.index(*pages(3))
        customer.index(*pages(3))
        change = {"documents": [{"id": "page-1", "title": "Changed"}]}
        assert_ok(customer.private.call("PATCH", "/api/v1/documents", json=change))

        assert documents(part, customer) == 3

    def test_documents_of_earlier_months_count_in_months_without_changes(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant
    ) -> None:
        customer.index(*pages(4))
        clock.shift(31 * DAY)
        june = MAY.replace(month=6)
        assert documents(part, customer, june) == 4
        clock.shift(30 * DAY)
        remove(customer, 0, 1, 2)  # In July.

        assert documents(part, customer, june) == 4
        assert documents(part, customer, MAY.replace(month=7)) == 4
        clock.shift(31 * DAY)
        assert documents(part, customer, MAY.replace(month=8)) == 1

    def test_documents_added_after_the_month_do_not_count(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant
    ) -> None:
        customer.index(*pages(1))
        clock.shift(31 * DAY)  # Nothing changes in June.
        clock.shift(30 * DAY)
        customer.index(*pages(5))

        assert documents(part, customer, MAY.replace(month=6)) == 1

    def test_all_sites_count_but_not_those_in_the_trash(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant
    ) -> None:
        site = assert_ok(customer.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}), 201)["site"]
        customer.index(*pages(2))
        body = {"documents": pages(3), "site_id": site["id"]}
        assert_ok(customer.private.post("/api/v1/index/bulk", json=body))
        assert documents(part, customer) == 5
        assert_ok(customer.browser.delete(f"/sites/{site['id']}"))
        clock.shift(31 * DAY)
        june = MAY.replace(month=6)
        assert documents(part, customer, june) == 2

    def test_restored_site_counts_again(self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant) -> None:
        site = assert_ok(customer.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}), 201)["site"]
        body = {"documents": pages(3), "site_id": site["id"]}
        assert_ok(customer.private.post("/api/v1/index/bulk", json=body))
        assert_ok(customer.private.delete(f"/sites/{site['id']}"))
        clock.move_to(datetime(2031, 6, 2, tzinfo=UTC))
        assert documents(part, customer, MAY.replace(month=6)) == 0
        assert_ok(customer.private.post(f"/sites/{site['id']}/restore"))

        assert documents(part, customer, MAY.replace(month=6)) == 3
        with part.database.read() as session:
            assert session.scalar(select(func.sum(UsageDay.documents_changed))) == 3, (
                "restoring must not charge searches"
            )

    def test_rejected_batch_does_not_count(self, part: Runtime, customer: Tenant) -> None:
        customer.set_plan("pro", documents=2)
        customer.index(page(0))
        response = customer.private.post("/api/v1/index/bulk", json={"documents": pages(3)})
        assert_error(response, 403, "document_limit_reached")

        assert documents(part, customer) == 1

    def test_concurrent_writers_in_several_processes_are_counted_exactly(self, app: Flask, part: Runtime) -> None:
        tenant = register_tenant(app, "ann@example.com")
        other = create_app(part.settings, background=False)
        clients = [tenant.private, ApiClient(other, tenant.tokens["private"])]
        try:

            def write(number: int) -> None:
                path = "/api/v1/index/bulk"
                assert_ok(clients[number % 2].post(path, json={"documents": [page(f"{number}-{n}") for n in range(3)]}))

            with ThreadPoolExecutor(6) as threads:
                list(threads.map(write, range(20)))
        finally:
            close_app(other)
        month = datetime.now(UTC).date().replace(day=1)

        assert documents(part, tenant, month) == 60


class TestRefusals:
    """Rejected searches, and searches, from counters and from copies."""

    def test_rejections_by_quota_and_by_rate_are_copied(self, part: Runtime, customer: Tenant) -> None:
        customer.set_plan("pro", searches_per_day=1)
        customer.find("a")
        for _ in range(2):
            assert_error(customer.search.get("/v1/search?q=a"), 429, "rate_limit_exceeded")
        part.usage_copies.finish()
        customer.set_plan("pro", requests_per_minute=1)
        assert_error(customer.search.get("/v1/search?q=a"), 429, "rate_limit_exceeded")
        assert usage(part, customer).refused_searches == 3
        part.usage_copies.finish()

        copied = usage(part, customer, copies_only=True)

        assert (copied.searches, copied.refused_searches) == (1, 3)

    def test_copies_replace_counts_that_the_counter_store_has_lost(self, part: Runtime, customer: Tenant) -> None:
        customer.set_plan("pro", searches_per_day=1)
        customer.find("a")
        assert_error(customer.search.get("/v1/search?q=a"), 429, "rate_limit_exceeded")
        part.usage_copies.finish()
        before = usage(part, customer)
        part.counters.clear()

        assert usage(part, customer) == before
        assert (before.searches, before.refused_searches) == (1, 1)

    def test_figures_belong_to_the_month_of_their_day(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant
    ) -> None:
        clock.move_to(datetime(2031, 5, 31, 23, 59, tzinfo=UTC))
        customer.find("a")
        clock.move_to(datetime(2031, 6, 1, 0, 0, tzinfo=UTC))
        customer.find("a")
        customer.find("b")

        assert (usage(part, customer).searches, usage(part, customer, MAY.replace(month=6)).searches) == (1, 2)


class TestClosing:
    """Storing the usage of a past month."""

    def test_closed_month_never_changes(self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant) -> None:
        customer.index(*pages(2))
        customer.find("a")
        clock.move_to(datetime(2031, 6, 1, 0, 59, 59, tzinfo=UTC))
        assert close_months(part.database, part.counters) == 0
        assert not report(part).is_final
        clock.move_to(datetime(2031, 6, 1, 1, 0, tzinfo=UTC))
        before = report(part)
        assert close_months(part.database, part.counters) == 1
        assert close_months(part.database, part.counters) == 0

        part.counters.clear()
        with part.database.write() as session:
            for day in session.scalars(select(UsageDay)):
                day.searches = 99
                day.most_documents = 99

        closed = report(part)
        assert closed.is_final
        assert [usage for _, usage in closed.accounts] == [usage for _, usage in before.accounts]
        assert closed.accounts[0][1] == MonthUsage(1, 0, 2, 2, 0)

    def test_report_of_a_month_excludes_accounts_created_later(
        self, clock: time_machine.Coordinates, app: Flask, part: Runtime, customer: Tenant
    ) -> None:
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        register_tenant(app, "late@example.com")

        assert close_months(part.database, part.counters) == 1
        assert [account.email for account, _ in report(part).accounts] == [customer.email]
        assert report(part).is_final
        assert len(report(part, MAY.replace(month=6)).accounts) == 2

    def test_job_closes_the_month(
        self, clock: time_machine.Coordinates, app: Flask, part: Runtime, customer: Tenant
    ) -> None:
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        app.extensions["jobs"].run_all()

        assert report(part).is_final

    def test_months_that_ended_while_the_service_was_off_are_closed_later(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant
    ) -> None:
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        assert close_months(part.database, part.counters) == 1
        customer.index(*pages(3))
        clock.move_to(datetime(2031, 9, 3, 2, tzinfo=UTC))

        assert close_months(part.database, part.counters) == 3
        june = report(part, date(2031, 6, 1))
        assert june.is_final
        assert june.accounts[0][1] == MonthUsage(0, 0, 3, 3, 0)
        assert close_months(part.database, part.counters) == 0

    def test_account_deleted_during_a_report_is_not_reported_with_incomplete_usage(
        self, app: Flask, part: Runtime, customer: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        customer.index(*pages(3))
        complete = usage(part, customer)

        def delete_first(*args: Any) -> dict[int, MonthUsage]:
            monkeypatch.undo()
            delete_account(part, customer.account_id)
            return usage_of_month(*args)

        monkeypatch.setattr("app.services.usage.month_usage.usage_of_month", delete_first)

        # SQLite reads all from one state of the database, in which the account still exists.
        assert [used for _, used in report(part).accounts] in ([], [complete])

    def test_without_counters_the_month_stays_open(
        self, clock: time_machine.Coordinates, part: Runtime, customer: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: Any) -> Any:
            raise CountersUnavailable

        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        with monkeypatch.context() as patch:
            patch.setattr(part.counters, "usage_between", fail)
            with pytest.raises(CountersUnavailable):
                close_months(part.database, part.counters)

        assert not report(part).is_final
        assert close_months(part.database, part.counters) == 1

    def test_two_processes_close_each_account_once(
        self, clock: time_machine.Coordinates, app: Flask, part: Runtime, customer: Tenant
    ) -> None:
        for number in range(5):
            register_tenant(app, f"a{number}@example.com")
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        other = create_app(part.settings, background=False)
        try:
            parts = [part, other.extensions["runtime"]]
            with ThreadPoolExecutor(2) as threads:
                closed = list(threads.map(lambda part: close_months(part.database, part.counters), parts))
        finally:
            close_app(other)

        assert sum(closed) == 6

    def test_deleting_an_account_deletes_its_months(
        self, clock: time_machine.Coordinates, app: Flask, part: Runtime, customer: Tenant
    ) -> None:
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        close_months(part.database, part.counters)
        result = app.test_cli_runner().invoke(args=["account", "delete", customer.email, "--yes"])
        assert result.exit_code == 0, result.output

        with part.database.read() as session:
            assert session.scalar(select(func.count()).select_from(UsageMonth)) == 0
        assert report(part).accounts == []

    def test_many_accounts_are_closed_in_steps(
        self,
        clock: time_machine.Coordinates,
        app: Flask,
        part: Runtime,
        customer: Tenant,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        for number in range(3):
            register_tenant(app, f"a{number}@example.com")
        monkeypatch.setattr("app.services.usage.month_usage.ACCOUNTS_AT_ONCE", 2)
        clock.move_to(datetime(2031, 6, 1, 2, tzinfo=UTC))
        before = report(part)

        assert close_months(part.database, part.counters) == 4
        assert [usage for _, usage in report(part).accounts] == [usage for _, usage in before.accounts]
