"""Plans: limits of requests, searches, documents, keys, and sites, and the rate limit headers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from app.clock import now
from app.config import UNLIMITED
from app.counters.values import WindowRequest
from app.services.access.callers import Caller
from app.services.usage.quota import FILES_LIMIT, VISITOR_LIMIT, bucket_windows
from tests.callers import PASSWORD, ApiClient, Tenant, add_member, member_id, page, register_browser, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.gateway.callers import Gateway
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


def rate(response: TestResponse) -> tuple[int, int, int]:
    """Limit, remaining and reset."""
    limit, remaining, reset = (int(response.headers[f"X-RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))
    return limit, remaining, reset


def run(app: Flask, *arguments: str) -> Any:
    """Run an operator's command with --json. Returns its output."""
    result = app.test_cli_runner().invoke(args=[*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


class TestRequests:
    """Requests per minute and per day."""

    def test_rate_limit_headers_count_down(self, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False):
            first, second = rate(tenant.private.get("/sites")), rate(tenant.search.get("/v1/search?q=x"))

        assert first == (1200, 1199, int(NOON.timestamp()) + 60)
        assert second == (1200, 1198, int(NOON.timestamp()) + 60)

    def test_errors_and_unknown_routes_have_rate_limit_headers(self, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False):
            assert rate(tenant.private.get("/sites/999"))[1] == 1199
            assert rate(tenant.private.get("/nowhere"))[:2] == (1200, 1198)
            assert rate(tenant.private.put("/dashboard"))[:2] == (1200, 1197)
            assert rate(tenant.public.get("/nowhere"))[:2] == (VISITOR_LIMIT, VISITOR_LIMIT - 1)
            assert rate(ApiClient(tenant.app).get("/sites"))[:2] == (300, 299)
            assert rate(ApiClient(tenant.app).get("/nowhere"))[:2] == (300, 298)

    @pytest.mark.parametrize(("plan", "most"), [("free", 60), ("pro", FILES_LIMIT), ("business", FILES_LIMIT)])
    def test_agent_files_have_a_separate_bucket_bounded_by_the_plan(self, app: Flask, plan: str, most: int) -> None:
        account = SimpleNamespace(id=1, limits=app.extensions["runtime"].plans[plan])
        caller = cast(Caller, SimpleNamespace(member=None, kind="public", account=account))

        by_minute, by_day = bucket_windows(caller, charged=False, is_file=True)

        assert (by_minute.limit, by_day.limit) == (most, account.limits.requests_per_day)

    def test_exceeding_the_minute_limit_returns_429_until_the_window_ends(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", requests_per_minute=3)
        with time_machine.travel(NOON, tick=False) as clock:
            for _ in range(3):
                assert_ok(tenant.private.get("/sites"))
            clock.shift(20.5)
            rejected = tenant.private.get("/sites")

            body = assert_error(rejected, 429, "rate_limit_exceeded")
            assert body["retry_after"] == 40
            assert rate(rejected) == (3, 0, int(NOON.timestamp()) + 60)
            clock.shift(39)
            assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
            clock.shift(1)
            assert_ok(tenant.private.get("/sites"))

    def test_rejected_requests_do_not_count(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", requests_per_minute=2, requests_per_day=4)
        with time_machine.travel(NOON, tick=False) as clock:
            for _ in range(2):
                for _ in range(2):
                    assert_ok(tenant.private.get("/sites"))
                for _ in range(10):
                    assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
                clock.shift(60)
            rejected = tenant.private.get("/sites")

        assert rate(rejected)[0] == 4
        assert assert_error(rejected, 429, "rate_limit_exceeded")["retry_after"] == 12 * 3600 - 120

    def test_exceeding_the_daily_limit_returns_429_until_midnight_utc(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", requests_per_day=3)
        midnight = NOON + timedelta(hours=12)
        with time_machine.travel(midnight - timedelta(seconds=90), tick=False) as clock:
            for _ in range(3):
                assert_ok(tenant.private.get("/sites"))
            clock.shift(0.5)
            rejected = tenant.private.get("/sites")

            body = assert_error(rejected, 429, "rate_limit_exceeded")
            assert body["retry_after"] == 90
            assert rejected.headers["Retry-After"] == "90"
            assert rate(rejected) == (3, 0, int(midnight.timestamp()))
            clock.move_to(midnight - timedelta(milliseconds=1))
            assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
            clock.move_to(midnight)
            assert_ok(tenant.private.get("/sites"))

    def test_keys_of_an_account_share_one_bucket_but_public_keys_have_their_own(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            tenant = register_tenant(app, "ann@example.com")
            tenant.set_plan("pro", requests_per_minute=2)
            clock.shift(60)

            assert_ok(tenant.private.get("/sites"))
            assert_ok(tenant.search.get("/v1/search?q=x"))
            for client, path in ((tenant.search, "/v1/search?q=x"), (tenant.private, "/sites")):
                assert_error(client.get(path), 429, "rate_limit_exceeded")
            for _ in range(20):
                assert_ok(tenant.public.get("/v1/client-info"))
            assert_error(tenant.public.get("/v1/client-info"), 429, "rate_limit_exceeded")

    def test_sessions_of_a_member_share_600_requests_a_minute_without_a_daily_limit(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            tenant = register_tenant(app, "ann@example.com")
            tenant.set_plan("pro", requests_per_minute=2, requests_per_day=2)
            other = app.test_client()
            assert other.post("/login", json={"email": tenant.email, "password": PASSWORD}).status_code == 200
            counters = app.extensions["runtime"].counters
            counters.reset_all()
            for minute in range(2):
                reset = int(NOON.timestamp()) + 60 * (minute + 1)
                assert rate(tenant.browser.get("/plans")) == (600, 599, reset)
                window = f"m{member_id(tenant, tenant.email)}:m"
                counters.consume([WindowRequest(window, 600, 60, 595)], now=now().timestamp())
                for left, client in ((2, other), (1, tenant.browser), (0, other)):
                    assert rate(client.get("/plans")) == (600, left, reset)
                for client in (tenant.browser, other):
                    rejected = client.get("/plans")
                    assert assert_error(rejected, 429, "rate_limit_exceeded")["retry_after"] == 60
                    assert rate(rejected) == (600, 0, reset)
                clock.shift(60)
            assert_ok(tenant.private.get("/sites"))

    def test_members_have_separate_session_limits(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        colleague = add_member(tenant, "bob@example.com", "viewer")
        tenant.app.extensions["runtime"].counters.reset_all()
        monkeypatch.setattr("app.services.usage.quota.SESSION_LIMIT", 1)

        assert_ok(tenant.browser.get("/dashboard"))
        assert_error(tenant.browser.get("/dashboard"), 429, "rate_limit_exceeded")
        assert_ok(colleague.get("/dashboard"))

    def test_members_of_an_account_share_twice_a_members_limit(
        self, tenant: Tenant, stranger: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browsers = [tenant.browser, *(add_member(tenant, f"{name}@example.com", "viewer") for name in ("bo", "cy"))]
        tenant.app.extensions["runtime"].counters.reset_all()
        monkeypatch.setattr("app.services.usage.quota.SESSION_LIMIT", 3)

        statuses = [browser.get("/dashboard").status_code for browser in browsers for _ in range(3)]
        assert statuses == [200] * 6 + [429] * 3
        assert_ok(stranger.browser.get("/dashboard"))
        assert_ok(tenant.private.get("/dashboard"))

    def test_flooding_by_keys_does_not_block_logins_and_pages(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            tenant = register_tenant(app, "ann@example.com")
            tenant.set_plan("pro", requests_per_minute=3, requests_per_day=5)
            stopped = ApiClient(app, "svc_prv_no")
            flooding = (tenant.private, tenant.search, tenant.public, Gateway(tenant).client, stopped)
            for client in flooding:
                while client.get("/v1/client-info").status_code != 429:
                    pass
            login = app.test_client().post("/login", json={"email": tenant.email, "password": PASSWORD})
            for person in (ApiClient(app), tenant.browser):
                for path in ("/docs", "/plans", "/login"):
                    assert person.get(path, headers={"Accept": "text/html"}).status_code in (200, 303)
            for path in ("/dashboard", "/profile/edit", f"/api/sites/{tenant.site_id}/keys"):
                assert_ok(tenant.browser.get(path))
            key = assert_ok(tenant.browser.post(f"/api/keys/{tenant.keys['private']['id']}/toggle"))["key"]

        assert_ok(login)
        assert rate(login)[0] == 300
        assert key["status"] == "disabled"

    def test_requests_with_a_disabled_key_do_not_block_the_login_from_the_same_ip_address(self, tenant: Tenant) -> None:
        tenant.browser.post(f"/api/keys/{tenant.keys['private']['id']}/toggle")
        with time_machine.travel(NOON, tick=False):
            for _ in range(300):
                assert_error(tenant.private.get("/sites"), 401, "key_disabled")
            for path in ("/sites", "/login", "/docs"):
                assert_error(tenant.private.get(path), 429, "rate_limit_exceeded")
            for path in ("/login", "/password/forgot", "/docs", "/plans"):
                assert ApiClient(tenant.app).get(path, headers={"Accept": "text/html"}).status_code == 200
            login = tenant.app.test_client().post("/login", json={"email": tenant.email, "password": PASSWORD})

        assert_ok(login)

    def test_accounts_have_separate_request_limits(self, tenant: Tenant, stranger: Tenant) -> None:
        tenant.set_plan("pro", requests_per_minute=1)
        with time_machine.travel(NOON, tick=False):
            tenant.private.get("/sites")
            assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
            assert_ok(stranger.private.get("/sites"))

    def test_visitor_has_a_limit_of_their_own_with_public_keys(self, tenant: Tenant) -> None:
        def info(address: str) -> TestResponse:
            return tenant.public.get("/v1/client-info", environ_overrides={"REMOTE_ADDR": address})

        with time_machine.travel(NOON, tick=False):
            assert rate(info("10.0.0.1"))[:2] == (VISITOR_LIMIT, VISITOR_LIMIT - 1)
            for _ in range(VISITOR_LIMIT - 1):
                info("10.0.0.1")
            assert_error(info("10.0.0.1"), 429, "rate_limit_exceeded")
            assert_ok(info("10.0.0.2"))

    def test_public_key_headers_show_the_limit_with_fewer_requests_left(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", requests_per_minute=10)
        assert rate(tenant.public.get("/v1/client-info"))[:2] == (100, 99)

        tenant.set_plan("pro", requests_per_minute=VISITOR_LIMIT)
        assert rate(tenant.public.get("/v1/client-info"))[:2] == (VISITOR_LIMIT, VISITOR_LIMIT - 2)

    def test_usage_reports_with_public_keys_are_limited_to_30_a_minute_per_visitor(self, tenant: Tenant) -> None:
        report = {"operation": "search", "count": 1, "index": tenant.site["index"]}
        with time_machine.travel(NOON, tick=False):
            for _ in range(30):
                assert_ok(tenant.public.post("/v1/report-usage", json=report))
            assert_error(tenant.public.post("/v1/report-usage", json=report), 429, "rate_limit_exceeded")
            assert_ok(tenant.public.get("/v1/client-info"))
            elsewhere = {"REMOTE_ADDR": "10.0.0.2"}
            assert_ok(tenant.public.post("/v1/report-usage", json=report, environ_overrides=elsewhere))

    def test_anonymous_requests_are_limited_to_300_a_minute_per_ip_address(self, app: Flask) -> None:
        def call(address: str) -> TestResponse:
            return ApiClient(app).get("/sites", environ_overrides={"REMOTE_ADDR": address})

        with time_machine.travel(NOON, tick=False):
            for _ in range(300):
                assert_error(call("10.0.0.1"), 401, "missing_api_key")
            assert_error(call("10.0.0.1"), 429, "rate_limit_exceeded")
            assert_error(call("10.0.0.2"), 401, "missing_api_key")

    def test_requests_with_invalid_keys_count_towards_the_ip_address_limit(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            assert rate(ApiClient(app, "nonsense").get("/sites"))[:2] == (300, 299)
            assert rate(ApiClient(app, "nonsense").get("/sites"))[:2] == (300, 298)

    @pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
    def test_health_and_metrics_requests_are_not_counted(self, app: Flask, path: str) -> None:
        assert rate(ApiClient(app).get(path))[1] == 300
        assert rate(ApiClient(app).get("/sites"))[1] == 299

    def test_preflight_requests_are_not_counted(self, app: Flask) -> None:
        headers = {"Origin": "https://shop.example", "Access-Control-Request-Method": "GET"}
        response = ApiClient(app).call("OPTIONS", "/v1/search", headers=headers)

        assert "X-RateLimit-Limit" not in response.headers
        assert rate(ApiClient(app).get("/sites"))[1] == 299


class TestAddresses:
    """The caller's IP address."""

    def test_forwarded_for_header_is_ignored_by_default(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            for number in range(2):
                response = ApiClient(app).get("/sites", headers={"X-Forwarded-For": f"10.0.0.{number}"})
                assert rate(response)[1] == 299 - number

    def test_forwarded_for_uses_only_the_hops_of_trusted_proxies(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, trusted_proxies=2))

        def left(forwarded: str) -> int:
            return rate(ApiClient(app).get("/sites", headers={"X-Forwarded-For": forwarded}))[1]

        with time_machine.travel(NOON, tick=False):
            assert left("6.6.6.6, 10.0.0.1, 192.168.0.1") == 299
            assert left("7.7.7.7, 10.0.0.1, 192.168.0.1") == 298, (
                "values that a visitor sends must not change the result"
            )
            assert left('"6.6.6.6, 10.0.0.1, 192.168.0.1') == 297, "an unterminated quotation must not do so, either"
            assert left("10.0.0.2, 192.168.0.1") == 299
        close_app(app)

    def test_port_in_a_forwarded_address_does_not_make_a_new_visitor(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, trusted_proxies=1))

        def left(forwarded: str) -> int:
            return rate(ApiClient(app).get("/sites", headers={"X-Forwarded-For": forwarded}))[1]

        with time_machine.travel(NOON, tick=False):
            assert [left(hop) for hop in ("10.0.0.1", "10.0.0.1:4711", "10.0.0.1:4712")] == [299, 298, 297]
            v6 = ("2001:db8::1", "[2001:db8::1]:4711", "[2001:db8::1]", "2001:db8::2")
            assert [left(hop) for hop in v6] == [299, 298, 297, 296]
        close_app(app)


class TestSearches:
    """Searches per day."""

    def test_searches_per_day_are_limited_exactly(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", searches_per_day=3)

        answers = [tenant.search.get("/v1/search?q=x") for _ in range(5)]

        assert [response.status_code for response in answers] == [200, 200, 200, 429, 429]
        assert [response.get_json()["remaining_quota"]["used_today"] for response in answers[:3]] == [1, 2, 3]
        assert answers[0].get_json()["remaining_quota"]["daily_limit"] == 3

    def test_exhausted_search_quota_returns_429_until_midnight_utc(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", searches_per_day=1)
        with time_machine.travel(NOON, tick=False) as clock:
            tenant.search.get("/v1/search?q=x")
            clock.shift(1.5)
            rejected = tenant.search.get("/v1/search?q=x")

            assert assert_error(rejected, 429, "rate_limit_exceeded")["retry_after"] == 12 * 3600 - 1
            assert rate(rejected) == (1, 0, int((NOON + timedelta(hours=12)).timestamp()))
            clock.move_to(NOON + timedelta(hours=11, minutes=59, seconds=59))
            assert_error(tenant.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")
            clock.move_to(NOON + timedelta(hours=12))
            assert assert_ok(tenant.search.get("/v1/search?q=x"))["remaining_quota"]["used_today"] == 1

    def test_other_operations_continue_when_the_search_quota_is_exhausted(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", searches_per_day=0)
        assert_error(tenant.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")
        assert_error(tenant.private.post("/v1/search", json={"q": "x"}), 429, "rate_limit_exceeded")

        tenant.index(page(1))
        assert_ok(tenant.private.get("/dashboard"))
        assert assert_ok(tenant.public.get("/v1/client-info"))["limits"]["used_today"] == 0
        report = {"operation": "search", "count": 5, "index": tenant.site["index"]}
        assert_ok(tenant.private.post("/v1/report-usage", json=report))
        assert_ok(tenant.search.post("/api/v1/search-log", json={"query": "x", "results_count": 1}))

    def test_sites_of_an_account_share_the_search_quota(self, tenant: Tenant) -> None:
        other = assert_ok(tenant.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}), 201)["site"]
        tenant.set_plan("pro", searches_per_day=2)

        assert_ok(tenant.search.get("/v1/search?q=x"))
        assert_ok(tenant.private.get(f"/v1/search?q=x&site_id={other['id']}"))
        assert_error(tenant.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")

    def test_search_rejected_by_the_quota_counts_as_a_request(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", searches_per_day=0, requests_per_minute=5)
        with time_machine.travel(NOON, tick=False):
            for _ in range(5):
                tenant.search.get("/v1/search?q=x")

            assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")


class TestStoredThings:
    """Exceeding the limit of documents, keys, or sites returns 403, since waiting does not help."""

    def test_batch_beyond_the_document_limit_is_rejected_as_a_whole(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", documents=3)
        tenant.index(page(1), page(2))
        two_new = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(3), page(4)]})

        body = assert_error(two_new, 403, "document_limit_reached")
        assert "3 documents" in body["message"]
        assert sorted(tenant.found_ids("page")) == ["page-1", "page-2"], "the batch must not be indexed at all"
        assert tenant.index(page(1), page(2), page(3)) == {"success": True, "indexed": 3, "created": 1, "updated": 2}
        assert tenant.index(page(1, title="Other"))["updated"] == 1
        assert_error(
            tenant.private.post("/api/v1/index/bulk", json={"documents": [page(4)]}), 403, "document_limit_reached"
        )
        assert_ok(tenant.private.delete("/api/v1/index/destroy", json={"id": "page-1"}))
        assert tenant.index(page(4))["created"] == 1

    def test_document_limit_applies_to_all_sites_together(self, tenant: Tenant) -> None:
        other = assert_ok(tenant.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}), 201)["site"][
            "id"
        ]
        tenant.set_plan("pro", documents=1)
        tenant.index(page(1))

        response = tenant.private.post(f"/api/v1/index/bulk?site_id={other}", json={"documents": [page(1)]})

        assert_error(response, 403, "document_limit_reached")

    def test_key_limit_includes_disabled_keys(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", keys=4)
        path = f"/api/sites/{tenant.site_id}/keys"
        fourth = assert_ok(tenant.browser.post(path, json={"name": "4"}), 201)["key"]["id"]
        tenant.browser.post(f"/api/keys/{fourth}/toggle")

        assert_error(tenant.browser.post(path, json={"name": "5"}), 403, "key_limit_reached")
        assert_ok(tenant.browser.delete(f"{path}/{fourth}"))
        assert_ok(tenant.browser.post(path, json={"name": "5"}), 201)

    def test_site_limit_is_enforced_until_a_site_is_deleted(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", sites=2)
        body = {"name": "B", "url": "https://b.example/"}
        second = assert_ok(tenant.browser.post("/sites", json=body), 201)["site"]["id"]

        assert_error(tenant.browser.post("/sites", json=body), 403, "site_limit_reached")
        assert_ok(tenant.browser.delete(f"/sites/{second}"))
        assert_ok(tenant.browser.post("/sites", json=body), 201)

    def test_lower_plan_preserves_existing_documents_and_keys(self, tenant: Tenant) -> None:
        tenant.index(page(1), page(2))
        tenant.set_plan("free", documents=1, keys=1)

        assert sorted(tenant.found_ids("page")) == ["page-1", "page-2"]
        assert tenant.index(page(1))["updated"] == 1
        assert_ok(tenant.public.get("/v1/client-info"))


SHOWN = [
    ("free", 100, 1_000, 2, 1, 0, False),
    ("starter", 1_000, 10_000, 5, 3, 20, False),
    ("pro", 10_000, 100_000, 10, 10, 200, False),
    ("business", UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, True),
    ("enterprise", UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, True),
]


@pytest.mark.parametrize(("plan", "searches", "documents", "keys", "sites", "questions", "unlimited"), SHOWN)
def test_api_shows_the_limits_of_each_plan(
    tenant: Tenant, plan: str, searches: int, documents: int, keys: int, sites: int, questions: int, unlimited: bool
) -> None:
    tenant.set_plan(plan)

    info = assert_ok(tenant.public.get("/v1/client-info"))
    dashboard = assert_ok(tenant.private.get("/dashboard"))
    quota = assert_ok(tenant.search.get("/v1/search?q=x"))["remaining_quota"]

    assert info["plan"] == dashboard["plan"] == plan
    assert info["limits"] == {"daily_limit": searches, "used_today": 0, "unlimited": unlimited}
    assert quota == {"daily_limit": searches, "used_today": 1, "unlimited": unlimited}
    monthly = UNLIMITED if unlimited else searches * 30
    assert info["usage_limits"] == {
        "max_indexed_pages": documents, "search_queries_per_month": monthly, "unlimited": unlimited,
    }  # fmt: skip
    assert dashboard["limits"] == {
        "max_sites": sites, "max_api_keys": keys, "searches_per_month": monthly, "asks_per_day": questions,
        "unlimited": unlimited,
    }  # fmt: skip


@pytest.mark.parametrize(("plan", "minute"), [("free", 60), ("starter", 300), ("pro", 1200), ("business", 3000)])
def test_requests_per_minute_follow_the_plan(tenant: Tenant, plan: str, minute: int) -> None:
    tenant.set_plan(plan)

    assert rate(tenant.private.get("/sites"))[0] == minute


def test_unlimited_requests_are_an_integer_in_the_headers(tenant: Tenant) -> None:
    tenant.set_plan("pro", requests_per_minute="unlimited")

    assert rate(tenant.private.get("/sites"))[:2] == (UNLIMITED, UNLIMITED)


def test_one_unlimited_quota_does_not_make_other_quotas_unlimited(tenant: Tenant) -> None:
    tenant.set_plan("pro", searches_per_day="unlimited")

    info = assert_ok(tenant.public.get("/v1/client-info"))
    assert info["limits"]["unlimited"] is True
    assert info["usage_limits"] == {
        "max_indexed_pages": 100_000, "search_queries_per_month": UNLIMITED, "unlimited": False,
    }  # fmt: skip


class TestCommands:
    """Account commands for operators."""

    def test_account_create_makes_an_account_that_can_log_in(self, app: Flask) -> None:
        made = run(
            app, "account", "create", "--email", "Bob@Example.com", "--name", "Bob",
            "--password", PASSWORD, "--plan", "starter",
        )  # fmt: skip

        assert made["plan"] == "starter"
        answer = ApiClient(app).post("/login", json={"email": "bob@example.COM", "password": PASSWORD})
        assert assert_ok(answer)["user"]["email"] == "Bob@Example.com"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["create", "--email", "nonsense", "--name", "x", "--password", PASSWORD],
            ["create", "--email", "ann@example.com", "--name", "x", "--password", PASSWORD],
            ["create", "--email", "b@example.com", "--name", " ", "--password", PASSWORD],
            ["create", "--email", "b@example.com", "--name", "x", "--password", "short"],
            ["create", "--email", "b@example.com", "--name", "x", "--password", "1234567890"],
            ["create", "--email", "b@example.com", "--name", "x", "--password", PASSWORD, "--plan", "gold"],
            ["set-plan", "nobody@example.com", "pro"],
            ["set-plan", "ann@example.com", "gold"],
            ["set-plan", "ann@example.com", "pro", "--keys", "many"],
            ["set-plan", "ann@example.com", "pro", "--keys", "-1"],
            ["reset-password", "nobody@example.com", "--password", PASSWORD],
            ["reset-password", "ann@example.com", "--password", "short"],
            ["reset-password", "ann@example.com", "--password", "ann@example.com"],
            ["delete", "nobody@example.com", "--yes"],
        ],
        ids=" ".join,
    )
    def test_invalid_account_command_fails_with_a_message_and_changes_nothing(
        self, app: Flask, arguments: list[str]
    ) -> None:
        register_browser(app, "ann@example.com")
        before = run(app, "account", "list")

        result = app.test_cli_runner().invoke(args=["account", *arguments])

        assert result.exit_code != 0
        assert result.output
        assert "Traceback" not in result.output
        assert run(app, "account", "list") == before

    def test_plan_change_takes_effect_with_the_next_request(self, tenant: Tenant) -> None:
        assert rate(tenant.private.get("/sites"))[0] == 1200
        tenant.set_plan("free", requests_per_minute=70)
        assert rate(tenant.private.get("/sites"))[0] == 70
        assert assert_ok(tenant.private.get("/dashboard"))["plan"] == "free"
        assert assert_ok(tenant.private.get(f"/sites/{tenant.site_id}"))["site"]["plan"] == "free"

    def test_set_plan_clears_earlier_overrides(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", keys=77, sites="unlimited")
        tenant.set_plan("pro", documents=5)

        limits = assert_ok(tenant.private.get("/dashboard"))["limits"]
        assert (limits["max_api_keys"], limits["max_sites"]) == (10, 10)
        (account,) = run(tenant.app, "account", "list")
        assert account["limits"] == {"documents": 5}

    def test_reset_password_ends_all_sessions_but_not_keys(self, tenant: Tenant) -> None:
        run(tenant.app, "account", "reset-password", tenant.email, "--password", "another long password")

        assert_error(tenant.browser.get("/dashboard"), 401, "missing_api_key")
        assert_ok(tenant.private.get("/dashboard"))
        login = {"email": tenant.email, "password": "another long password"}
        assert_ok(ApiClient(tenant.app).post("/login", json=login))

    def test_account_delete_invalidates_its_keys_and_sessions(self, app: Flask) -> None:
        tenant = register_tenant(app, "gone@example.com")
        tenant.index(page(1))

        run(app, "account", "delete", tenant.email, "--yes")

        assert run(app, "account", "list") == []
        assert_error(tenant.search.get("/v1/search?q=x"), 401, "invalid_api_key")
        assert_error(tenant.browser.get("/dashboard"), 401, "missing_api_key")
