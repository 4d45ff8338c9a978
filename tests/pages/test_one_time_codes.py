"""The forms for one-time codes and sessions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pyotp
import pytest
import segno
import time_machine
from flask import Flask

from tests.callers import PASSWORD, Browser, Tenant, add_member
from tests.pages.people import Person, person_of

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
STEP = 30
SET_UP = "Set up two-factor authentication"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def code_of(app: pyotp.TOTP) -> str:
    return app.at(datetime.now(UTC))


def begin(person: Person, button: str = SET_UP) -> pyotp.TOTP:
    person.go("/profile/edit")
    person.press(button, current_password=PASSWORD)
    app = pyotp.parse_uri(person.page.first("a", "Open it in an app on this device").attributes["href"])
    assert isinstance(app, pyotp.TOTP)
    return app


def switch_on(person: Person, clock: time_machine.Traveller, button: str = SET_UP) -> tuple[pyotp.TOTP, list[str]]:
    app = begin(person, button)
    person.press("Turn on two-factor authentication", code=code_of(app))
    clock.shift(STEP)
    return app, person.page.one("pre").text.split()


def enter(app: Flask, email: str, path: str = "/login") -> Person:
    """Return a visitor who has entered their password."""
    visitor = Person(app)
    visitor.go(path)
    visitor.press("Log in", email=email, password=PASSWORD)
    return visitor


def test_first_code_turns_on_two_factor_authentication(person: Person, tenant: Tenant) -> None:
    app = begin(person)
    drawn = str(segno.make(app.provisioning_uri(), error="m", micro=False).svg_inline(scale=4, light="#fff"))
    assert drawn.partition(' d="M4')[2] in person.response.get_data(as_text=True)
    assert app.secret in person.page.text

    assert person.send("Turn on two-factor authentication", code="000000").status_code == 400
    assert person.problem_of("code").startswith("Code is incorrect; enter the current code from your authenticator app")
    assert app.secret in person.page.text, "a corrected search must not scan the index again"

    person.press("Turn on two-factor authentication", code=code_of(app))
    codes = person.page.one("pre").text.split()
    assert len(set(codes)) == 10
    person.go("/profile/edit")
    assert "10 recovery codes are left" in person.page.text
    assert not any(code in person.page.text for code in codes)


def test_two_factor_setup_requires_the_correct_password(person: Person) -> None:
    person.go("/profile/edit")
    assert person.send(SET_UP, current_password="not the password").status_code == 403
    assert person.problem_of("current_password") == "Current password is incorrect."


def test_login_asks_for_the_code_after_the_password(
    person: Person, tenant: Tenant, clock: time_machine.Traveller
) -> None:
    app, recovery = switch_on(person, clock)

    visitor = enter(tenant.app, tenant.email, "/login?next=/sites")
    assert visitor.response.status_code == 401
    assert visitor.alerts == []
    assert visitor.page.one("input", name="code").attributes["autocomplete"] == "one-time-code"
    assert PASSWORD not in visitor.response.get_data(as_text=True)
    assert visitor.send("Log in", code="000000").status_code == 401
    assert visitor.alerts == ["The code is incorrect or was already used."]
    visitor.press("Log in", code=code_of(app))
    assert visitor.path == "/sites"

    again = enter(tenant.app, tenant.email)
    again.press("Log in", code=recovery[0])
    assert again.path == "/dashboard"


def test_code_must_be_entered_within_ten_minutes(person: Person, tenant: Tenant, clock: time_machine.Traveller) -> None:
    app, _ = switch_on(person, clock)
    visitor = enter(tenant.app, tenant.email)
    clock.shift(601)
    visitor.send("Log in", code=code_of(app))
    assert visitor.alerts == ["The login took too long; log in again."]
    assert visitor.page.one("input", name="password").attributes["type"] == "password"


def test_pending_code_step_is_invalid_after_a_password_change(
    person: Person, tenant: Tenant, clock: time_machine.Traveller
) -> None:
    app, _ = switch_on(person, clock)
    visitor = enter(tenant.app, tenant.email)
    tenant.browser.put("/profile", json={"current_password": PASSWORD, "new_password": "another good password"})
    assert visitor.send("Log in", code=code_of(app)).status_code == 401
    assert visitor.client.get_cookie("session") is None


@pytest.mark.parametrize("proof", ["", "nonsense", "WzEsIiJd.aaaa.bbbb"])
def test_one_time_code_without_a_password_is_rejected(
    person: Person, tenant: Tenant, clock: time_machine.Traveller, proof: str
) -> None:
    app, _ = switch_on(person, clock)
    visitor = enter(tenant.app, tenant.email)
    visitor.send("Log in", proof=proof, code=code_of(app))
    assert visitor.response.status_code == 401
    assert visitor.client.get_cookie("session") is None


def test_app_can_be_replaced_and_turned_off(person: Person, tenant: Tenant, clock: time_machine.Traveller) -> None:
    _, old = switch_on(person, clock)
    _, new = switch_on(person, clock, "Set up another app")
    assert set(old).isdisjoint(new)

    person.go("/profile/edit")
    assert person.send("Turn off two-factor authentication", current_password="not the password").status_code == 403
    assert person.problem_of("current_password") == "Current password is incorrect."
    person.press("Turn off two-factor authentication", current_password=PASSWORD)
    assert person.notice == "Two-factor authentication is off. You only need your password to log in."
    assert enter(tenant.app, tenant.email).path == "/dashboard"


def test_profile_form_urls_redirect_to_profile(person: Person) -> None:
    for path in ("/profile/totp", "/profile/totp/confirm", "/profile/sessions"):
        assert person.call("GET", path).headers["Location"] == "/profile/edit"


def test_sessions_are_listed_and_can_be_ended_on_the_profile_page(app: Flask, person: Person, tenant: Tenant) -> None:
    one, two = (enter(app, tenant.email) for _ in range(2))
    person.go("/profile/edit")
    assert "This session" in person.page.text
    assert "127.0.0.0/24" in person.page.text

    person.press("End session")
    assert person.notice == "Session ended."
    assert sum(visitor.call("GET", "/dashboard").status_code == 302 for visitor in (one, two)) == 1
    enter(app, tenant.email)
    person.go("/profile/edit")
    person.press("End all other sessions")
    assert person.notice == "All your other sessions have ended."
    assert "End session" not in person.page.text
    assert {visitor.call("GET", "/dashboard").status_code for visitor in (one, two)} == {302}
    assert person.go("/dashboard")


def test_viewer_can_turn_on_one_time_codes(tenant: Tenant, clock: time_machine.Traveller) -> None:
    viewer: Browser = add_member(tenant, "bo@example.com", "viewer")
    switch_on(person_of(viewer), clock)
    assert enter(tenant.app, "bo@example.com").response.status_code == 401


def test_chosen_account_requires_its_code(
    app: Flask, tenant: Tenant, stranger: Tenant, clock: time_machine.Traveller
) -> None:
    browser = add_member(stranger, tenant.email, "owner")
    phone, _ = switch_on(Person(app, browser.client), clock)
    stranger.browser.put("/profile", json={"name": "Eve's shop"})
    visitor = enter(app, tenant.email, "/login?next=/profile/edit")
    visitor.send("Eve's shop")
    assert visitor.response.status_code == 401
    assert "Enter your code" in visitor.page.text
    assert "session=" not in str(visitor.response.headers.getlist("Set-Cookie"))
    visitor.press("Log in", code="000000")
    assert "The code is incorrect" in visitor.alerts[0]
    visitor.press("Log in", code=code_of(phone))
    assert visitor.path == "/profile/edit"
    assert visitor.client.get("/profile/edit").get_json()["user"]["id"] == stranger.account_id
