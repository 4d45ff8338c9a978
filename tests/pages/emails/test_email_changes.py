"""After an email address changes, the old address is notified and can undo the change for a week."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select

from app.clock import now
from app.models import EmailChange, EmailChangeLink, Key, QueuedEmail
from app.runtime import Runtime
from app.services.accounts.members import first_owner
from app.wording import moment_text
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, add_member, member_id, register_browser, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_installation import confirm_everybody
from tests.email_server import MailServer
from tests.gateway.callers import Gateway
from tests.pages.people import Person
from tests.responses import assert_error, assert_ok
from tests.shared_servers import stored_bytes

ANN, NEW, THIRD = "ann@example.com", "new@example.com", "third@example.com"
NEW_PASSWORD = "another good password"
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
BUTTON = "Undo the change"


def by_session(browser: Browser, email: str) -> None:
    assert_ok(browser.put("/profile", json={"email": email, "current_password": PASSWORD}))


def by_key(tenant: Tenant, email: str) -> None:
    assert_ok(tenant.private.put("/profile", json={"email": email}))


def told(part: Runtime, server: MailServer) -> list[tuple[str, str]]:
    """Return the recipient and link path of each delivered email."""
    part.email_sender.send_due()
    emails = [
        (mail.to[0], re.findall(r"https://search\.example\.com(/\S+)$", mail.text, re.MULTILINE)[0])
        for mail in server.emails
    ]
    server.emails.clear()
    return emails


def link_of(part: Runtime, server: MailServer, to: str = ANN) -> str:
    """Return the link path of the only delivered email."""
    ((recipient, path),) = told(part, server)
    assert recipient == to
    assert path.startswith("/email/undo?token=")
    return path


def undo(app: Flask, link: str) -> Person:
    person = Person(app)
    person.go(link)
    person.press(BUTTON)
    assert person.notice.startswith("Your email address is restored."), person.path
    return person


def ended(app: Flask, link: str) -> bool:
    """Whether a link is invalid for both GET and POST."""
    seen = Person(app).call("GET", link)
    sent = Person(app).call("POST", "/email/undo", data={"token": link.partition("=")[2]})
    assert seen.status_code == sent.status_code
    return seen.status_code == 400


def email_of(tenant: Tenant) -> str:
    with tenant.app.extensions["runtime"].database.read() as session:
        return first_owner(session, tenant.account_id).email


def can_log_in(app: Flask, email: str, password: str = PASSWORD) -> bool:
    return bool(app.test_client().post("/login", json={"email": email, "password": password}).status_code == 200)


def test_old_email_address_is_notified_and_can_undo_a_leaked_keys_change(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    gateway = Gateway(tenant)
    colleague = add_member(tenant, "bob@example.com", "editor")
    told(part, server)
    by_key(tenant, NEW)
    part.email_sender.send_due()
    (mail,) = server.emails
    assert mail.to == [ANN]
    text = re.sub(r"\s+", " ", mail.text)
    assert f"changed with an API key, from {ANN} to {NEW}" in text
    assert f"works once and is valid until {moment_text(now() + timedelta(days=7))[:6]}" in text
    person = undo(app, link_of(part, server))

    assert person.path == "/login?notice=email-restored"
    assert email_of(tenant) == ANN
    for browser in (tenant.browser, colleague):
        assert_error(browser.get("/dashboard"), 401, "missing_api_key")
    for client in (tenant.private, tenant.search, tenant.public):
        assert_error(client.get("/v1/client-info"), 401, "key_disabled")
    assert gateway.send({"q": "x"}).status_code == 200, "the site's engine key does not belong to an API key"
    assert not can_log_in(app, ANN), "the person who changed the email may have set the password"
    ((recipient, link),) = told(part, server)
    assert recipient == ANN
    person.go(link)
    person.press("Set password", new_password=NEW_PASSWORD)
    assert can_log_in(app, ANN, NEW_PASSWORD)
    assert not can_log_in(app, NEW, NEW_PASSWORD)


def test_undoing_a_change_made_in_a_session_ends_sessions_and_keys(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_session(tenant.browser, NEW)
    undo(app, link_of(part, server))

    assert email_of(tenant) == ANN
    assert_error(tenant.browser.get("/dashboard"), 401, "missing_api_key")
    assert_error(tenant.private.get("/dashboard"), 401, "key_disabled")


def test_opening_the_undo_page_undoes_nothing(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    by_key(tenant, NEW)
    link = link_of(part, server)

    for method in ("GET", "HEAD", "GET"):
        response = Person(app).call(method, link)
        assert response.status_code == 200
        assert response.headers["Referrer-Policy"] == "strict-origin"
        assert response.headers["Cache-Control"] == "no-store"
    assert email_of(tenant) == NEW
    assert_ok(tenant.private.get("/dashboard"))
    undo(app, link)


def test_undo_form_from_another_origin_returns_403(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_key(tenant, NEW)
    token = link_of(part, server).partition("=")[2]

    sent = app.test_client().post("/email/undo", data={"token": token}, headers={"Origin": "https://evil.example"})

    assert sent.status_code == 403
    assert email_of(tenant) == NEW


def test_undo_link_works_only_once(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    by_key(tenant, NEW)
    link = link_of(part, server)
    late = Person(app)
    late.go(link)
    undo(app, link)

    assert late.send(BUTTON).status_code == 400
    assert "no longer works" in late.alerts[0]
    assert ended(app, link)


def test_concurrent_uses_of_an_undo_link_succeed_only_once(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_key(tenant, NEW)
    link = link_of(part, server)
    people = [Person(app) for _ in range(4)]
    for person in people:
        person.go(link)
    with ThreadPoolExecutor(len(people)) as pool:
        statuses = sorted(pool.map(lambda person: person.send(BUTTON).status_code, people))

    assert statuses == [303, 400, 400, 400]


def test_undo_link_expires_after_seven_days(app: Flask, part: Runtime, server: MailServer) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        first, second = (register_tenant(app, email) for email in (ANN, "eve@example.com"))
        for tenant in (first, second):
            by_key(tenant, f"new-{tenant.email}")
        links = [path for _, path in sorted(told(part, server))]
        clock.shift(timedelta(days=7, seconds=-1))
        undo(app, links[0])
        clock.shift(1)
        assert ended(app, links[1])
        app.extensions["jobs"].run_all()
        with part.database.read() as session:
            assert [session.scalar(select(func.count()).select_from(t)) for t in (EmailChange, EmailChangeLink)] == [
                0,
                0,
            ]

    assert [email_of(first), email_of(second)] == [ANN, "new-eve@example.com"]


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "é" * 43, "\x00" * 43])
def test_invalid_undo_token_returns_400(app: Flask, token: str) -> None:
    assert Person(app).call("GET", "/email/undo", query_string={"token": token}).status_code == 400
    assert Person(app).call("POST", "/email/undo", data={"token": token}).status_code == 400


def test_first_undo_link_works_after_a_second_change_and_invalidates_the_second(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_session(tenant.browser, NEW)
    first = link_of(part, server)
    by_session(tenant.browser, THIRD)
    second = link_of(part, server, NEW)
    undo(app, first)

    assert email_of(tenant) == ANN
    assert ended(app, second)


def test_second_undo_link_restores_the_second_address_and_the_first_still_works(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_session(tenant.browser, NEW)
    first = link_of(part, server)
    by_key(tenant, THIRD)
    undo(app, link_of(part, server, NEW))

    assert email_of(tenant) == NEW
    told(part, server)
    undo(app, first)
    assert email_of(tenant) == ANN


def test_email_address_set_with_a_key_gets_no_undo_link_that_restores_it(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    """Otherwise the finder of a key would receive a link at their own address to take the account over again."""
    by_key(tenant, NEW)
    first = link_of(part, server)
    by_session(tenant.browser, THIRD)
    second = link_of(part, server, ANN)
    by_key(tenant, NEW)
    link_of(part, server, THIRD)
    undo(app, second)

    assert email_of(tenant) == ANN
    assert ended(app, first)


def test_changing_the_email_back_sends_no_email_and_invalidates_the_undo_link(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_key(tenant, NEW)
    link = link_of(part, server)
    by_session(tenant.browser, ANN)

    assert told(part, server) == []
    assert ended(app, link)
    assert_ok(tenant.private.get("/dashboard"))
    app.test_client().post("/password/forgot", data={"email": ANN})
    assert [to for to, _ in told(part, server)] == [ANN]


def test_email_address_set_with_a_key_gets_no_password_reset_for_seven_days(
    app: Flask, part: Runtime, server: MailServer
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        tenant = register_tenant(app, ANN)
        by_key(tenant, NEW)
        link_of(part, server)
        for later, emails in ((timedelta(days=7, seconds=-1), []), (timedelta(seconds=1), [NEW])):
            clock.shift(later)
            app.test_client().post("/password/forgot", data={"email": NEW})
            assert [to for to, _ in told(part, server)] == emails


def test_old_email_address_is_reserved_while_the_change_can_be_undone(
    app: Flask, part: Runtime, server: MailServer
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        tenant, stranger = register_tenant(app, ANN), register_tenant(app, "eve@example.com")
        confirm_everybody(part)
        by_key(tenant, NEW)
        body = {"name": "Eve", "email": " ANN@example.com", "password": PASSWORD}
        taken = [
            ApiClient(app).post("/register", json=body),
            stranger.private.put("/profile", json={"email": ANN}),
            stranger.browser.put("/profile", json={"email": ANN, "current_password": PASSWORD}),
        ]
        for response in taken:
            assert assert_error(response, 400, "validation_failed", field="email")["details"][0]["code"] == "taken"
        link = link_of(part, server)
        assert not ended_by_looking(app, link)
        clock.shift(timedelta(days=7))
        register_browser(app, ANN)


@pytest.mark.parametrize("email", ["ann@stra\u00dfe.example", "ann@EXAMPLE.com"])
def test_changed_email_stays_confirmed_only_for_the_same_mailbox(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, email: str
) -> None:
    """Case folding can make another person's email address equal."""
    is_same = email.isascii()
    if not is_same:
        by_session(tenant.browser, "ann@strasse.example")
        confirm_everybody(part)
        assert_error(tenant.browser.put("/profile", json={"email": email}), 400, "validation_failed")
        by_session(tenant.browser, email)
    else:
        assert_ok(tenant.browser.put("/profile", json={"email": email}))
    with part.database.read() as session:
        member = first_owner(session, tenant.account_id)
        assert (member.email, member.email_confirmed) == (email, is_same)


def test_unconfirmed_old_email_address_is_not_reserved(app: Flask, part: Runtime, server: MailServer) -> None:
    """Otherwise a stranger could register and change an address repeatedly to keep its owner from registering."""
    stranger = register_tenant(app, ANN)
    by_session(stranger.browser, NEW)
    register_browser(app, ANN)
    link = next(path for to, path in told(part, server) if path.startswith("/email/undo"))
    assert not ended_by_looking(app, link), "the owner of the mailbox must still be able to undo the change"
    undo(app, link)
    assert email_of(stranger) == ANN


def ended_by_looking(app: Flask, link: str) -> bool:
    return Person(app).call("GET", link).status_code == 400


def test_concurrent_email_changes_each_notify_the_previous_address(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    others = [tenant.browser.client, app.test_client()]
    token = others[1].post("/login", json={"email": ANN, "password": PASSWORD}).get_json()["csrf_token"]
    browsers = [tenant.browser, Browser(others[1], token)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(
                lambda pair: pair[0].put("/profile", json={"email": pair[1], "current_password": PASSWORD}),
                zip(browsers, (NEW, THIRD), strict=True),
            )
        )

    changed = [email for email, answer in zip((NEW, THIRD), answers, strict=True) if answer.status_code == 200]
    assert changed
    emails = dict(told(part, server))
    assert len(emails) == len(changed)
    assert email_of(tenant) in changed
    undo(app, emails[ANN])
    assert email_of(tenant) == ANN


@pytest.mark.parametrize(("role", "keys"), [("viewer", "active"), ("editor", "disabled"), ("owner", "disabled")])
def test_undo_by_a_member_disables_keys_only_if_the_role_allows_it(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, role: str, keys: str
) -> None:
    bob = add_member(tenant, "bob@example.com", role)
    told(part, server)
    by_session(bob, "bo@example.com")
    undo(app, link_of(part, server, "bob@example.com"))

    assert_error(bob.get("/dashboard"), 401, "missing_api_key")
    assert tenant.browser.get("/dashboard").status_code == (401 if role == "owner" else 200)
    with part.database.read() as session:
        assert {key.active for key in session.scalars(select(Key))} == {keys == "active"}
    assert email_of(tenant) == ANN


def test_undo_link_of_a_removed_member_is_invalid(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    bob = add_member(tenant, "bob@example.com", "owner")
    told(part, server)
    by_session(bob, "bo@example.com")
    link = link_of(part, server, "bob@example.com")
    assert_ok(tenant.browser.delete(f"/api/members/{member_id(tenant, 'bo@example.com')}"))

    assert ended(app, link)
    register_browser(app, "bob@example.com")


def test_undo_token_is_not_stored_in_plain_text(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    """The mail queue does not contain it either: the link is created when the email is sent."""
    by_key(tenant, NEW)
    with part.database.read() as session:
        assert session.scalar(select(func.count()).select_from(EmailChangeLink)) == 0
    token = link_of(part, server).partition("=")[2]

    assert token.encode() not in stored_bytes(app)


def test_both_links_of_a_notification_sent_twice_work_until_one_is_used(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_key(tenant, NEW)
    with part.database.read() as session:
        mail = session.scalars(select(QueuedEmail).where(QueuedEmail.kind == "email_changed")).one()
    lost = part.email_sender._write(mail)
    assert lost is not None
    (path,) = re.findall(r"https://search\.example\.com(/\S+token=[\w-]{43})$", lost.text, re.MULTILINE)
    second = link_of(part, server)
    undo(app, path)

    assert ended(app, second)


def test_email_changes_are_limited_to_ten_per_day_separately_for_keys_and_members(
    app: Flask, part: Runtime, server: MailServer
) -> None:
    with time_machine.travel(NOON, tick=False):
        tenant = register_tenant(app, ANN)
        for number in range(10):
            by_key(tenant, f"new-{number}@example.com")
        assert_ok(tenant.private.put("/profile", json={"email": "NEW-9@example.com", "name": "Not moved"}))
        assert_error(tenant.private.put("/profile", json={"email": NEW}), 429, "rate_limit_exceeded")
        by_session(tenant.browser, NEW)


def test_audit_log_records_the_restored_email_address(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    by_key(tenant, NEW)
    undo(app, link_of(part, server))
    (_, reset) = told(part, server)[0]
    person = Person(app)
    person.go(reset)
    person.press("Set password", new_password=NEW_PASSWORD)
    client = app.test_client()
    client.post("/login", json={"email": ANN, "password": NEW_PASSWORD})
    entries = client.get("/api/audit-log").get_json()["entries"]

    (restored,) = [entry for entry in entries if {"field": "email", "before": NEW, "after": ANN} in entry["changes"]]
    assert (restored["actor"]["kind"], restored["actor"]["name"]) == ("member", ANN)
    assert {"field": "password"} in restored["changes"]
    off = {"field": "active", "before": True, "after": False}
    assert sum(entry["object"]["kind"] == "key" and off in entry["changes"] for entry in entries) == 3


def test_installation_without_email_does_not_reserve_the_old_email_address(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path / "silent"))
    try:
        tenant = register_tenant(app, ANN)
        by_key(tenant, NEW)
        register_browser(app, ANN)
        with app.extensions["runtime"].database.read() as session:
            assert session.scalar(select(func.count()).select_from(EmailChange)) == 0
    finally:
        close_app(app)
