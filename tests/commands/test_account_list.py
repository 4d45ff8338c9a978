"""``account list`` compares usage with quotas, for people and for programs, in the requested order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import update

from app.commands.account_list import ORDERS
from app.models import Account
from tests.answers import assert_ok
from tests.callers import Tenant, page, register_tenant


def run(app: Flask, *arguments: str) -> str:
    result = app.test_cli_runner().invoke(args=["account", "list", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def accounts(app: Flask, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(app, "--json", *arguments))
    return found


@pytest.fixture
def used(app: Flask) -> Tenant:
    """An account with searches, and another one with more documents."""
    tenant = register_tenant(app, "searcher@example.com")
    tenant.index(page(1))
    tenant.find("page")
    tenant.find("content")
    register_tenant(app, "indexer@example.com").index(page(1), page(2), page(3))
    app.extensions["runtime"].usage_copies.finish()
    return tenant


def test_programs_are_told_usage_and_quotas(app: Flask, used: Tenant) -> None:
    used.set_plan("pro", searches_per_day=10, sites="unlimited")

    account = accounts(app)[0]

    assert account["email"] == used.email
    assert account["usage"] == {
        "searches_today": 2, "searches_this_month": 2, "documents": 1, "sites": 1, "keys": 3,
    }  # fmt: skip
    assert account["quotas"]["searches_per_day"] == 10
    assert account["quotas"]["sites"] is None, "unlimited"
    assert account["quotas"]["documents"] == 100_000


def test_people_are_told_the_same_in_a_table(app: Flask, used: Tenant) -> None:
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
        "e-mail",
        "name",
    ]
    assert "  2 of 10 " in first
    assert " 1 of unlimited " in first
    assert "3 of 100,000" in second
    assert first.index("searcher@") == second.index("indexer@") == head.index("e-mail")


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
def test_accounts_are_sorted_as_asked(app: Flask, used: Tenant, order: str, first: str) -> None:
    used.set_plan("business")

    assert accounts(app, "--sort", order)[0]["email"] == f"{first}@example.com"


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_lists_every_account(app: Flask, used: Tenant, order: str) -> None:
    assert {account["id"] for account in accounts(app, "--sort", order)} == {1, 2}


def test_an_account_whose_plan_is_gone_is_listed_too(app: Flask, used: Tenant) -> None:
    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Account).where(Account.email == used.email).values(plan="gold"))

    account = accounts(app)[0]

    assert (account["plan"], account["quotas"]) == ("gold", None)
    assert account["usage"]["searches_today"] == 2
    assert "gold (unknown)" in run(app)


def test_a_name_writes_no_lines_of_its_own_and_commands_no_terminal(app: Flask, used: Tenant) -> None:
    assert_ok(used.browser.put("/profile", json={"name": "Eve\x1b[2J\n9  business"}))

    _, *lines = run(app).splitlines()

    assert len(lines) == 2
    assert any(line.endswith("Eve�[2J�9  business") for line in lines)


def test_without_accounts_that_is_said(app: Flask) -> None:
    assert run(app) == "No accounts.\n"
    assert accounts(app) == []
