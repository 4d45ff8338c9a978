"""An operator of the service, with two-factor authentication."""

from __future__ import annotations

import pyotp
import pytest
from flask import Flask

from app.services.accounts import one_time_codes
from app.services.accounts.members import find_members
from tests.callers import PASSWORD, Browser, register_browser
from tests.pages.people import Person, person_of
from tests.responses import assert_ok

OPERATOR = "olga@example.com"


def run(app: Flask, *arguments: str) -> str:
    """Run ``account operator`` and return its output."""
    result = app.test_cli_runner().invoke(args=["account", "operator", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def turn_on_codes(browser: Browser) -> None:
    """Turn on two-factor authentication."""
    secret = assert_ok(browser.post("/profile/totp", json={"current_password": PASSWORD}))["secret"]
    assert_ok(browser.post("/profile/totp/confirm", json={"code": pyotp.TOTP(secret).now()}))


def codes_of(app: Flask, email: str) -> pyotp.TOTP:
    """Return the authenticator app of the only member with this address."""
    runtime = app.extensions["runtime"]
    with runtime.database.read() as session:
        (member,) = find_members(session, email)
    return one_time_codes._app(str(member.codes_salt), runtime.settings.secret_key)


def log_in(app: Flask, email: str = OPERATOR) -> Browser:
    """Log in with a password, in a new browser."""
    client = app.test_client()
    return Browser(client, assert_ok(client.post("/login", json={"email": email, "password": PASSWORD}))["csrf_token"])


def register_operator(app: Flask, email: str) -> Person:
    """Return a new operator, in a browser."""
    browser, _ = register_browser(app, email, name="Olga")
    turn_on_codes(browser)
    run(app, email)
    return person_of(browser)


@pytest.fixture
def operator(app: Flask) -> Person:
    """An operator, in a browser."""
    return register_operator(app, OPERATOR)
