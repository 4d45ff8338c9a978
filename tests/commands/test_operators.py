"""``account operator`` names operators, lists them, and revokes their right."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import update

from app.models import Member
from tests.callers import Tenant, add_member, register_browser
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_ok


def run(app: Flask, *arguments: str, fails: bool = False) -> str:
    result = app.test_cli_runner().invoke(args=["account", "operator", *arguments])
    assert result.exit_code == (1 if fails else 0), result.output
    return result.output


def test_members_can_become_operators_be_listed_and_lose_the_role(app: Flask, tenant: Tenant) -> None:
    assert run(app) == "No operators.\n"

    named = run(app, f" {tenant.email.upper()} ")
    assert f"of account {tenant.account_id} may use /operator" in named
    assert "once the member has turned on two-factor authentication" in named
    assert run(app) == f"{tenant.email} (account {tenant.account_id})\n"
    assert run(app, tenant.email) == named.replace(f" {tenant.email.upper()} ", tenant.email), (
        "repeating the command must not fail"
    )

    assert run(app, tenant.email, "--revoke") == f"{tenant.email} is no longer an operator.\n"
    assert run(app, "--json").strip() == "[]"
    assert "No operator has" in run(app, tenant.email, "--revoke", fails=True)


def test_unknown_address_is_rejected(app: Flask, tenant: Tenant) -> None:
    assert "No member has the email address" in run(app, "nobody@example.com", fails=True)


def test_email_address_with_several_accounts_requires_the_account_option(
    app: Flask, tenant: Tenant, stranger: Tenant
) -> None:
    add_member(stranger, tenant.email, "viewer")

    message = run(app, tenant.email, fails=True)
    assert f"{tenant.account_id} (" in message
    assert f"{stranger.account_id} (" in message
    assert run(app) == "No operators.\n"

    run(app, tenant.email, "--account", str(stranger.account_id))
    assert run(app) == f"{tenant.email} (account {stranger.account_id})\n"


def test_unconfirmed_address_is_rejected_if_the_service_sends_email(tmp_path: Path) -> None:
    mail = {"smtp_url": "smtp://127.0.0.1:9", "mail_from": "a@example.com", "public_url": "https://example.com"}
    app = make_app(make_settings(tmp_path, **mail))
    register_browser(app, "ann@example.com")

    assert "is not confirmed" in run(app, "ann@example.com", fails=True)
    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Member).values(email_confirmed=True))
    run(app, "ann@example.com")
    close_app(app)


def test_operator_changes_are_in_the_audit_log_of_the_members_account(app: Flask, tenant: Tenant) -> None:
    run(app, tenant.email)
    run(app, tenant.email, "--revoke")

    entries = assert_ok(tenant.private.get("/api/audit-log?kind=member"))["entries"]
    changes = [change for entry in entries for change in entry["changes"] if change["field"] == "operator_since"]
    assert len(changes) == 2
    assert {entry["actor"]["kind"] for entry in entries[:2]} == {"operator"}


@pytest.mark.parametrize("arguments", [["--revoke"], ["--account", "1"]])
def test_options_require_an_email_address(app: Flask, arguments: list[str]) -> None:
    result = app.test_cli_runner().invoke(args=["account", "operator", *arguments])
    assert result.exit_code == 2
