"""The operator area exists only for operators, as of their current request, and needs two-factor authentication."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask
from sqlalchemy import update
from werkzeug.test import TestResponse

from app.application import create_app
from app.models import Session as Login
from app.pages import HTML_ONLY_FORMS, HTML_ONLY_PAGES
from app.pages.operator.access import OPERATING
from app.web.policy import is_in_operator_area, policies
from tests.callers import ApiClient, Browser, Tenant, add_member, register_browser
from tests.conftest import close_app
from tests.pages.operator.conftest import OPERATOR, codes_of, log_in, run, turn_on_codes
from tests.pages.people import BROWSER_ACCEPT, Person, filled, person_of

PATHS = sorted({re.sub("<[^>]*>", "1", rule) for rule, *_, policy in HTML_ONLY_PAGES if policy is OPERATING})
FORMS = sorted({re.sub("<[^>]*>", "1", rule) for _, rule, *_, policy in HTML_ONLY_FORMS if policy is OPERATING})


def seen(response: TestResponse, path: str) -> tuple[int, str, list[tuple[str, str]]]:
    """Return everything that distinguishes a response, except request IDs, tokens, counts, and the path itself."""
    changing = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "content-length")
    headers = sorted((name, value) for name, value in response.headers if name.lower() not in changing)
    body = response.get_data(as_text=True).replace(path, "PATH")
    body = re.sub(r'(csrf_token" value|data-request-id|request_id": ?)"[^"]*"', "", body)
    return response.status_code, re.sub(r"[0-9a-f]{32}", "ID", body), headers


def csrf_token_of(person: Person) -> str:
    person.go("/profile/edit")
    return filled(person.form("Log out"))["csrf_token"]


def open_as(client: Browser | ApiClient | None, app: Flask, method: str, path: str, accept: str) -> TestResponse:
    headers = {"Accept": accept}
    if client is None:
        return app.test_client().open(path, method=method, headers=headers)
    return client.call(method, path, headers=headers)


class TestHidden:
    """Other callers see exactly what they see at a URL that does not exist."""

    def test_operator_area_has_pages_and_forms(self) -> None:
        assert "/operator" in PATHS
        assert "/operator/accounts/1/suspend" in FORMS

    def test_exactly_the_operator_pages_are_hidden(self, shared_app: Flask) -> None:
        declared = policies(shared_app)
        inside = {rule.endpoint for rule in shared_app.url_map.iter_rules() if is_in_operator_area(rule.rule)}
        assert inside == {endpoint for endpoint, policy in declared.items() if policy is OPERATING}

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
    @pytest.mark.parametrize("accept", [BROWSER_ACCEPT, "application/json"])
    def test_every_operator_path_responds_like_a_nonexistent_path(
        self, app: Flask, tenant: Tenant, method: str, accept: str
    ) -> None:
        viewer = add_member(tenant, "vera@example.com", "viewer")
        for client in (None, tenant.browser, viewer, tenant.private, tenant.search, tenant.public, ApiClient(app, "x")):
            unknown = seen(open_as(client, app, method, "/opexator", accept), "/opexator")
            assert unknown[0] == 404
            for path in (*PATHS, *FORMS, "/operator/", "/operator/nope", "/operator/accounts/999"):
                assert seen(open_as(client, app, method, path, accept), path) == unknown, (client, path)

    def test_operator_forms_sent_by_customers_change_nothing(
        self, app: Flask, tenant: Tenant, stranger: Tenant
    ) -> None:
        account = f"/operator/accounts/{stranger.account_id}"
        form = {"csrf_token": tenant.browser.csrf_token, "reason": "x", "plan": "enterprise"}
        for action in ("suspend", "plan", "resume"):
            assert tenant.browser.post(f"{account}/{action}", data=form).status_code == 404
        assert stranger.browser.get("/dashboard").status_code == 200

    def test_customer_pages_do_not_link_to_the_operator_area(self, tenant: Tenant) -> None:
        person = person_of(tenant)
        for path in ("/", "/dashboard", "/profile/edit", "/api/members", "/api/audit-log", "/plans", "/nope"):
            person.go(path)
            assert "/operator" not in person.response.get_data(as_text=True), path

    def test_path_similar_to_an_operator_path_gets_no_hint(self, tenant: Tenant) -> None:
        for path in ("/api/operator/accounts/1/suspended", "/v1/operator/accounts/1/suspen"):
            assert "/operator" not in tenant.browser.get(path).get_json()["message"].replace(path, "")

    def test_openapi_document_omits_the_operator_area(self, app: Flask) -> None:
        paths = app.test_client().get("/openapi.json").get_json()["paths"]
        assert [path for path in paths if path.startswith("/operator")] == []


class TestOperators:
    def test_operator_with_two_factor_authentication_sees_all_accounts(self, operator: Person, tenant: Tenant) -> None:
        assert tenant.email in operator.go("/operator").text

    @pytest.mark.parametrize("role", ["editor", "viewer"])
    def test_operator_of_any_role_in_their_account_can_use_the_area(
        self, app: Flask, tenant: Tenant, role: str
    ) -> None:
        member = add_member(tenant, "vera@example.com", role)
        turn_on_codes(member)
        run(app, "vera@example.com")

        assert person_of(member).go("/operator").one("h1").text == "Accounts"

    def test_operator_without_two_factor_authentication_sees_only_how_to_turn_it_on(
        self, app: Flask, tenant: Tenant
    ) -> None:
        register_browser(app, OPERATOR)
        run(app, OPERATOR)
        browser = log_in(app)
        person = person_of(browser)
        for path in PATHS:
            assert person.call("GET", path).status_code == 403
            assert person.page.one("h1").text == "Two-factor authentication required"
            assert tenant.email not in person.page.text
        form = {"csrf_token": browser.csrf_token, "reason": "x"}
        for path in set(FORMS) - {"/operator/code"}:
            address = path.replace("/1", f"/{tenant.account_id}")
            assert person.call("POST", address, data=form).status_code == 403
            assert person.page.one("h1").text == "Two-factor authentication required"
        assert tenant.browser.get("/dashboard").status_code == 200

        turn_on_codes(browser)
        assert person.go("/operator").one("h1").text == "Accounts"

    def test_session_without_a_code_has_no_access_until_a_code_is_entered(
        self, app: Flask, operator: Person, tenant: Tenant
    ) -> None:
        # As a session that was opened with an identity provider, or before sessions were recorded.
        with app.extensions["runtime"].database.write() as session:
            session.execute(update(Login).values(code_at=None))
        for path in PATHS:
            assert operator.call("GET", path).status_code == 403
            assert operator.page.one("h1").text == "Two-factor authentication required"
            assert tenant.email not in operator.page.text
        form = {"csrf_token": csrf_token_of(operator), "reason": "x", "plan": "enterprise"}
        for path in set(FORMS) - {"/operator/code"}:
            address = path.replace("/1", f"/{tenant.account_id}")
            assert operator.call("POST", address, data=form).status_code == 403
        assert tenant.browser.get("/dashboard").status_code == 200

        operator.go("/operator")
        assert operator.send("Continue", code="123456").status_code == 400
        assert operator.problem_of("code") == "Code is incorrect or was already used."
        with time_machine.travel(datetime.now(UTC) + timedelta(minutes=1)):
            operator.press("Continue", code=codes_of(app, OPERATOR).now())
            assert operator.page.one("h1").text == "Accounts"

    def test_wrong_codes_are_limited(self, app: Flask, operator: Person) -> None:
        with app.extensions["runtime"].database.write() as session:
            session.execute(update(Login).values(code_at=None))
        form = {"csrf_token": csrf_token_of(operator), "code": "123456"}
        statuses = [operator.call("POST", "/operator/code", data=form).status_code for _ in range(11)]
        assert statuses == [400] * 10 + [429]

    def test_naming_an_operator_ends_sessions_without_a_code(self, app: Flask) -> None:
        with_code, _ = register_browser(app, OPERATOR)
        turn_on_codes(with_code)
        run(app, OPERATOR)
        assert with_code.get("/dashboard").status_code == 200

        without, _ = register_browser(app, "otto@example.com")
        run(app, "otto@example.com")
        assert without.get("/dashboard").status_code == 401

    def test_revoked_operator_gets_404_at_once_in_every_process(self, app: Flask, operator: Person) -> None:
        other = create_app(app.extensions["runtime"].settings)
        cookie = operator.client.get_cookie("session")
        assert cookie is not None
        client = other.test_client()
        client.set_cookie("session", cookie.value)
        assert client.get("/operator").status_code == 200

        run(app, OPERATOR, "--revoke")

        assert client.get("/operator").status_code == 404
        assert operator.call("GET", "/operator").status_code == 404
        close_app(other)

    @pytest.mark.parametrize("token", [None, "", "x" * 43])
    def test_forms_without_csrf_token_change_nothing(self, operator: Person, tenant: Tenant, token: str | None) -> None:
        form = {"reason": "x", "plan": "enterprise", **({} if token is None else {"csrf_token": token})}
        for path in FORMS:
            address = path.replace("/1", f"/{tenant.account_id}")
            assert operator.call("POST", address, data=form).status_code == 403
        assert tenant.browser.get("/dashboard").status_code == 200
