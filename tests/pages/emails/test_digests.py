"""One button turns off the weekly digest; link scanners that only fetch the page do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask

from app.models import Account
from app.operations.digests import queue_due_digests, unsubscribe_url
from app.runtime import Runtime
from tests.callers import Tenant, register_tenant
from tests.conftest import SECRET
from tests.email_server import MailServer
from tests.pages.people import Person, person_of

WEDNESDAY = datetime(2031, 5, 14, 9, 0, tzinfo=UTC)


@pytest.fixture
def link(tenant: Tenant) -> str:
    """The path of the unsubscribe link in the tenant's emails."""
    return unsubscribe_url("", SECRET, tenant.account_id)


def wants_digest(tenant: Tenant) -> bool:
    with tenant.app.extensions["runtime"].database.read() as session:
        return session.get_one(Account, tenant.account_id).weekly_digest


def test_unsubscribe_link_leads_to_a_page_with_one_button(app: Flask, server: MailServer) -> None:
    part: Runtime = app.extensions["runtime"]
    with time_machine.travel(WEDNESDAY, tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        tenant.find("zeppelin")
        part.events.flush()
        clock.shift(timedelta(days=7))
        queue_due_digests(part)
        part.email_sender.send_due()
        (mail,) = server.emails
        address = str(mail.message["List-Unsubscribe"]).strip("<>")
        assert f"Unsubscribe:\n{address}" in mail.text
        person = Person(app)
        person.go(address.removeprefix("https://search.example.com"))
        assert wants_digest(tenant)
        person.press("Unsubscribe")

    assert "You’re unsubscribed from the weekly digest." in person.page.text
    assert not wants_digest(tenant)


def test_email_client_unsubscribes_with_one_post_request(app: Flask, tenant: Tenant, link: str) -> None:
    response = app.test_client().post(link, data={"List-Unsubscribe": "One-Click"})

    assert response.status_code == 200
    assert not wants_digest(tenant)


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded"])
def test_one_click_unsubscribe_accepts_both_form_encodings(app: Flask, tenant: Tenant, link: str, kind: str) -> None:
    response = app.test_client().post(link, data={"List-Unsubscribe": "One-Click"}, content_type=kind)

    assert (response.status_code, wants_digest(tenant)) == (200, False)


def test_fetching_the_unsubscribe_link_does_not_unsubscribe(app: Flask, tenant: Tenant, link: str) -> None:
    client = app.test_client()
    for method in ("GET", "HEAD", "OPTIONS"):
        client.open(link, method=method)

    assert wants_digest(tenant)


def test_logged_in_user_can_unsubscribe_with_the_link(tenant: Tenant, link: str) -> None:
    person = person_of(tenant)
    person.go(link)
    person.press("Unsubscribe")

    assert not wants_digest(tenant)


def test_unsubscribe_link_does_not_affect_other_accounts(
    app: Flask, tenant: Tenant, stranger: Tenant, link: str
) -> None:
    app.test_client().post(link)

    assert (wants_digest(tenant), wants_digest(stranger)) == (False, True)


@pytest.mark.parametrize("spoilt", ["", "x", "MQ.x", "x" * 5000, "ü"])
def test_invalid_unsubscribe_token_returns_400(app: Flask, tenant: Tenant, spoilt: str) -> None:
    for method in ("GET", "POST"):
        person = Person(app)
        response = person.call(method, "/digest/unsubscribe", query_string={"token": spoilt}, data={})
        assert response.status_code == 400
    assert app.test_client().post("/digest/unsubscribe").status_code == 400
    assert wants_digest(tenant)


def test_unsubscribe_link_of_a_deleted_account_returns_200(app: Flask, tenant: Tenant, link: str) -> None:
    app.test_cli_runner().invoke(args=["account", "delete", tenant.email, "--yes"])

    assert app.test_client().post(link).status_code == 200


def test_profile_page_turns_the_digest_off_and_on(tenant: Tenant) -> None:
    person = person_of(tenant)
    person.go("/profile/edit")
    form = person.form("Save notifications")
    assert "checked" in form.one("input", type="checkbox").attributes
    person.press("Save notifications", weekly_digest="false")
    assert person.notice == "Profile saved."
    assert not wants_digest(tenant)

    assert "checked" not in person.form("Save notifications").one("input", type="checkbox").attributes
    person.press("Save notifications", weekly_digest="true")
    assert wants_digest(tenant)


def test_weekly_digest_can_be_set_through_the_api(tenant: Tenant) -> None:
    assert tenant.private.put("/profile", json={"weekly_digest": False}).status_code == 200
    assert not wants_digest(tenant)
    fields = tenant.private.get("/profile/edit").get_json()["form"]["fields"]
    assert [field["value"] for field in fields if field["name"] == "weekly_digest"] == [False]
    assert tenant.private.put("/profile", json={"weekly_digest": "no"}).status_code == 400


def test_profile_without_mail_server_offers_no_digest(shared_app: Flask, ann: Tenant) -> None:
    person = person_of(ann)
    person.go("/profile/edit")

    assert "Emails" not in person.page.text
