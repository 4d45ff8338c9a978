"""Emails about one-time codes, and the effect of emailed links on the codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pyotp
import pytest
import time_machine
from flask import Flask

from app.runtime import Runtime
from tests.callers import PASSWORD, ApiClient, Browser, register_browser
from tests.email_installation import confirm_everybody
from tests.email_server import MailServer
from tests.pages.people import Person
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
ANN = "ann@example.com"
NEW_PASSWORD = "another good password"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def switch_on(browser: Browser) -> list[str]:
    """Turn on one-time codes, and return the recovery codes."""
    secret = assert_ok(browser.post("/profile/totp", json={"current_password": PASSWORD}))["secret"]
    code = pyotp.TOTP(secret).at(datetime.now(UTC))
    recovery: list[str] = assert_ok(browser.post("/profile/totp/confirm", json={"code": code}))["recovery_codes"]
    return recovery


def log_in(app: Flask, password: str, email: str = ANN, **code: str) -> int:
    return ApiClient(app).post("/login", json={"email": email, "password": password, **code}).status_code


def told(part: Runtime, server: MailServer) -> list[tuple[str, str, str]]:
    """Return recipient, subject, and text of each delivered email."""
    part.email_sender.send_due()
    emails = [(mail.to[0], str(mail.message["Subject"]), mail.text) for mail in server.emails]
    server.emails.clear()
    return emails


def link_in(text: str) -> str:
    return re.findall(r"https://search\.example\.com(/\S+)$", text, re.MULTILINE)[0]


def test_member_is_notified_of_changes_to_two_factor_authentication(
    app: Flask, part: Runtime, server: MailServer
) -> None:
    browser, _ = register_browser(app, ANN)
    confirm_everybody(part)

    recovery = switch_on(browser)
    assert [mail[:2] for mail in told(part, server)] == [(ANN, "Two-factor authentication was turned on")]

    assert log_in(app, PASSWORD, code="000000-000000") == 401
    assert log_in(app, PASSWORD, code=recovery[0]) == 200
    ((to, subject, text),) = told(part, server)
    assert (to, subject) == (ANN, "A recovery code was used")
    assert "You have 9 recovery codes left." in " ".join(text.split())

    for _ in range(2):
        assert_ok(browser.delete("/profile/totp", json={"current_password": PASSWORD}))
    assert [mail[:2] for mail in told(part, server)] == [(ANN, "Two-factor authentication was turned off")]


def test_password_reset_by_email_does_not_turn_off_one_time_codes(
    app: Flask, part: Runtime, server: MailServer
) -> None:
    browser, _ = register_browser(app, ANN)
    recovery = switch_on(browser)
    confirm_everybody(part)
    person = Person(app)
    person.go("/password/forgot")
    person.press("Send link", email=ANN)
    ((_, _, text),) = told(part, server)

    person.go(link_in(text))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert_error(ApiClient(app).post("/login", json={"email": ANN, "password": NEW_PASSWORD}), 401, "code_required")
    assert log_in(app, NEW_PASSWORD, code=recovery[0]) == 200


def test_password_reset_by_email_clears_failed_code_attempts(app: Flask, part: Runtime, server: MailServer) -> None:
    """Otherwise a person who knew the old password could lock the member out."""
    browser, _ = register_browser(app, ANN)
    recovery = switch_on(browser)
    told(part, server)
    for number in range(31):
        guess = {"email": ANN, "password": PASSWORD, "code": "000000"}
        last = ApiClient(app).post("/login", json=guess, environ_overrides={"REMOTE_ADDR": f"192.0.2.{number}"})
    assert last.status_code == 429
    person = Person(app)
    person.go("/password/forgot")
    person.press("Send link", email=ANN)
    person.go(link_in(told(part, server)[0][2]))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert log_in(app, NEW_PASSWORD, code=recovery[0]) == 200


@pytest.mark.parametrize("codes_are_older", [False, True])
def test_undoing_an_email_change_removes_codes_set_up_after_it(
    app: Flask, part: Runtime, server: MailServer, clock: time_machine.Traveller, codes_are_older: bool
) -> None:
    """Codes set up by a thief are removed; the member's own codes stay."""
    browser, _ = register_browser(app, ANN)
    if codes_are_older:
        switch_on(browser)
        told(part, server)
        clock.shift(60)
    assert_ok(browser.put("/profile", json={"email": "thief@example.com", "current_password": PASSWORD}))
    ((_, _, notice),) = told(part, server)
    if not codes_are_older:
        clock.shift(60)
        switch_on(browser)
        told(part, server)

    person = Person(app)
    person.go(link_in(notice))
    person.press("Undo the change")
    reset = next(mail for mail in told(part, server) if mail[1] == "Choose a new password")
    person.go(link_in(reset[2]))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert log_in(app, NEW_PASSWORD) == (401 if codes_are_older else 200)
