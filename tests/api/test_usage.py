"""POST /v1/report-usage and POST /api/v1/search-log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


def report(
    tenant: Tenant, count: Any = 1, *, kind: str = "private", key: str | None = None, **fields: Any
) -> TestResponse:
    body = {"operation": "search", "count": count, "index": tenant.site["index"], **fields}
    headers = {} if key is None else {"Idempotency-Key": key}
    return tenant.client(kind).post("/v1/report-usage", json=body, headers=headers)


def used(tenant: Tenant) -> int:
    return int(assert_ok(tenant.private.get("/v1/client-info"))["limits"]["used_today"])


def log(tenant: Tenant, query: Any = "bicycle", results: Any = 3, **fields: Any) -> TestResponse:
    return tenant.search.post("/api/v1/search-log", json={"query": query, "results_count": results, **fields})


def analytics(tenant: Tenant) -> dict[str, Any]:
    tenant.app.extensions["runtime"].events.flush()
    return assert_ok(tenant.private.get(f"/api/analytics?period=90d&site_id={tenant.site_id}"))


@pytest.fixture
def owner(shared_app: Flask, request: pytest.FixtureRequest) -> Tenant:
    return register_tenant(shared_app, f"owner-{request.node.name.encode().hex()[-50:]}@example.com")


class TestReports:
    """POST /v1/report-usage changes quotas and nothing else."""

    def test_reported_searches_use_quota_at_once(self, owner: Tenant) -> None:
        assert assert_ok(report(owner, 7)) == {"success": True}

        assert used(owner) == 7
        quota = assert_ok(owner.search.get("/v1/search?q=x"))["remaining_quota"]
        assert quota["used_today"] == 8
        dashboard = assert_ok(owner.private.get("/dashboard"))["usage"]
        assert (dashboard["searches_this_month"], dashboard["indexing_operations_this_month"]) == (8, 0)
        assert analytics(owner)["total_searches"] == 1, "usage reports do not add searches to analytics"

    def test_reported_indexing_is_recorded_but_not_limited(self, owner: Tenant) -> None:
        owner.set_plan("pro", searches_per_day=1)

        assert_ok(report(owner, 10_000, operation="indexing"))

        assert used(owner) == 0
        usage = assert_ok(owner.private.get("/dashboard"))["usage"]
        assert (usage["searches_this_month"], usage["indexing_operations_this_month"]) == (0, 10_000)
        assert_ok(owner.search.get("/v1/search?q=x"))

    def test_reports_over_quota_are_accepted_and_later_searches_get_429(self, owner: Tenant) -> None:
        owner.set_plan("pro", searches_per_day=5)

        assert_ok(report(owner, 50))
        assert_ok(report(owner, 50))

        assert used(owner) == 100
        assert_error(owner.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")

    def test_reports_count_in_the_day_and_month_they_arrive(self, app: Flask) -> None:
        with time_machine.travel(datetime(2031, 5, 31, 23, 59, tzinfo=UTC), tick=False) as clock:
            tenant = register_tenant(app, "ann@example.com")
            report(tenant, 5)
            assert used(tenant) == 5
            clock.shift(60)
            assert used(tenant) == 0
            assert assert_ok(tenant.private.get("/dashboard"))["usage"]["searches_this_month"] == 0
            report(tenant, 3)
            clock.shift(timedelta(days=29))
            report(tenant, 4)
            assert used(tenant) == 4
            assert assert_ok(tenant.private.get("/dashboard"))["usage"]["searches_this_month"] == 7

    def test_reports_with_public_keys_count_at_most_ten_a_day_per_site(self, owner: Tenant) -> None:
        for _ in range(3):
            assert_ok(report(owner, 10, kind="public"))

        assert used(owner) == 10

    def test_reports_with_public_keys_count_fully_when_the_engine_is_exposed(self, tmp_path: Path) -> None:
        app = make_app(
            make_settings(tmp_path, search_url="typesense://:k@127.0.0.1:1", search_public_url="https://engine.example")
        )
        tenant = register_tenant(app, "ann@example.com")

        for _ in range(3):
            assert_ok(report(tenant, 10, kind="public"))
        tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
        assert used(tenant) == 30
        close_app(app)

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"operation": None}, "operation"),
            ({"operation": "delete"}, "operation"),
            ({"operation": "Search"}, "operation"),
            ({"count": 0}, "count"),
            ({"count": -1}, "count"),
            ({"count": 10_001}, "count"),
            ({"count": "5"}, "count"),
            ({"count": 1.5}, "count"),
            ({"count": True}, "count"),
            ({"count": None}, "count"),
            ({"index": None}, "index"),
            ({"index": ""}, "index"),
            ({"index": 5}, "index"),
            ({"index": "x" * 256}, "index"),
        ],
    )
    def test_report_with_invalid_fields_is_rejected(self, ann: Tenant, fields: dict[str, Any], field: str) -> None:
        before = used(ann)

        assert_error(report(ann, **fields), 400, "validation_failed", field=field)
        assert used(ann) == before

    @pytest.mark.parametrize("missing", ["operation", "count", "index"])
    def test_report_requires_operation_count_and_index(self, ann: Tenant, missing: str) -> None:
        body = {"operation": "search", "count": 1, "index": ann.site["index"]}
        del body[missing]

        assert_error(ann.private.post("/v1/report-usage", json=body), 400, "validation_failed", field=missing)

    def test_report_ignores_unknown_fields(self, ann: Tenant) -> None:
        assert_ok(report(ann, sdk="1.2", nested={"a": [1]}))

    @pytest.mark.parametrize(
        "index", ["site_0", "site_01", "site_", "site_99999999999999999999", "Site_1", "site_1\n", "x"]
    )
    def test_report_for_an_unknown_index_returns_404(self, ann: Tenant, index: str) -> None:
        assert_error(report(ann, index=index), 404, "index_not_found")


class TestIdempotency:
    """The Idempotency-Key header makes repeats within 24 hours harmless."""

    def test_repeated_report_is_marked_as_duplicate_and_not_counted(self, owner: Tenant) -> None:
        assert assert_ok(report(owner, 5, key="a")) == {"success": True}
        for _ in range(3):
            assert assert_ok(report(owner, 5, key="a")) == {"success": True, "duplicate": True}
        assert assert_ok(report(owner, 5, key="b")) == {"success": True}

        assert used(owner) == 10

    def test_different_body_with_the_same_idempotency_key_is_rejected(self, owner: Tenant) -> None:
        report(owner, 5, key="a")

        for fields in ({"count": 6}, {"operation": "indexing"}):
            response = report(owner, **{"count": 5, "key": "a", **fields})
            assert_error(response, 400, "validation_failed", field="Idempotency-Key")
        assert used(owner) == 5

    def test_idempotency_keys_are_separate_per_account(self, ann: Tenant, eve: Tenant) -> None:
        assert assert_ok(report(ann, 5, key="shared")) == {"success": True}
        assert assert_ok(report(eve, 5, key="shared")) == {"success": True}
        assert assert_ok(report(ann, 5, key="shared", kind="search"))["duplicate"] is True

    def test_idempotency_key_expires_after_a_day(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            tenant = register_tenant(app, "ann@example.com")
            report(tenant, 5, key="a")
            clock.shift(86_399)
            assert assert_ok(report(tenant, 5, key="a")) == {"success": True, "duplicate": True}
            clock.shift(2)
            assert assert_ok(report(tenant, 5, key="a")) == {"success": True}

    @pytest.mark.parametrize("key", ["x", "!~", "x" * 255])
    def test_visible_ascii_idempotency_keys_are_accepted(self, ann: Tenant, key: str) -> None:
        assert_ok(report(ann, key=key))

    @pytest.mark.parametrize("key", ["", "x" * 256, "a b", "\u00fc", "a\tb"])
    def test_other_idempotency_keys_are_rejected(self, ann: Tenant, key: str) -> None:
        response = report(ann, key=key.encode().decode("latin-1"))

        assert_error(response, 400, "validation_failed", field="Idempotency-Key")


class TestSearchLog:
    """POST /api/v1/search-log changes analytics and nothing else."""

    def test_log_entries_with_public_keys_count_up_to_thirty_a_minute_per_ip_address(self, owner: Tenant) -> None:
        def log_from(address: str, number: int) -> dict[str, Any]:
            entry = {"query": f"invented {number}", "results_count": 0, "session_id": f"invented-{number}"}
            response = owner.public.post("/api/v1/search-log", json=entry, environ_overrides={"REMOTE_ADDR": address})
            return assert_ok(response)

        # All addresses of an IPv6 network count as one visitor.
        answers = [log_from(f"2001:db8:1:2::{number:x}", number) for number in range(40)]
        assert answers == [{"success": True}] * 30 + [{"success": True, "counted": False}] * 10
        assert log_from("198.51.100.7", 99) == {"success": True}
        assert assert_ok(log(owner, "of our server", 0)) == {"success": True}

        assert analytics(owner)["total_searches"] == 32

    def test_invented_sessions_from_one_ip_address_count_as_one_inbox_visitor(self, owner: Tenant) -> None:
        for number in range(9):
            entry = {"query": "invented", "results_count": 0, "session_id": f"invented-{number}"}
            assert_ok(owner.public.post("/api/v1/search-log", json=entry))
        owner.app.extensions["runtime"].events.flush()

        (item,) = owner.private.get(f"/api/analytics/inbox?site_id={owner.site_id}").get_json()["items"]
        assert (item["searches"], item["visitors"]) == (9, 1)

    def test_log_entry_appears_in_analytics_and_uses_no_quota(self, owner: Tenant) -> None:
        assert assert_ok(log(owner, "Bicycle", 3)) == {"success": True}
        assert_ok(log(owner, "tram", 0))

        answer = analytics(owner)
        assert (answer["total_searches"], answer["unique_queries"], answer["avg_response_time_ms"]) == (2, 2, 0)
        assert answer["top_queries"] == [{"query": "bicycle", "count": 1}, {"query": "tram", "count": 1}]
        assert answer["zero_result_queries"] == [{"query": "tram", "count": 1}]
        assert used(owner) == 0

    @pytest.mark.parametrize("kind", ["public", "search", "private"])
    def test_every_kind_of_key_may_log_searches(self, owner: Tenant, kind: str) -> None:
        assert_ok(owner.client(kind).post("/api/v1/search-log", json={"query": "x", "results_count": 1}))

        assert analytics(owner)["total_searches"] == 1

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"query": None}, "query"),
            ({"query": ""}, "query"),
            ({"query": " \t"}, "query"),
            ({"query": 5}, "query"),
            ({"query": "x" * 513}, "query"),
            ({"query": "ü" * 257}, "query"),
            ({"query": "a\x00"}, "query"),
            ({"results": None}, "results_count"),
            ({"results": -1}, "results_count"),
            ({"results": "3"}, "results_count"),
            ({"results": 2.5}, "results_count"),
            ({"results": 2**31}, "results_count"),
            ({"session_id": "s" * 65}, "session_id"),
            ({"session_id": 5}, "session_id"),
            ({"session_id": "a\x00"}, "session_id"),
            ({"timestamp": "yesterday"}, "timestamp"),
            ({"timestamp": 1700000000}, "timestamp"),
            ({"timestamp": ""}, "timestamp"),
        ],
    )
    def test_log_entry_with_invalid_fields_is_rejected(self, ann: Tenant, fields: dict[str, Any], field: str) -> None:
        assert_error(log(ann, **fields), 400, "validation_failed", field=field)

    def test_log_entry_ignores_unknown_fields(self, ann: Tenant) -> None:
        assert_ok(log(ann, user_agent="x", extra=[1]))

    def test_log_entry_timestamp_requires_a_time(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            tenant = register_tenant(app, "ann@example.com")

            assert_error(log(tenant, timestamp="2031-05-14"), 400, "validation_failed", field="timestamp")
            assert_ok(log(tenant, timestamp="2031-05-14T11:59"))
            assert analytics(tenant)["total_searches"] == 1

    @pytest.mark.parametrize(
        ("timestamp", "day"),
        [
            ("2031-05-14T12:05:00Z", "2031-05-14"),
            ("2031-05-14T12:00:00", "2031-05-14"),
            ("2031-05-14T01:30:00+02:00", "2031-05-13"),
            ("2031-05-13T23:30:00-02:00", "2031-05-14"),
            ("2031-04-14T12:00:00Z", "2031-04-14"),
            (None, "2031-05-14"),
        ],
    )
    def test_log_entry_counts_on_the_utc_day_of_its_timestamp(
        self, app: Flask, timestamp: str | None, day: str
    ) -> None:
        with time_machine.travel(NOON, tick=False):
            tenant = register_tenant(app, "ann@example.com")
            assert_ok(log(tenant, timestamp=timestamp))

            series = analytics(tenant)["series"]

        assert [entry["date"] for entry in series if entry["searches"]] == [day]

    @pytest.mark.parametrize("timestamp", ["2031-05-14T12:05:01Z", "2031-04-14T11:59:59Z", "2031-05-14T13:00:00-01:00"])
    def test_log_entry_more_than_5_minutes_ahead_or_30_days_old_is_rejected(self, app: Flask, timestamp: str) -> None:
        with time_machine.travel(NOON, tick=False):
            tenant = register_tenant(app, "ann@example.com")

            assert_error(log(tenant, timestamp=timestamp), 400, "validation_failed", field="timestamp")
            assert analytics(tenant)["total_searches"] == 0


def test_quota_dashboard_and_analytics_counts_are_consistent(owner: Tenant) -> None:
    owner.index(page(1))
    for _ in range(3):
        owner.find("page")
    owner.find("*")
    report(owner, 4)
    log(owner)

    info = assert_ok(owner.public.get("/v1/client-info"))["limits"]
    quota = assert_ok(owner.search.get("/v1/search?q=page"))["remaining_quota"]
    dashboard = assert_ok(owner.private.get("/dashboard"))["usage"]

    assert info["used_today"] == 3 + 1 + 4
    assert quota["used_today"] == dashboard["searches_this_month"] == info["used_today"] + 1
    assert analytics(owner)["total_searches"] == 3 + 1 + 1, (
        "q=* is charged but not counted; logged searches are counted but not charged"
    )
