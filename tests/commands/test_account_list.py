"""``account list`` compares usage with quotas, as a table or as JSON, in the requested order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import update

from app.models import Account
from app.services.usage.account_usage import ORDERS
from tests.callers import Tenant, page, register_tenant
from tests.responses import assert_ok


def run(app: Flask, *arguments: str) -> str:
    result = app.test_cli_runner().invoke(args=["account", "list", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def accounts(app: Flask, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(app, "--json", *arguments))
    return found


@pytest.fixture
def used(app: Flask) -> Tenant:
    """Create an account with searches and another account with more documents."""
    tenant = register_tenant(app, "searcher@example.com")
    tenant.index(page(1))
    tenant.find("page")
    tenant.find("content")
    register_tenant(app, "indexer@example.com").index(page(1), page(2), page(3))
    app.extensions["runtime"].usage_copies.finish()
    return tenant


def test_json_output_contains_usage_and_quotas(app: Flask, used: Tenant) -> None:
    used.set_plan("pro", searches_per_day=10, sites="unlimited")

    account = accounts(app)[0]

    assert account["email"] == used.email
    assert account["usage"] == {
        "searches_today": 2, "searches_this_month": 2, "asks_this_month": 0, "documents": 1, "sites": 1, "keys": 3,
    }  # fmt: skip
    assert account["quotas"]["searches_per_day"] == 10
    assert account["quotas"]["sites"] is None, "null means unlimited"
    assert account["quotas"]["documents"] == 100_000


def test_table_output_contains_usage_and_quotas(app: Flask, used: Tenant) -> None:
    used.set_plan("pro", searches_per_day=10, sites="unlimited")

    head, first, second = run(app).splitlines()

    assert head.split() == [
        "id",
        "plan",
        "searches",
        "today",
        "this",
        "month",
        "documents",
        "sites",
        "keys",
        "email",
        "name",
    ]
    assert "  2 of 10 " in first
    assert " 1 of unlimited " in first
    assert "3 of 100,000" in second
    assert first.index("searcher@") == second.index("indexer@") == head.index("email")


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("id", "searcher"),
        ("email", "indexer"),
        ("searches", "searcher"),
        ("documents", "indexer"),
        ("quota", "indexer"),
    ],
)
def test_accounts_are_sorted_by_the_requested_order(app: Flask, used: Tenant, order: str, first: str) -> None:
    used.set_plan("business")

    assert accounts(app, "--sort", order)[0]["email"] == f"{first}@example.com"


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_lists_every_account(app: Flask, used: Tenant, order: str) -> None:
    assert {account["id"] for account in accounts(app, "--sort", order)} == {1, 2}


def test_account_with_a_removed_plan_is_listed(app: Flask, used: Tenant) -> None:
    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Account).where(Account.email == used.email).values(plan="gold"))

    account = accounts(app)[0]

    assert (account["plan"], account["quotas"]) == ("gold", None)
    assert account["usage"]["searches_today"] == 2
    assert "gold (unknown)" in run(app)


def test_control_characters_in_names_are_replaced(app: Flask, used: Tenant) -> None:
    assert_ok(used.browser.put("/profile", json={"name": "Eve\x1b[2J\n9  business"}))

    _, *lines = run(app).splitlines()

    assert len(lines) == 2
    assert any(line.endswith("Eve�[2J�9  business") for line in lines)


def test_empty_account_list_prints_no_accounts(app: Flask) -> None:
    assert run(app) == "No accounts.\n"
    assert accounts(app) == []
