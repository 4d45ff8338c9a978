"""Password reset by email: the link works once, for 30 minutes, and does not reveal whether an account exists."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.clock import now
from app.models import PasswordReset, QueuedEmail
from app.runtime import Runtime
from app.services.accounts import members
from app.services.accounts.members import first_owner
from tests.callers import PASSWORD, Tenant, add_member, member_id, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_installation import confirm_everybody
from tests.email_server import Delivered, MailServer
from tests.pages.people import Person
from tests.patience import PATIENCE_SECONDS
from tests.shared_servers import stored_bytes

NEW_PASSWORD = "another good password"
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
SENT = "If an account with this email address exists, we’ve sent it a link."


def ask(app: Flask, email: str, address: str = "10.0.0.1", **options: object) -> Person:
    person = Person(app)
    person.go("/login")
    person.follow("Forgot your password?")
    sent = {"email": email, "environ_overrides": {"REMOTE_ADDR": address}, **options}
    person.call("POST", "/password/forgot", data={"email": sent.pop("email")}, **sent)
    return person


def link_of(part: Runtime, server: MailServer) -> str:
    """Return the link path of the only delivered email."""
    part.email_sender.send_due()
    (mail,) = server.emails
    server.emails.clear()
    link = _link_in(mail)
    assert f"https://search.example.com{link}" in mail.html
    return link


def _link_in(mail: Delivered) -> str:
    (link,) = re.findall(r"https://search\.example\.com(/password/reset\?token=[\w-]{43})$", mail.text, re.MULTILINE)
    return str(link)


def can_log_in(app: Flask, email: str, password: str) -> bool:
    answer = app.test_client().post("/login", json={"email": email, "password": password})
    return bool(answer.status_code == 200)


def test_password_can_be_reset_by_email(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    person = Person(app)
    person.go("/login")
    person.follow("Forgot your password?")
    person.press("Send link", email=" ANN@Example.com ")
    assert (person.path, person.notice[: len(SENT)]) == ("/login?notice=reset-requested", SENT)
    person.go(link_of(part, server))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert person.notice.startswith("Password changed.")
    person.press("Log in", email=tenant.email, password=NEW_PASSWORD)
    assert person.path == "/dashboard"
    assert not can_log_in(app, tenant.email, PASSWORD)


def test_password_reset_ends_all_sessions(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    assert tenant.browser.get("/dashboard").status_code == 200
    ask(app, tenant.email)
    person = Person(app)
    person.go(link_of(part, server))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert tenant.browser.get("/dashboard").status_code == 401


def test_reset_email_goes_to_the_stored_email_address(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email.upper())
    part.email_sender.send_due()

    assert [mail.to for mail in server.emails] == [[tenant.email]]


def test_reset_link_works_only_once_and_invalidates_older_links(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    with time_machine.travel(now() - timedelta(minutes=10), tick=False):
        ask(app, tenant.email)
        first = link_of(part, server)
    ask(app, tenant.email)
    second = link_of(part, server)
    person, late = Person(app), Person(app)
    late.go(first)
    person.go(first)
    person.press("Set password", new_password=NEW_PASSWORD)

    assert late.send("Set password", new_password="yet another password").status_code == 400
    assert "no longer works" in late.alerts[0]
    for link in (first, second):
        assert person.call("GET", link).status_code == 400
        assert "no longer works" in person.alerts[0]
    assert can_log_in(app, tenant.email, NEW_PASSWORD)


def test_concurrent_uses_of_a_reset_link_succeed_only_once(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email)
    token = link_of(part, server).partition("token=")[2]
    gate = threading.Barrier(4)

    def use(number: int) -> int:
        client = app.test_client()
        gate.wait(PATIENCE_SECONDS)
        form = {"token": token, "new_password": f"password number {number}"}
        return client.post("/password/reset", data=form).status_code

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(use, range(4)))

    assert sorted(answers) == [303, 400, 400, 400]
    assert can_log_in(app, tenant.email, f"password number {answers.index(303)}")


def test_opening_a_reset_link_does_not_use_it_up(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    ask(app, tenant.email)
    link = link_of(part, server)
    scanner = app.test_client()
    for _ in range(3):
        assert scanner.get(link).status_code == 200
        assert scanner.head(link).status_code == 200

    person = Person(app)
    person.go(link)
    person.press("Set password", new_password=NEW_PASSWORD)
    assert person.notice.startswith("Password changed.")


@pytest.mark.parametrize(("minutes", "status"), [(29, 303), (30, 400)])
def test_reset_link_expires_after_30_minutes(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, minutes: int, status: int
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        ask(app, tenant.email)
        part.email_sender.send_due()
        assert "until 14 May 2031, 12:30 UTC" in " ".join(server.emails[0].text.split())
        person = Person(app)
        person.go(link_of(part, server))
        clock.shift(timedelta(minutes=minutes))

        assert person.send("Set password", new_password=NEW_PASSWORD).status_code == status


def test_expired_reset_email_is_not_sent(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        ask(app, tenant.email)
        clock.shift(timedelta(minutes=30))
        part.email_sender.send_due()

    assert server.emails == []


@pytest.mark.parametrize("change", [{"email": "anna@example.com"}, {"password": True}])
def test_reset_link_is_invalid_after_a_password_or_email_change(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, change: dict[str, object]
) -> None:
    ask(app, tenant.email)
    link = link_of(part, server)
    passwords = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    body = passwords if "password" in change else {**change, "current_password": PASSWORD}
    assert tenant.browser.put("/profile", json=body).status_code == 200

    assert Person(app).call("GET", link).status_code == 400


def test_unknown_email_address_gets_the_same_response_and_no_email(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    known, unknown = ask(app, tenant.email), ask(app, "nobody@example.com")

    assert known.response.status_code == unknown.response.status_code == 303
    assert known.response.headers["Location"] == unknown.response.headers["Location"]
    with part.database.read() as session:
        rows = session.scalars(select(QueuedEmail).order_by(QueuedEmail.id)).all()
    assert [(row.account_id, row.subject, row.text) for row in rows] == [(None, "", ""), (None, "", "")]
    part.email_sender.send_due()
    assert [mail.to for mail in server.emails] == [[tenant.email]]
    with part.database.read() as session:
        assert session.scalars(select(QueuedEmail)).all() == []


def test_reset_request_does_not_look_up_the_account(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*_: object) -> None:
        raise AssertionError("the request tells whether there is such an account")

    monkeypatch.setattr(members, "find_members", look_up)
    monkeypatch.setattr("app.services.accounts.emails.find_members", look_up)

    assert ask(app, tenant.email).response.status_code == 303


@pytest.mark.parametrize("email", ["ann@example.com", "nobody@example.com"])
def test_strangers_cannot_exhaust_the_reset_requests_of_an_email_address(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, email: str
) -> None:
    """However often they ask, the owner gets a working link and is not flooded with email."""
    with time_machine.travel(NOON, tick=False) as clock:
        for minute in range(60):
            for number in range(3):
                assert ask(app, email.upper(), f"10.{number}.0.{minute}").response.status_code == 303
            clock.shift(30)
            part.email_sender.send_due()
            clock.shift(30)
        assert ask(app, email).response.status_code == 303
        part.email_sender.send_due()
    assert len(server.emails) == (0 if email == "nobody@example.com" else 7)
    if server.emails:
        person = Person(app)
        with time_machine.travel(NOON + timedelta(minutes=60), tick=False):
            person.go(_link_in(server.emails[-1]))
            person.press("Set password", new_password=NEW_PASSWORD)
        assert can_log_in(app, email, NEW_PASSWORD)


def test_used_reset_link_can_be_replaced_immediately(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        ask(app, tenant.email)
        person = Person(app)
        person.go(link_of(part, server))
        person.press("Set password", new_password=NEW_PASSWORD)
        clock.shift(60)
        ask(app, tenant.email)
        person.go(link_of(part, server))


def test_password_reset_removes_codes_of_an_unconfirmed_email_address(
    app: Flask, part: Runtime, stranger: Tenant, server: MailServer
) -> None:
    """Otherwise a stranger could register another person's email address and lock the owner out with codes."""
    for is_confirmed in (True, False):
        with part.database.write() as session:
            member = first_owner(session, stranger.account_id)
            member.email_confirmed = is_confirmed
            member.codes_since, member.codes_salt = NOON, "salt"
        ask(app, stranger.email)
        person = Person(app)
        person.go(link_of(part, server))
        person.press("Set password", new_password=NEW_PASSWORD)
        assert can_log_in(app, stranger.email, NEW_PASSWORD) is not is_confirmed


def test_reset_requests_are_limited_to_20_per_hour_and_ip_address(app: Flask) -> None:
    with time_machine.travel(NOON, tick=False):
        for number in range(20):
            assert ask(app, f"n{number}@example.com").response.status_code == 303
        assert ask(app, "another@example.com").response.status_code == 429
        assert ask(app, "another@example.com", "10.0.0.2").response.status_code == 303


def test_reset_link_changes_only_the_requesting_members_password(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    add_member(tenant, "bo@example.com", "editor")
    part.email_sender.send_due()
    server.emails.clear()
    ask(app, "bo@example.com")
    person = Person(app)
    person.go(link_of(part, server))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert can_log_in(app, "bo@example.com", NEW_PASSWORD)
    assert can_log_in(app, tenant.email, PASSWORD)
    entries = tenant.private.get("/api/audit-log").get_json()["entries"]
    changed = next(entry for entry in entries if entry["action"] == "changed")
    assert (changed["actor"]["name"], changed["changes"]) == ("bo@example.com", [{"field": "password"}])


def test_only_a_hash_of_the_reset_token_is_stored(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email)
    token = link_of(part, server).partition("token=")[2]

    assert token.encode() not in stored_bytes(app)
    with part.database.read() as session:
        (reset,) = session.scalars(select(PasswordReset))
    assert reset.member_id == member_id(tenant, tenant.email)


def test_reset_page_sends_no_token_in_referrers_and_is_not_cached(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email)
    person = Person(app)
    person.go(link_of(part, server))

    assert person.response.headers.getlist("Referrer-Policy") == ["strict-origin"]
    assert person.response.headers["Cache-Control"] == "no-store"
    person.go("/login")
    assert person.response.headers.getlist("Referrer-Policy") == ["same-origin"]


def test_spoofed_host_header_does_not_appear_in_reset_email(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    part.email_sender.send_due()

    assert b"evil.example" not in server.emails[0].raw


def test_reset_forms_from_another_origin_return_403(app: Flask, tenant: Tenant) -> None:
    assert ask(app, tenant.email, headers={"Origin": "https://evil.example"}).response.status_code == 403
    person = Person(app)
    form = {"token": "x" * 43, "new_password": NEW_PASSWORD}
    response = person.call("POST", "/password/reset", data=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403


@pytest.mark.parametrize(
    "email", ["", "ann", "ann@example.com\nBcc: eve@example.com", "ann@example.com, eve@example.com"]
)
def test_invalid_email_address_shows_the_problem_next_to_the_field(app: Flask, email: str) -> None:
    person = ask(app, email)

    assert person.response.status_code == 400
    assert person.problem_of("email")


def test_too_short_or_weak_new_password_can_be_corrected(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email)
    person = Person(app)
    person.go(link_of(part, server))
    assert person.send("Set password", new_password="short").status_code == 400
    assert person.problem_of("new_password") == "New password must have at least 10 characters."
    assert person.send("Set password", new_password=tenant.email).status_code == 400
    assert person.problem_of("new_password").startswith("New password is too easy to guess. It resembles the name")

    person.press("Set password", new_password=NEW_PASSWORD)
    assert can_log_in(app, tenant.email, NEW_PASSWORD)


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "ü" * 43, "x" * 5000, "\x00"])
def test_invalid_reset_token_returns_400(app: Flask, token: str) -> None:
    person = Person(app)
    person.call("GET", "/password/reset", query_string={"token": token})

    assert person.response.status_code == 400
    assert "no longer works" in person.alerts[0]


def test_password_reset_unblocks_login_after_too_many_failures(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    for _ in range(11):
        can_log_in(app, tenant.email, "wrong password")
    assert not can_log_in(app, tenant.email, PASSWORD)
    ask(app, tenant.email)
    person = Person(app)
    person.go(link_of(part, server))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert can_log_in(app, tenant.email, NEW_PASSWORD)


def test_deleted_account_gets_no_reset_email_and_its_link_is_invalid(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    ask(app, tenant.email)
    link = link_of(part, server)
    ask(app, tenant.email)
    tenant.browser.delete("/profile", json={"password": PASSWORD})
    part.email_sender.send_due()

    assert server.emails == []
    assert Person(app).call("GET", link).status_code == 400


@pytest.mark.parametrize("is_older", [True, False])
def test_reset_link_changes_only_the_password_of_the_exact_email_address(
    app: Flask, part: Runtime, server: MailServer, is_older: bool
) -> None:
    """Case folding maps `straße.example` to `strasse.example`, which is another person's domain."""
    names = {"victim": "ann@strasse.example", "attacker": "ann@stra\u00dfe.example"}
    first, second = ("attacker", "victim") if is_older else ("victim", "attacker")
    register_tenant(app, names[first])
    host = register_tenant(app, "host@example.com")
    add_member(host, names[second], "owner")
    confirm_everybody(part)

    ask(app, names["attacker"])
    part.email_sender.send_due()
    (mail,) = server.emails
    assert mail.to == ["ann@xn--strae-oqa.example"]
    person = Person(app)
    person.go(_link_in(mail))
    person.press("Set password", new_password=NEW_PASSWORD)

    assert can_log_in(app, names["victim"], PASSWORD)
    body = {"email": names["attacker"], "password": NEW_PASSWORD}
    assert "accounts" not in app.test_client().post("/login", json=body).get_json()


CONTACTS = [
    ("help@example.com", "mailto:help@example.com"),
    ("https://example.com/help", "https://example.com/help"),
    ("extension 42", ""),
    ("javascript:alert(1)", ""),
]


@pytest.mark.parametrize(("contact", "target"), CONTACTS)
def test_forgot_password_page_without_mail_server_shows_the_operators_contact(
    tmp_path: Path, contact: str, target: str
) -> None:
    app = make_app(make_settings(tmp_path, operator_contact=contact))
    tenant = register_tenant(app, "ann@example.com")
    person = Person(app)
    person.go("/login")
    person.follow("Forgot your password?")

    assert f"ask the operator of this service ({contact})" in person.page.text
    links = [found.attributes["href"] for found in person.page.one("main").all("a")]
    assert links == ([target] if target else []) + ["/login"]
    rejected = ask(app, tenant.email)
    assert rejected.response.status_code == 403
    with app.extensions["runtime"].database.read() as session:
        assert session.scalars(select(QueuedEmail)).all() == []
    close_app(app)


def test_forgot_password_page_without_contact_refers_to_the_operator(shared_app: Flask) -> None:
    person = Person(shared_app)
    person.go("/password/forgot")

    assert "ask the operator of this service." in person.page.text


def test_password_reset_applies_to_all_accounts_of_the_email_address(
    app: Flask, part: Runtime, tenant: Tenant, stranger: Tenant, server: MailServer
) -> None:
    browser = add_member(tenant, stranger.email, "viewer")
    part.email_sender.send_due()
    server.emails.clear()
    ask(app, stranger.email)
    person = Person(app)
    person.go(link_of(part, server))
    person.send("Set password", new_password=NEW_PASSWORD)
    assert browser.get("/dashboard").status_code == stranger.browser.get("/dashboard").status_code == 401
    body = {"email": stranger.email, "password": NEW_PASSWORD}
    found = app.test_client().post("/login", json=body).get_json()["accounts"]
    assert [account["id"] for account in found] == [stranger.account_id, tenant.account_id]
    assert can_log_in(app, tenant.email, PASSWORD)
