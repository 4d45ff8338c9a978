"""A site's search box page: the key, the code to copy, and the last sighting of the box."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
import time_machine
from flask import Flask

from app.clock import now
from tests.callers import ApiClient, Tenant, page
from tests.pages.people import Person, register_person


def _lines(person: Person) -> str:
    (lines,) = [found.raw_text for found in person.page.all("code") if "data-key" in found.raw_text]
    return lines


def _make_site(app: Flask) -> tuple[Person, str]:
    ann = register_person(app, "ann@example.com")
    ann.follow("Add a site")
    ann.press("Add site", name="Museum", url="https://museum.example.com")
    return ann, re.sub("/sources.*", "", ann.path)


def test_site_created_with_the_form_has_a_readable_public_key(app: Flask) -> None:
    ann, site = _make_site(app)

    first, second = (_lines(ann) for _ in range(2) if ann.go(f"{site}/box"))

    assert first == second
    token = re.search(r"svc_pub_\w{38}", first)
    assert token is not None
    assert ApiClient(app, token[0]).get("/v1/client-info").status_code == 200


def test_site_is_created_even_at_the_key_limit(person: Person, tenant: Tenant) -> None:
    tenant.set_plan("pro", keys=3)
    person.go("/sites/create")
    person.press("Add site", name="Shop", url="https://shop.example.com")
    site = re.sub("/sources.*", "", person.path)

    person.go(f"{site}/box")
    assert "No public key available" in person.page.text
    person.send("Create a public key")
    assert person.response.status_code == 403
    tenant.set_plan("pro", keys=4)
    person.go(f"{site}/box")
    person.press("Create a public key")
    assert "data-key" in _lines(person)


def test_disabled_key_is_not_offered_for_pasting(app: Flask) -> None:
    ann, site = _make_site(app)
    ann.go(f"/api{site}/keys")
    ann.press("Disable")

    assert "No public key available" in ann.go(f"{site}/box").text


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({"Origin": "https://Shop.example.com"}, "shop.example.com"),
        ({"Referer": "https://shop.example.com:8443/a?b=c"}, "shop.example.com:8443"),
        ({"Origin": "https://shop.example.com", "Referer": "https://other.example.com/"}, "shop.example.com"),
        ({"Origin": "null"}, None),
        ({"Origin": "http://localhost", "Referer": "http://localhost/sites/1/box"}, None),
        ({"Referer": "https://[::1"}, None),
        ({"Origin": "https://user@evil.example.com"}, None),
        ({}, None),
    ],
)
def test_sightings_exclude_our_own_preview(
    app: Flask, person: Person, tenant: Tenant, headers: dict[str, str], host: str | None
) -> None:
    began = now()
    with time_machine.travel(began, tick=False):
        assert tenant.public.get("/v1/client-info", headers=headers).status_code == 200
        app.extensions["runtime"].keys_last_used.flush()
    with time_machine.travel(began + timedelta(minutes=5), tick=False):
        told = person.go(f"/sites/{tenant.site_id}/box").one("p", id="seen").text

    assert told == (f"Seen on {host}, 5 minutes ago." if host else told)
    assert told.startswith("Seen" if host else "Not used on any page yet.")


@pytest.mark.parametrize(("origin", "is_shown"), [("http://localhost", True), ("https://shop.example.com", False)])
def test_dashboard_asks_for_the_search_box_until_a_page_uses_it(
    app: Flask, person: Person, tenant: Tenant, origin: str, is_shown: bool
) -> None:
    tenant.private.post("/api/v1/index/bulk", json={"documents": [page("a")]})
    tenant.public.get("/v1/client-info", headers={"Origin": origin})
    app.extensions["runtime"].keys_last_used.flush()

    assert ("Next: add the search box" in person.go("/dashboard").text) == is_shown


def test_requests_with_search_keys_are_not_sightings(app: Flask, person: Person, tenant: Tenant) -> None:
    tenant.search.get("/v1/client-info", headers={"Origin": "https://shop.example.com"})
    app.extensions["runtime"].keys_last_used.flush()

    assert person.go(f"/sites/{tenant.site_id}/box").one("p", id="seen").text.startswith("Not used")
