"""The page to accept an invitation."""

from __future__ import annotations

import pytest
from flask import Flask

from app.runtime import Runtime
from app.services.accounts import emails
from app.services.accounts.members import first_owner
from tests.callers import PASSWORD, Tenant
from tests.pages.people import Person

BO = "bo@example.com"


@pytest.fixture
def path(tenant: Tenant) -> str:
    """The path of an invitation's link."""
    answer = tenant.browser.post("/api/invitations", json={"email": BO, "role": "editor"}).get_json()
    return str(answer["url"]).removeprefix("http://localhost")


def test_invitation_link_creates_member_and_session(passer_by: Person, path: str) -> None:
    passer_by.go(path)
    assert passer_by.page.one("h1").text == "Join Somebody"
    assert BO in passer_by.page.text
    response = passer_by.send("Join", name="Bo", password=PASSWORD)
    assert "HttpOnly" in response.headers["Set-Cookie"]
    passer_by._arrive()
    assert passer_by.path == "/dashboard?notice=invitation-accepted"
    assert "Welcome" in passer_by.notice


def test_invitation_page_meets_the_rules_of_every_page(passer_by: Person, path: str) -> None:
    passer_by.go(path)
    assert len(passer_by.page.all("h1")) == 1
    assert passer_by.response.headers["Cache-Control"] == "no-store"
    assert passer_by.response.headers["Referrer-Policy"] == "same-origin"
    labelled = {found.attributes["for"] for found in passer_by.page.all("label")}
    shown = [f for f in passer_by.page.all("input") if f.attributes.get("type") != "hidden"]
    assert {f.attributes["id"] for f in shown} <= labelled


def test_invalid_password_is_reported_beside_its_field(passer_by: Person, path: str) -> None:
    passer_by.go(path)
    response = passer_by.send("Join", name="Bo", password="short")
    assert response.status_code == 400
    assert passer_by.problem_of("password") == "Password must have at least 10 characters."
    assert passer_by.page.one("input", name="name").attributes["value"] == "Bo"


def test_invitation_to_a_reclaimable_email_address_cannot_be_accepted(
    passer_by: Person, tenant: Tenant, stranger: Tenant
) -> None:
    part: Runtime = tenant.app.extensions["runtime"]
    with part.database.write() as session:
        owner = first_owner(session, stranger.account_id)
        emails.record_change(session, owner, "was@example.com", was_confirmed=True, by_key=False)
    url = tenant.browser.post("/api/invitations", json={"email": "was@example.com"}).get_json()["url"]
    passer_by.go(url.removeprefix("http://localhost"))
    response = passer_by.send("Join", name="Eve", password=PASSWORD)
    assert response.status_code == 400
    assert "Ask for an invitation to another email address" in passer_by.alerts[0]


def test_used_invitation_link_is_reported(app: Flask, passer_by: Person, path: str) -> None:
    passer_by.go(path)
    passer_by.press("Join", name="Bo", password=PASSWORD)
    other = Person(app)
    response = other.call("GET", path)
    assert response.status_code == 404
    assert "ask for a new one" in other.page.text
