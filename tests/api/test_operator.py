"""The operator API: who may use it, what it changes, and what it never reveals."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from flask import Flask

from app.application import create_app
from app.counters.values import CountersUnavailable
from app.models import AuditEntry
from app.plans import LIMIT_NAMES
from app.runtime import Runtime
from app.services.audit_log.actors import Actor
from app.services.usage.quota import OPERATOR_WINDOW
from app.web.callers import find_actor
from schemas.operator import OwnLimitsSchema, QuotasSchema
from tests.callers import PASSWORD, ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer, mail_server, mail_settings
from tests.responses import assert_error, assert_ok

TOKEN = "operator token number one of the tests".replace(" ", "-")
NEXT_TOKEN = "operator token number two of the tests".replace(" ", "-")
ACCOUNTS = "/api/operator/accounts"
NOON = datetime(2031, 5, 14, 12, tzinfo=UTC)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """An installation with an operator token."""
    made = make_app(make_settings(tmp_path, operator_token=TOKEN))
    yield made
    close_app(made)


@pytest.fixture
def operator(app: Flask) -> ApiClient:
    return ApiClient(app, TOKEN)


def account_of(operator: ApiClient, account_id: int) -> dict[str, Any]:
    shown: dict[str, Any] = assert_ok(operator.get(f"{ACCOUNTS}/{account_id}"))["account"]
    return shown


def patch(operator: ApiClient, account_id: int, **changes: Any) -> dict[str, Any]:
    shown: dict[str, Any] = assert_ok(operator.call("PATCH", f"{ACCOUNTS}/{account_id}", json=changes))["account"]
    return shown


def listed(operator: ApiClient, **query: Any) -> list[str]:
    accounts = assert_ok(operator.get(ACCOUNTS, query_string=query))["accounts"]
    return [account["email"] for account in accounts]


CALLS = [
    ("GET", ACCOUNTS),
    ("POST", ACCOUNTS),
    ("GET", f"{ACCOUNTS}/1"),
    ("PATCH", f"{ACCOUNTS}/1"),
    ("DELETE", f"{ACCOUNTS}/1"),
    ("POST", f"{ACCOUNTS}/1/suspend"),
    ("POST", f"{ACCOUNTS}/1/resume"),
    ("GET", "/api/operator/usage?month=2026-11"),
    ("GET", "/api/operator/sites"),
    ("GET", "/api/operator/engines"),
]


class TestAccess:
    """Access to the operator API."""

    @pytest.mark.parametrize(("method", "path"), CALLS)
    def test_operator_urls_return_404_for_every_caller_without_the_setting(
        self, tmp_path: Path, method: str, path: str
    ) -> None:
        app = make_app(make_settings(tmp_path))
        try:
            tenant = register_tenant(app, "ann@example.com")
            for caller in (ApiClient(app), ApiClient(app, TOKEN), ApiClient(app, ""), tenant.private, tenant.browser):
                error = assert_error(caller.call(method, path), 404, "not_found")
                assert error["message"] == "This URL does not exist."
        finally:
            close_app(app)

    @pytest.mark.parametrize(("method", "path"), CALLS)
    def test_only_the_operator_token_is_accepted(self, tenant: Tenant, method: str, path: str) -> None:
        assert_error(ApiClient(tenant.app).call(method, path), 401, "missing_api_key")
        for wrong in ("x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), f"{TOKEN} {TOKEN}", "é" * 40):
            headers = {"Authorization": f"Bearer {wrong}".encode().decode("latin-1")}
            response = ApiClient(tenant.app).call(method, path, headers=headers)
            error = assert_error(response, 401, "invalid_api_key")
            assert error["message"] == "The operator token is invalid."
        for kind in ("public", "search", "private"):
            assert_error(tenant.client(kind).call(method, path), 403, "insufficient_permission")
        assert_error(tenant.browser.call(method, path), 403, "insufficient_permission")
        assert_error(
            tenant.browser.client.open(path, method=method), 403, "insufficient_permission"
        )  # Without its CSRF token.
        assert_ok(tenant.browser.get("/dashboard"))

    def test_key_of_a_suspended_account_gets_403(self, tenant: Tenant, operator: ApiClient) -> None:
        assert_ok(operator.post(f"{ACCOUNTS}/{tenant.account_id}/suspend", json={}))

        assert_error(tenant.private.get(ACCOUNTS), 403, "account_suspended")

    def test_operator_token_is_not_accepted_outside_the_operator_api(self, tenant: Tenant, operator: ApiClient) -> None:
        for path in ("/sites", "/v1/client-info", "/v1/search?q=x", "/api/audit-log"):
            assert_error(operator.get(path), 401, "invalid_api_key")

    def test_revoked_but_cached_key_gets_the_same_response_as_any_invalid_key(
        self, tenant: Tenant, part: Runtime
    ) -> None:
        assert_ok(tenant.private.get("/sites"))
        assert_ok(tenant.browser.delete(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['private']['id']}"))
        error = assert_error(tenant.private.get(ACCOUNTS), 401, "invalid_api_key")
        assert error["message"] == "The operator token is invalid."
        assert_ok(tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json={"name": "B"}), 201)
        part.settings = replace(part.settings, operator_token="")

        assert_error(tenant.private.get(ACCOUNTS), 404, "not_found")

    def test_both_tokens_work_during_a_rotation(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, operator_token=f"{NEXT_TOKEN} {TOKEN}"))
        try:
            for token in (TOKEN, NEXT_TOKEN):
                assert_ok(ApiClient(app, token).get(ACCOUNTS))
            assert_error(ApiClient(app, f"{NEXT_TOKEN} {TOKEN}").get(ACCOUNTS), 401, "invalid_api_key")
        finally:
            close_app(app)

    def test_token_guesses_are_limited_by_ip_address_and_do_not_lock_out_the_operator(
        self, operator: ApiClient
    ) -> None:
        with time_machine.travel(NOON, tick=False):
            guesser = ApiClient(operator._client.application, "x" * 40)
            statuses = [guesser.get(ACCOUNTS).status_code for _ in range(302)]
            assert statuses == [401] * 300 + [429] * 2
            assert_ok(operator.get(ACCOUNTS))

    def test_requests_with_the_operator_token_are_rate_limited(self, app: Flask, operator: ApiClient) -> None:
        with time_machine.travel(NOON, tick=False):
            first = operator.get(ACCOUNTS)
            assert (first.headers["X-RateLimit-Limit"], first.headers["X-RateLimit-Remaining"]) == ("600", "599")
            app.extensions["runtime"].counters.consume([OPERATOR_WINDOW._replace(cost=599)], now=NOON.timestamp())
            assert_error(operator.get(ACCOUNTS), 429, "rate_limit_exceeded")

    def test_without_counters_reads_continue_and_writes_are_rejected(
        self, tenant: Tenant, part: Runtime, operator: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise CountersUnavailable

        monkeypatch.setattr(part.counters, "consume", fail)

        assert_ok(operator.get(ACCOUNTS))
        response = operator.post(f"{ACCOUNTS}/{tenant.account_id}/suspend", json={})
        assert_error(response, 503, "counters_unavailable")
        assert account_of(operator, tenant.account_id)["status"] == "active"

    def test_operator_token_never_appears_in_logs_or_responses(
        self, tenant: Tenant, operator: ApiClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        responses = [operator.call(method, path, json={}) for method, path in CALLS]
        responses.append(operator.get("/api/operator/accounts?limit=x"))
        responses.append(operator.get("/sites"))

        assert caplog.records
        assert TOKEN not in caplog.text
        assert not any(TOKEN in response.text for response in responses)

    def test_hints_for_unknown_paths_never_name_an_operator_route(self, tenant: Tenant) -> None:
        for path in ("/api/operator/account", "/api/accounts", "/v1/operator/usage"):
            assert "operator" not in assert_error(tenant.private.get(path), 404, "not_found")["message"]


class TestAccounts:
    """Creating, listing, changing, and deleting accounts."""

    def test_owner_of_an_account_created_with_a_password_can_log_in_immediately(
        self, app: Flask, operator: ApiClient
    ) -> None:
        body = {"name": " Bo ", "email": "bo@example.com", "password": PASSWORD, "plan": "starter"}
        response = operator.post(ACCOUNTS, json=body)
        account = assert_ok(response, 201)["account"]

        assert response.headers["Location"] == f"{ACCOUNTS}/{account['id']}"
        assert (account["name"], account["plan"], account["status"]) == ("Bo", "starter", "active")
        assert account == account_of(operator, account["id"])
        login = app.test_client().post("/login", json={"email": "bo@example.com", "password": PASSWORD})
        assert assert_ok(login)["user"]["id"] == account["id"]

    def test_new_account_is_on_the_default_plan(self, operator: ApiClient) -> None:
        body = {"name": "Bo", "email": "bo@example.com", "password": PASSWORD}

        assert assert_ok(operator.post(ACCOUNTS, json=body), 201)["account"]["plan"] == "pro"

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"email": "ann@example.com"}, "email"),
            ({"email": "nobody"}, "email"),
            ({"name": " "}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"password": "short"}, "password"),
            ({"password": "passwordpassword"}, "password"),
            ({"password": None}, "password"),
            ({"plan": "golden"}, "plan"),
            ({"plan": "pro\x00"}, "plan"),
            ({"plan": None}, "plan"),
            ({"role": "owner"}, "role"),
            ({"id": 1}, "id"),
        ],
    )
    def test_invalid_account_is_rejected(
        self, tenant: Tenant, operator: ApiClient, change: dict[str, Any], field: str
    ) -> None:
        body = {"name": "Bo", "email": "bo@example.com", "password": PASSWORD, **change}

        assert_error(operator.post(ACCOUNTS, json=body), 400, "validation_failed", field=field)
        assert listed(operator) == ["ann@example.com"]

    def test_without_email_a_password_is_required(self, operator: ApiClient) -> None:
        body = {"name": "Bo", "email": "bo@example.com"}

        assert_error(operator.post(ACCOUNTS, json=body), 400, "validation_failed", field="password")

    def test_accounts_can_be_filtered_sorted_and_paginated(self, part: Runtime, operator: ApiClient) -> None:
        app = operator._client.application
        with time_machine.travel(NOON, tick=False) as clock:
            for number, email in enumerate(("zoe@example.com", "bob@example.com", "Eva@example.com")):
                clock.shift(60)
                tenant = register_tenant(app, email)
                tenant.index(*(page(n) for n in range(number + 1)))
                for q in range(3 - number):
                    tenant.find(f"page {q}")
            part.usage_copies.finish()
            patch(operator, 2, plan="starter", limits={"documents": 2})

            assert listed(operator) == ["Eva@example.com", "bob@example.com", "zoe@example.com"]
            assert listed(operator, sort="searches")[0] == "zoe@example.com"
            assert listed(operator, sort="documents")[0] == "Eva@example.com"
            assert listed(operator, sort="quota")[0] == "bob@example.com"
            assert listed(operator, q="EVA@") == ["Eva@example.com"]
            assert listed(operator, q="  3 ") == ["Eva@example.com"]
            assert listed(operator, q="%") == []
            assert listed(operator, plan="starter") == ["bob@example.com"]
            assert listed(operator, status="suspended") == []
            answer = assert_ok(operator.get(f"{ACCOUNTS}?limit=1&offset=1&sort=created_at"))
            assert (answer["total"], answer["limit"], answer["offset"]) == (3, 1, 1)
            assert [account["id"] for account in answer["accounts"]] == [2]
            assert answer["accounts"][0]["usage"] == {
                "searches_today": 2, "searches_this_month": 2, "asks_this_month": 0, "documents": 2, "sites": 1,
                "keys": 3,
            }  # fmt: skip
            assert answer["accounts"][0]["quotas"]["documents"] == 2
            assert answer["accounts"][0]["limits"] == {"documents": 2}

    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=101", "limit=x", "offset=-1", "sort=email", "status=deleted", "q=%00", "plan=%00"]
    )
    def test_invalid_query_is_rejected(self, operator: ApiClient, query: str) -> None:
        assert_error(operator.get(f"{ACCOUNTS}?{query}"), 400, "validation_failed", field=query.partition("=")[0])

    def test_account_on_a_removed_plan_is_shown_without_quotas(
        self, tenant: Tenant, part: Runtime, operator: ApiClient
    ) -> None:
        part.plans._plans.pop("pro")

        assert account_of(operator, tenant.account_id)["quotas"] is None

    def test_plan_and_limit_overrides_change_separately_and_apply_to_the_next_request(
        self, tenant: Tenant, operator: ApiClient
    ) -> None:
        other = create_app(tenant.app.extensions["runtime"].settings, background=False)
        try:
            elsewhere = ApiClient(other, tenant.tokens["public"])

            def plan_elsewhere() -> tuple[str, int]:
                shown = assert_ok(elsewhere.get("/v1/client-info"))
                return shown["plan"], shown["limits"]["daily_limit"]

            assert plan_elsewhere() == ("pro", 10_000)
            assert patch(operator, tenant.account_id, limits={"searches_per_day": 7, "keys": None})["limits"] == {
                "searches_per_day": 7, "keys": None,
            }  # fmt: skip
            assert plan_elsewhere() == ("pro", 7)
            account = patch(operator, tenant.account_id, plan="starter")
            assert (account["limits"], account["quotas"]["keys"]) == ({"searches_per_day": 7, "keys": None}, None)
            assert plan_elsewhere() == ("starter", 7)
            assert patch(operator, tenant.account_id, limits={})["limits"] == {}
            assert plan_elsewhere() == ("starter", 1_000)
        finally:
            close_app(other)

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({}, None),
            ({"plan": "golden"}, "plan"),
            ({"plan": None}, "plan"),
            ({"limits": None}, "limits"),
            ({"limits": {"searches": 1}}, "limits.searches"),
            ({"limits": {"documents": -1}}, "limits.documents"),
            ({"limits": {"documents": 2147483647}}, "limits.documents"),
            ({"limits": {"documents": "unlimited"}}, "limits.documents"),
            ({"limits": {"documents": True}}, "limits.documents"),
            ({"limits": [1]}, "limits"),
            ({"name": "Eve"}, "name"),
            ({"suspended_at": None}, "suspended_at"),
        ],
    )
    def test_invalid_change_is_rejected(
        self, tenant: Tenant, operator: ApiClient, changes: dict[str, Any], field: str | None
    ) -> None:
        before = account_of(operator, tenant.account_id)
        response = operator.call("PATCH", f"{ACCOUNTS}/{tenant.account_id}", json=changes)

        assert_error(response, 400, "validation_failed", **({} if field is None else {"field": field}))
        assert account_of(operator, tenant.account_id) == before

    @pytest.mark.parametrize("account_id", ["2", "0", "-1", "9223372036854775807", "9223372036854775808", "9" * 30])
    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("GET", "", None),
            ("PATCH", "", {"plan": "pro"}),
            ("DELETE", "", None),
            ("POST", "/suspend", {}),
            ("POST", "/resume", None),
        ],
    )
    def test_unknown_account_returns_404(
        self, tenant: Tenant, operator: ApiClient, account_id: str, method: str, path: str, body: Any
    ) -> None:
        options = {} if body is None else {"json": body}
        response = operator.call(method, f"{ACCOUNTS}/{account_id}{path}", **options)

        assert response.status_code == 404
        assert response.get_json()["error"] in ("account_not_found", "not_found")
        if account_id == "2":
            assert_error(response, 404, "account_not_found")

    def test_deleting_an_account_invalidates_its_keys_in_every_process(
        self, tenant: Tenant, stranger: Tenant, operator: ApiClient
    ) -> None:
        tenant.index(page(1))
        other = create_app(tenant.app.extensions["runtime"].settings, background=False)
        try:
            elsewhere = ApiClient(other, tenant.tokens["search"])
            assert_ok(elsewhere.get("/v1/search?q=page"))

            assert assert_ok(operator.delete(f"{ACCOUNTS}/{tenant.account_id}")) == {"success": True}

            assert_error(elsewhere.get("/v1/search?q=page"), 401, "invalid_api_key")
            assert_error(operator.get(f"{ACCOUNTS}/{tenant.account_id}"), 404, "account_not_found")
            assert listed(operator) == [stranger.email]
            assert_ok(stranger.search.get("/v1/search?q=page"))
        finally:
            close_app(other)

    def test_deletion_with_a_body_is_rejected(self, tenant: Tenant, operator: ApiClient) -> None:
        """The caller may mean it as a condition."""
        response = operator.delete(f"{ACCOUNTS}/{tenant.account_id}", json={"plan": "free"})

        assert_error(response, 400, "validation_failed", field="plan")
        assert listed(operator) == [tenant.email]


class TestSuspension:
    """Suspending and resuming accounts."""

    def test_suspended_account_gets_403_with_the_reason_in_every_process_until_resumed(
        self, tenant: Tenant, stranger: Tenant, operator: ApiClient
    ) -> None:
        path = f"{ACCOUNTS}/{tenant.account_id}"
        other = create_app(tenant.app.extensions["runtime"].settings, background=False)
        try:
            elsewhere = ApiClient(other, tenant.tokens["search"])
            assert_ok(elsewhere.get("/v1/search?q=page"))

            body = {"reason": " Please pay your bill. "}
            account = assert_ok(operator.post(f"{path}/suspend", json=body))["account"]

            assert (account["status"], account["suspension_reason"]) == ("suspended", "Please pay your bill.")
            assert account["suspended_at"]
            assert listed(operator, status="suspended") == [tenant.email]
            for caller in (elsewhere, tenant.private, tenant.browser):
                error = assert_error(caller.get("/sites" if caller is not elsewhere else "/v1/search?q=page"), 403,
                                     "account_suspended")  # fmt: skip
                assert error["message"] == "The account is suspended. Please pay your bill."
            assert_ok(stranger.private.get("/sites"))

            account = assert_ok(operator.post(f"{path}/resume"))["account"]
            assert (account["status"], account["suspended_at"], account["suspension_reason"]) == ("active", None, "")
            assert_ok(elsewhere.get("/v1/search?q=page"))
            assert_ok(operator.post(f"{path}/resume"))
        finally:
            close_app(other)

    @pytest.mark.parametrize("reason", ["x" * 501, 1, None, "a\x00b"])
    def test_invalid_reason_is_rejected(self, tenant: Tenant, operator: ApiClient, reason: Any) -> None:
        response = operator.post(f"{ACCOUNTS}/{tenant.account_id}/suspend", json={"reason": reason})

        assert_error(response, 400, "validation_failed", field="reason")
        assert_ok(tenant.browser.get("/dashboard"))


def test_changes_are_logged_with_the_operator_as_actor(tenant: Tenant, part: Runtime, operator: ApiClient) -> None:
    path = f"{ACCOUNTS}/{tenant.account_id}"
    patch(operator, tenant.account_id, plan="starter", limits={"keys": 9})
    assert_ok(operator.post(f"{path}/suspend", json={"reason": "Unpaid"}))
    assert_ok(operator.post(f"{path}/resume"))
    created = assert_ok(
        operator.post(ACCOUNTS, json={"name": "Bo", "email": "bo@example.com", "password": PASSWORD}), 201
    )["account"]

    entries = assert_ok(tenant.browser.get("/api/audit-log?kind=account"))["entries"]
    assert [[change["field"] for change in entry["changes"]] for entry in reversed(entries)] == [
        ["plan", "limit_overrides"], ["suspended_at", "suspension_reason"], ["suspended_at", "suspension_reason"],
    ]  # fmt: skip
    assert {(entry["actor"]["kind"], entry["actor"]["name"], entry["actor"]["address"]) for entry in entries} == {
        ("operator", "Operator API", "127.0.0.1")
    }
    with part.database.read() as session:
        of_new = session.query(AuditEntry).filter_by(account_id=created["id"]).all()
    assert [(entry.actor_kind, entry.action, entry.kind) for entry in of_new] == [("operator", "created", "member")]


def test_requests_of_customers_are_not_logged_as_the_operators(tenant: Tenant) -> None:
    with tenant.app.test_request_context("/"), tenant.app.extensions["runtime"].database.read() as session:
        assert find_actor(session) == Actor("system", "Service")


def test_schemas_list_exactly_the_limits_of_plans() -> None:
    assert tuple(OwnLimitsSchema().fields) == tuple(QuotasSchema().fields) == LIMIT_NAMES


class TestUsage:
    """The usage report of a month."""

    def test_usage_report_equals_the_figures_that_customers_see(
        self, tenant: Tenant, stranger: Tenant, operator: ApiClient
    ) -> None:
        tenant.index(page(1), page(2))
        assert_ok(tenant.private.delete("/api/v1/index/destroy?id=page-2"))
        tenant.find("page")
        tenant.find("content")
        report = {"operation": "indexing", "count": 5, "index": stranger.site["index"]}
        assert_ok(stranger.private.post("/v1/report-usage", json=report))
        patch(operator, stranger.account_id, limits={"searches_per_day": 0})
        for _ in range(3):
            assert_error(stranger.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")
        with time_machine.travel(datetime.now(UTC)):
            month = f"{datetime.now(UTC):%Y-%m}"
            answer = assert_ok(operator.get(f"/api/operator/usage?month={month}"))

        assert (answer["month"], answer["final"]) == (month, False)
        rows = {row["account_id"]: row for row in answer["accounts"]}
        assert rows[tenant.account_id] == {
            "account_id": tenant.account_id, "email": tenant.email, "name": "Somebody", "plan": "pro", "searches": 2,
            "refused_searches": 0, "indexing_operations": 3, "most_documents": 2, "pages_crawled": 0,
        }  # fmt: skip
        for each in (tenant, stranger):
            usage = assert_ok(each.browser.get("/dashboard"))["usage"]
            row = rows[each.account_id]
            assert [usage[name] for name in SEEN] == [row[name] for name in SEEN.values()]
        assert sum(row["refused_searches"] for row in answer["accounts"]) == 3
        assert sum(row["indexing_operations"] for row in answer["accounts"]) == 8

    def test_csv_has_the_same_figures_and_no_formulas(self, app: Flask, operator: ApiClient) -> None:
        body = {"name": "=HYPERLINK(1)", "email": "bo@example.com", "password": PASSWORD}
        assert_ok(operator.post(ACCOUNTS, json=body), 201)
        path = f"/api/operator/usage?month={datetime.now(UTC):%Y-%m}"

        response = operator.get(path, headers={"Accept": "text/csv"})

        assert response.mimetype == "text/csv"
        (row,) = csv.DictReader(io.StringIO(response.text))
        answer = assert_ok(operator.get(path))
        assert row.pop("name") == "'=HYPERLINK(1)"
        assert (row.pop("month"), row.pop("final")) == (answer["month"], "false")
        assert row == {name: str(value) for name, value in answer["accounts"][0].items() if name != "name"}

    @pytest.mark.parametrize(
        "month", ["", "2026", "2026-13", "2026-00", "2026-1", "0001-01", "2026-11-01", "２０２６-11", "9999-12", "x"]
    )
    def test_invalid_month_is_rejected(self, operator: ApiClient, month: str) -> None:
        response = operator.get("/api/operator/usage", query_string={"month": month})

        assert_error(response, 400, "validation_failed", field="month")

    def test_month_is_required(self, operator: ApiClient) -> None:
        assert_error(operator.get("/api/operator/usage"), 400, "validation_failed", field="month")

    def test_month_before_the_first_account_is_empty_and_final(self, tenant: Tenant, operator: ApiClient) -> None:
        answer = assert_ok(operator.get("/api/operator/usage?month=1999-12"))

        assert answer == {"month": "1999-12", "final": True, "accounts": []}


SEEN = {
    "searches_this_month": "searches",
    "refused_searches_this_month": "refused_searches",
    "indexing_operations_this_month": "indexing_operations",
    "most_indexed_pages_this_month": "most_documents",
    "pages_crawled_this_month": "pages_crawled",
}
"""Maps the figures that customers see to the operator report's figures."""


class TestInvitations:
    """Accounts that are created as invitations by email."""

    @pytest.fixture
    def server(self) -> Iterator[MailServer]:
        with mail_server() as made:
            yield made

    @pytest.fixture
    def app(self, tmp_path: Path, server: MailServer) -> Iterator[Flask]:
        made = make_app(make_settings(tmp_path, operator_token=TOKEN, **mail_settings(server)))
        yield made
        close_app(made)

    def invite(self, part: Runtime, operator: ApiClient, server: MailServer) -> str:
        body = {"name": "Bo", "email": "bo@example.com", "plan": "starter"}
        assert_ok(operator.post(ACCOUNTS, json=body), 201)
        part.email_sender.send_due()
        (mail,) = server.emails
        assert mail.to == ["bo@example.com"]
        (link,) = re.findall(
            r"https://search\.example\.com(/password/reset\?token=[\w-]{43})$", mail.text, re.MULTILINE
        )
        return str(link)

    def test_invited_owner_chooses_a_password_once(
        self, app: Flask, part: Runtime, operator: ApiClient, server: MailServer
    ) -> None:
        link = self.invite(part, operator, server)
        token = parse_qs(urlsplit(link).query)["token"][0]
        form = {"token": token, "new_password": PASSWORD}

        assert app.test_client().get(f"/password/reset?token={token}").status_code == 200
        assert app.test_client().post("/password/reset", data=form).status_code == 303
        assert_ok(app.test_client().post("/login", json={"email": "bo@example.com", "password": PASSWORD}))
        assert app.test_client().post("/password/reset", data=form).status_code == 400

    def test_account_create_command_sends_the_same_invitation(
        self, app: Flask, part: Runtime, server: MailServer
    ) -> None:
        command = ["account", "create", "--email", "bo@example.com", "--name", "Bo", "--invite"]
        result = app.test_cli_runner().invoke(args=command)
        assert (result.exit_code, "invitation is on its way" in result.output) == (0, True), result.output
        part.email_sender.send_due()

        assert ["/password/reset?token=" in mail.text for mail in server.emails] == [True]

    def test_invitation_links_to_the_login_page_if_passwords_are_turned_off(
        self, tmp_path: Path, server: MailServer
    ) -> None:
        oidc = {"oidc_issuer": "https://id.example.com", "oidc_client_id": "a", "oidc_client_secret": "b"}
        settings = make_settings(
            tmp_path / "other", operator_token=TOKEN, password_login=False, **oidc, **mail_settings(server)
        )
        made = make_app(settings)
        try:
            body = {"name": "Bo", "email": "bo@example.com"}
            assert_ok(ApiClient(made, TOKEN).post(ACCOUNTS, json=body), 201)
            made.extensions["runtime"].email_sender.send_due()
            (mail,) = server.emails
            assert "https://search.example.com/login" in mail.text
            assert "password" not in mail.text
        finally:
            close_app(made)

    def test_invitation_link_is_valid_for_a_week_and_a_password_reset_works_before_it_is_used(
        self, app: Flask, part: Runtime, operator: ApiClient, server: MailServer
    ) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            link = self.invite(part, operator, server)
            clock.shift(6 * 86_400)
            assert app.test_client().get(link).status_code == 200
            app.test_client().post("/password/forgot", data={"email": "bo@example.com"})
            part.email_sender.send_due()
            assert [mail.to for mail in server.emails] == [["bo@example.com"]] * 2
            clock.shift(2 * 86_400)
            assert app.test_client().get(link).status_code == 400

    def test_no_invitation_is_sent_to_a_deleted_account(
        self, part: Runtime, operator: ApiClient, server: MailServer
    ) -> None:
        body = {"name": "Bo", "email": "bo@example.com"}
        account = assert_ok(operator.post(ACCOUNTS, json=body), 201)["account"]
        assert_ok(operator.delete(f"{ACCOUNTS}/{account['id']}"))

        part.email_sender.send_due()

        assert server.emails == []


class TestEngines:
    """Which sites are on which engine."""

    def test_operator_lists_sites_and_engines(self, app: Flask, operator: ApiClient, tenant: Tenant) -> None:
        tenant.index(page(1), page(2))
        stranger = register_tenant(app, "stranger@example.com")

        engines = assert_ok(operator.get("/api/operator/engines"))["engines"]
        (engine,) = engines
        assert (engine["configured"], engine["sites"], engine["documents"]) == (True, 2, 2)
        listed = assert_ok(operator.get("/api/operator/sites", query_string={"account_id": tenant.account_id}))
        assert listed["total"] == 1
        (site,) = listed["sites"]
        assert (site["id"], site["account_id"], site["documents"]) == (tenant.site_id, tenant.account_id, 2)
        assert site["engine"] == engine["engine"]
        page_two = assert_ok(operator.get("/api/operator/sites", query_string={"limit": 1, "offset": 1}))
        assert [site["id"] for site in page_two["sites"]] == [stranger.site_id]
        assert assert_ok(operator.get("/api/operator/sites?engine=typesense:elsewhere"))["sites"] == []

    def test_deleted_sites_are_not_listed(self, operator: ApiClient, tenant: Tenant) -> None:
        tenant.browser.delete(f"/sites/{tenant.site_id}")

        assert assert_ok(operator.get("/api/operator/sites"))["sites"] == []
        assert [engine["sites"] for engine in assert_ok(operator.get("/api/operator/engines"))["engines"]] == [0]
