"""Accounts in the operator area: finding them, changing their plan, and suspending them."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.callers import Tenant, page, register_tenant
from tests.pages.operator.conftest import OPERATOR
from tests.pages.people import Person, person_of
from tests.responses import assert_error, assert_ok

HOSTILE = '<script>alert("x")</script>'


def names(person: Person) -> list[str]:
    """The email addresses on the page of accounts."""
    return [row.one("span", class_="help").text for row in person.page.one("tbody").all("tr")]


@pytest.fixture
def accounts(app: Flask, operator: Person) -> list[Tenant]:
    """Create three accounts; the second one has documents, and the third one a search."""
    made = [register_tenant(app, f"{name}@example.com") for name in ("ann", "bob", "cy")]
    made[1].set_plan("business")
    made[1].index(page(1), page(2))
    made[2].find("page")
    app.extensions["runtime"].usage_copies.finish()
    return made


class TestList:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", ["cy", "bob", "ann", "olga"]),
            ("?q=BOB", ["bob"]),
            ("?q=&plan=&status=&sort=documents&limit=1", ["bob"]),
            ("?sort=searches&limit=1", ["cy"]),
            ("?plan=business", ["bob"]),
            ("?limit=2&offset=1", ["bob", "ann"]),
        ],
    )
    def test_accounts_can_be_searched_filtered_sorted_and_paginated(
        self, operator: Person, accounts: list[Tenant], query: str, expected: list[str]
    ) -> None:
        operator.go(f"/operator{query}")

        assert names(operator) == [f"{name}@example.com" for name in expected]

    def test_accounts_show_usage_beside_quotas(self, operator: Person, accounts: list[Tenant]) -> None:
        operator.go("/operator?q=bob")

        cells = {cell.attributes["data-label"]: cell.text for cell in operator.page.one("tbody").all("td")}
        assert (cells["Plan"], cells["Pages"], cells["Keys"]) == ("business", "2 of unlimited", "3 of unlimited")

    def test_suspended_accounts_can_be_selected(self, operator: Person, accounts: list[Tenant]) -> None:
        operator.go(f"/operator/accounts/{accounts[0].account_id}")
        operator.press("Suspend account")
        operator.go("/operator?status=suspended")

        assert names(operator) == ["ann@example.com"]

    def test_pagination_preserves_the_filters(self, operator: Person, accounts: list[Tenant]) -> None:
        operator.go("/operator?q=%40example.com&sort=documents&limit=1")
        operator.go("/operator" + operator.page.first("a", "Next").attributes["href"])

        assert operator.page.one("input", name="q").attributes["value"] == "@example.com"
        assert "Accounts 2 to 2 of 4" in operator.page.text

    def test_page_reports_that_the_filter_matches_no_account(self, operator: Person, accounts: list[Tenant]) -> None:
        assert "No account matches" in operator.go("/operator?q=nobody").text

    @pytest.mark.parametrize("query", ["limit=0", "sort=password_hash", "status=x", "offset=-1", "q=%ff"])
    def test_invalid_selection_is_rejected(self, operator: Person, query: str) -> None:
        assert operator.call("GET", f"/operator?{query}").status_code == 400


class TestAccount:
    def test_plan_and_limit_changes_take_effect_and_are_logged_as_the_operators(
        self, app: Flask, operator: Person, tenant: Tenant
    ) -> None:
        operator.go(f"/operator/accounts/{tenant.account_id}")
        operator.press("Save plan and limits", plan="starter", **{"limits.documents": "1", "limits.sites": "Unlimited"})

        assert "Plan and limits saved" in operator.notice
        assert operator.page.one("input", name="limits.sites").attributes["value"] == "unlimited"
        assert tenant.index(page(1))["success"]
        rejected = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(2)]})
        assert rejected.status_code in (402, 403, 429), rejected.get_json()
        entry = assert_ok(tenant.browser.get("/api/audit-log?kind=account"))["entries"][0]
        assert (entry["actor"]["kind"], entry["actor"]["name"]) == ("operator", "Olga (operator)")

    def test_emptied_limits_fall_back_to_the_plan(self, operator: Person, tenant: Tenant) -> None:
        tenant.set_plan("pro", documents=7)
        operator.go(f"/operator/accounts/{tenant.account_id}")
        assert operator.page.one("input", name="limits.documents").attributes["value"] == "7"
        operator.press("Save plan and limits", **{"limits.documents": ""})

        assert "Indexed pages 0 of 100,000" in operator.page.text

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"plan": "nope"}, "must be one of"),
            ({"plan": ""}, "plan"),
            ({"limits.documents": "-1"}, "documents"),
            ({"limits.documents": "1e9"}, "documents"),
            ({"limits.documents": "9" * 19}, "documents"),
            ({"limits.documents": HOSTILE}, "documents"),
        ],
    )
    def test_invalid_changes_are_shown_and_change_nothing(
        self, operator: Person, tenant: Tenant, values: dict[str, str], problem: str
    ) -> None:
        operator.go(f"/operator/accounts/{tenant.account_id}")
        before = assert_ok(tenant.browser.get("/dashboard"))
        operator.send("Save plan and limits", **values)

        assert operator.response.status_code == 400
        assert problem in " ".join(operator.alerts)
        assert HOSTILE not in operator.response.get_data(as_text=True)
        assert assert_ok(tenant.browser.get("/dashboard")) == before

    def test_account_can_be_suspended_and_resumed(self, operator: Person, tenant: Tenant) -> None:
        operator.go(f"/operator/accounts/{tenant.account_id}")
        operator.press("Suspend account", reason="Please pay\nyour bill.")

        assert operator.notice == "Account suspended."
        error = assert_error(tenant.search.get("/v1/search?q=page"), 403, "account_suspended")
        assert "Please pay\nyour bill." in error["message"]
        operator.press("Replace reason", reason="Now.")
        error = assert_error(tenant.search.get("/v1/search?q=page"), 403, "account_suspended")
        assert error["message"].endswith("Now.")

        operator.press("Resume account")
        assert_ok(tenant.search.get("/v1/search?q=page"))
        entries = assert_ok(tenant.browser.get("/api/audit-log?kind=account"))["entries"]
        assert {entry["actor"]["name"] for entry in entries} >= {"Olga (operator)"}
        assert "Olga (operator)" in person_of(tenant).go("/api/audit-log?kind=account").text

    def test_overlong_suspension_reason_is_rejected(self, operator: Person, tenant: Tenant) -> None:
        operator.go(f"/operator/accounts/{tenant.account_id}")
        operator.send("Suspend account", reason="x" * 501)

        assert operator.response.status_code == 400
        assert_ok(tenant.search.get("/v1/search?q=page"))

    def test_operator_cannot_suspend_their_own_account(self, app: Flask, operator: Person) -> None:
        operator.go("/operator?q=" + OPERATOR)
        path = operator.page.first("a", "Olga").attributes["href"]
        operator.go(path)
        assert "This is your own account." in operator.page.text
        token = operator.page.all("input", name="csrf_token")[0].attributes["value"]

        assert operator.call("POST", f"{path}/suspend", data={"csrf_token": token}).status_code == 403
        assert operator.go("/operator").one("h1").text == "Accounts"

    @pytest.mark.parametrize("number", ["0", "-1", "999", "9" * 19, "9" * 40])
    def test_unknown_account(self, operator: Person, number: str) -> None:
        operator.go("/operator")
        token = operator.page.all("input", name="csrf_token")[0].attributes["value"]
        assert operator.call("GET", f"/operator/accounts/{number}").status_code == 404
        for action in ("plan", "suspend", "resume"):
            form = {"csrf_token": token, "plan": "pro"}
            assert operator.call("POST", f"/operator/accounts/{number}/{action}", data=form).status_code == 404

    def test_text_from_customers_is_escaped(self, app: Flask, operator: Person, tenant: Tenant) -> None:
        tenant.browser.put("/profile", json={"name": HOSTILE})
        for path in ("/operator", f"/operator/accounts/{tenant.account_id}"):
            operator.go(path)
            assert HOSTILE in operator.page.text
            assert HOSTILE not in operator.response.get_data(as_text=True)

    def test_neither_queries_nor_documents_are_shown(self, app: Flask, operator: Person, tenant: Tenant) -> None:
        tenant.index(page("secretpage", title="Secret title"))
        tenant.find("secretquery", session_id="s")
        app.extensions["runtime"].events.flush()
        for path in ("/operator", f"/operator/accounts/{tenant.account_id}"):
            shown = operator.go(path).text.lower()
            assert "secret" not in shown
