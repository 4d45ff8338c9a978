"""Confirming the email address of a newly registered account, if the installation sends email."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.models import Member
from app.operations import email_links
from app.operations import operator as account_operations
from app.runtime import Runtime
from app.services.access.callers import Client
from app.services.accounts import emails
from tests.callers import PASSWORD, ApiClient, Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer, mail_settings
from tests.pages.people import Person, person_of
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as travelling:
        yield travelling


@pytest.fixture
def new(app: Flask, clock: time_machine.Traveller) -> Tenant:
    """A customer who has just registered."""
    return register_tenant(app, "ann@example.com")


def link_of(part: Runtime, server: MailServer) -> str:
    """Return the path of the link in the last confirmation email."""
    part.email_sender.send_due()
    text = [mail.text for mail in server.emails if mail.message["Subject"] == "Confirm your email address"][-1]
    found = re.search(r"https://search\.example\.com(/email/confirm\?token=\S+)", text)
    assert found is not None
    return found[1]


def confirm(app: Flask, link: str) -> Person:
    person = Person(app)
    person.go(link)
    person.send("Confirm email address")
    return person


def test_unconfirmed_accounts_keys_stop_after_a_day_until_confirmation(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, clock: time_machine.Traveller
) -> None:
    link = link_of(part, server)
    assert "keys stop working on 15 May 2031, 12:00 UTC" in " ".join(server.emails[-1].text.split())
    clock.shift(DAY - timedelta(seconds=1))
    for kind in ("public", "search", "private"):
        assert_ok(new.client(kind).get("/v1/client-info"))
    clock.shift(1)
    for kind in ("public", "search", "private"):
        body = assert_error(new.client(kind).get("/v1/client-info"), 403, "email_not_confirmed")
        assert "open the link in the email" in body["message"]
    assert_ok(new.browser.get("/dashboard"))

    person = confirm(app, link)
    assert person.response.headers["Location"] == "/dashboard?notice=email-confirmed"
    for kind in ("public", "search", "private"):
        assert_ok(new.client(kind).get("/v1/client-info"))
    assert "Confirm your email address" not in person_of(new).go("/dashboard").text


def test_engine_keys_of_an_unconfirmed_account_stop_after_a_day(new: Tenant, clock: time_machine.Traveller) -> None:
    clock.shift(DAY - timedelta(seconds=1))
    given = assert_ok(new.public.get("/v1/client-info"))
    headers = {"Authorization": f"Bearer {given['engine_public_key']}"}
    path = f"/engine/indexes/{given['index']}/search"
    assert_ok(ApiClient(new.app).post(path, json={"q": "x"}, headers=headers))
    clock.shift(1)
    assert ApiClient(new.app).post(path, json={"q": "x"}, headers=headers).status_code == 403


def test_opening_the_confirmation_page_confirms_nothing(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, clock: time_machine.Traveller
) -> None:
    person = Person(app)
    page = person.go(link_of(part, server))
    assert "ann@example.com" in page.text
    assert person.response.headers["Referrer-Policy"] == "strict-origin"
    clock.shift(DAY)
    assert_error(new.search.get("/v1/search?q=x"), 403, "email_not_confirmed")


def test_dashboard_shows_the_deadline_and_sends_another_confirmation_email(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, clock: time_machine.Traveller
) -> None:
    first = link_of(part, server)
    person = person_of(new)
    page = person.go("/dashboard")
    assert "Otherwise, your API keys stop working 15 May 2031, 12:00 UTC." in page.text
    clock.shift(timedelta(days=2))
    person.press("Send another email")
    assert "We’ve sent a link" in person.notice
    assert link_of(part, server) != first
    confirm(app, link_of(part, server))
    assert_ok(new.search.get("/v1/search?q=x"))
    person.go("/dashboard")
    with pytest.raises(AssertionError, match="no button"):
        person.form("Send another email")


def test_confirmation_emails_are_limited_to_five_per_hour(new: Tenant) -> None:
    person = person_of(new)
    person.go("/dashboard")
    assert [person.send("Send another email").status_code for _ in range(6)] == [303] * 5 + [429]


def test_api_key_cannot_request_a_confirmation_email(new: Tenant) -> None:
    assert_error(new.private.post("/profile/confirmation"), 403, "insufficient_permission")


@pytest.mark.parametrize("token", ["", "x", "W10.x.y", "é"])
def test_invalid_confirmation_token_returns_400(app: Flask, new: Tenant, token: str) -> None:
    person = Person(app)
    for method, sent in (("GET", {"query_string": {"token": token}}), ("POST", {"data": {"token": token}})):
        assert person.call(method, "/email/confirm", **sent).status_code == 400


def test_confirmation_link_expires_after_three_days_or_with_the_email_address(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, clock: time_machine.Traveller
) -> None:
    link = link_of(part, server)
    assert_ok(new.browser.put("/profile", json={"email": "anna@example.com", "current_password": PASSWORD}))
    assert Person(app).call("GET", link).status_code == 400
    person = person_of(new)
    person.go("/dashboard")
    person.send("Send another email")
    link = link_of(part, server)
    assert ["anna@example.com"] in [mail.to for mail in server.emails]
    clock.shift(timedelta(days=3, seconds=1))
    page = Person(app).go(link)
    assert "This link no longer works" in page.text


def test_password_reset_by_email_confirms_the_email_address(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, clock: time_machine.Traveller
) -> None:
    person = Person(app)
    person.go("/password/forgot")
    person.send("Send link", email="ann@example.com")
    part.email_sender.send_due()
    text = next(mail.text for mail in server.emails if "new password" in mail.message["Subject"])
    found = re.search(r"https://search\.example\.com(/password/reset\?token=\S+)", text)
    assert found is not None
    person.go(found[1])
    person.send("Set password", new_password="another horse battery")
    clock.shift(DAY)
    assert_ok(new.search.get("/v1/search?q=x"))


def test_operator_created_account_gets_no_confirmation_email(
    app: Flask, part: Runtime, server: MailServer, clock: time_machine.Traveller
) -> None:
    account_operations.create_account(part, name="Ann", email="ann@example.com", password=PASSWORD, plan="pro")
    part.email_sender.send_due()
    assert server.emails == []


def test_installation_without_email_requires_no_confirmation(
    tmp_path: Path, server: MailServer, clock: time_machine.Traveller
) -> None:
    app = make_app(make_settings(tmp_path))
    tenant = register_tenant(app, "ann@example.com")
    clock.shift(2 * DAY)
    assert_ok(tenant.search.get("/v1/search?q=x"))
    assert "Confirm" not in person_of(tenant).go("/dashboard").text
    part: Runtime = app.extensions["runtime"]
    part.settings = replace(part.settings, **mail_settings(server))  # The operator sets up email later.
    assert_ok(tenant.search.get("/v1/search?q=x"))
    close_app(app)


def test_link_does_not_confirm_an_address_to_which_the_member_is_just_changing(
    app: Flask, part: Runtime, server: MailServer, new: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = link_of(part, server).partition("token=")[2]
    check = emails.get_confirmed
    changes: list[Future[TestResponse]] = []

    with ThreadPoolExecutor(1) as pool:

        def change_after_check(*arguments: Any) -> Member:
            member = check(*arguments)
            changes.append(
                pool.submit(new.browser.put, "/profile", json={"email": "b@example.com", "current_password": PASSWORD})
            )
            wait(changes, timeout=1)
            return member

        monkeypatch.setattr(email_links, "check_confirmation", lambda *_: member_of(part))
        monkeypatch.setattr(emails, "get_confirmed", change_after_check)
        email_links.confirm(part, Client("127.0.0.1", "", ""), token)

    assert_ok(changes[0].result())
    assert (member_of(part).email, member_of(part).email_confirmed) == ("b@example.com", False)


def member_of(part: Runtime) -> Member:
    with part.database.read() as session:
        return session.scalars(select(Member)).one()
