"""The weekly digest is turned off by one press of a button, and by no program that only looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask

from app.crawl.sources.sources import list_failed
from app.models import Account
from app.runtime import Runtime
from app.services.mail.digests import Digests, unsubscribe_url
from tests.callers import Tenant, register_tenant
from tests.conftest import SECRET
from tests.mail_server import MailServer
from tests.pages.people import Person, person_of

WEDNESDAY = datetime(2031, 5, 14, 9, 0, tzinfo=UTC)


@pytest.fixture
def link(tenant: Tenant) -> str:
    """The path in the tenant's mails."""
    return unsubscribe_url("", SECRET, tenant.account_id)


def wants_digest(tenant: Tenant) -> bool:
    with tenant.app.extensions["runtime"].database.read() as session:
        return session.get_one(Account, tenant.account_id).weekly_digest


def test_the_link_in_a_mail_leads_to_one_button(app: Flask, server: MailServer) -> None:
    part: Runtime = app.extensions["runtime"]
    with time_machine.travel(WEDNESDAY, tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        tenant.find("zeppelin")
        part.events.flush()
        clock.shift(timedelta(days=7))
        Digests(part.database, part.searcher, part.settings, part.plans, list_failed).queue_due()
        part.mailer.send_due()
        (mail,) = server.mails
        address = str(mail.message["List-Unsubscribe"]).strip("<>")
        assert f"Unsubscribe:\n{address}" in mail.text
        person = Person(app)
        person.go(address.removeprefix("https://search.example.com"))
        assert wants_digest(tenant)
        person.press("Unsubscribe")

    assert "You’re unsubscribed from the weekly digest." in person.page.text
    assert not wants_digest(tenant)


def test_a_program_of_mails_ends_it_with_one_request(app: Flask, tenant: Tenant, link: str) -> None:
    response = app.test_client().post(link, data={"List-Unsubscribe": "One-Click"})

    assert response.status_code == 200
    assert not wants_digest(tenant)


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded"])
def test_both_ways_to_send_that_request_work(app: Flask, tenant: Tenant, link: str, kind: str) -> None:
    response = app.test_client().post(link, data={"List-Unsubscribe": "One-Click"}, content_type=kind)

    assert (response.status_code, wants_digest(tenant)) == (200, False)


def test_a_program_that_only_looks_ends_nothing(app: Flask, tenant: Tenant, link: str) -> None:
    client = app.test_client()
    for method in ("GET", "HEAD", "OPTIONS"):
        client.open(link, method=method)

    assert wants_digest(tenant)


def test_who_is_logged_in_can_press_the_button_too(tenant: Tenant, link: str) -> None:
    person = person_of(tenant)
    person.go(link)
    person.press("Unsubscribe")

    assert not wants_digest(tenant)


def test_it_ends_the_digest_of_nobody_else(app: Flask, tenant: Tenant, stranger: Tenant, link: str) -> None:
    app.test_client().post(link)

    assert (wants_digest(tenant), wants_digest(stranger)) == (False, True)


@pytest.mark.parametrize("spoilt", ["", "x", "MQ.x", "x" * 5000, "ü"])
def test_an_invented_link_ends_nothing(app: Flask, tenant: Tenant, spoilt: str) -> None:
    for method in ("GET", "POST"):
        person = Person(app)
        response = person.call(method, "/digest/unsubscribe", query_string={"token": spoilt}, data={})
        assert response.status_code == 400
    assert app.test_client().post("/digest/unsubscribe").status_code == 400
    assert wants_digest(tenant)


def test_a_link_of_an_account_that_is_gone_is_harmless(app: Flask, tenant: Tenant, link: str) -> None:
    app.test_cli_runner().invoke(args=["account", "delete", tenant.email, "--yes"])

    assert app.test_client().post(link).status_code == 200


def test_the_profile_turns_it_off_and_on(tenant: Tenant) -> None:
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


def test_a_program_sets_it_through_the_api(tenant: Tenant) -> None:
    assert tenant.private.put("/profile", json={"weekly_digest": False}).status_code == 200
    assert not wants_digest(tenant)
    fields = tenant.private.get("/profile/edit").get_json()["form"]["fields"]
    assert [field["value"] for field in fields if field["name"] == "weekly_digest"] == [False]
    assert tenant.private.put("/profile", json={"weekly_digest": "no"}).status_code == 400


def test_where_no_mail_is_sent_the_profile_offers_none(shared_app: Flask, ann: Tenant) -> None:
    person = person_of(ann)
    person.go("/profile/edit")

    assert "E-mails" not in person.page.text
