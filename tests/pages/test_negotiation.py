"""Content negotiation: the same URL returns HTML for browsers and JSON for programs."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from tests.callers import Tenant
from tests.pages.people import BROWSER_ACCEPT, Person, person_of
from tests.responses import assert_error

HTML = [
    BROWSER_ACCEPT,
    "text/html",
    "text/html, application/json",
    "application/json, text/html",
    "text/html;q=0.5, application/json;q=0.5",
    "text/html;q=0.9, */*;q=0.8",
    "text/*, application/json;q=0.9",
]
JSON = [
    None,
    "*/*",
    "application/json",
    "application/json, text/html;q=0.9",
    "text/html;q=0.8, */*;q=0.9",
    "text/html;q=0, application/json",
    "text/html;q=0",
    "text/plain",
    "image/png, */*;q=0.5",
]
PAGES = [
    "/",
    "/dashboard",
    "/sites",
    "/sites/create",
    "/sites/{site}",
    "/sites/{site}/edit",
    "/sites/{site}/try?q=page",
    "/api/sites/{site}/keys",
    "/api/sites/{site}/keys/{key}",
    "/api/sites/{site}/keys/{key}/edit",
    "/api/analytics",
    "/profile/edit",
]


def _fill(path: str, tenant: Tenant) -> str:
    return path.format(site=tenant.site_id, key=tenant.keys["search"]["id"])


@pytest.mark.parametrize("accept", HTML)
def test_client_that_prefers_html_gets_a_page(ann: Tenant, accept: str) -> None:
    response = ann.browser.get("/sites", headers={"Accept": accept})
    assert (response.status_code, response.mimetype) == (200, "text/html")
    assert {"Accept", "Cookie"} <= set(response.vary)


@pytest.mark.parametrize("accept", JSON)
def test_other_clients_get_json(ann: Tenant, accept: str | None) -> None:
    response = ann.browser.get("/sites", headers={} if accept is None else {"Accept": accept})
    assert (response.status_code, response.mimetype) == (200, "application/json")
    assert "Accept" in response.vary


@pytest.mark.parametrize("path", PAGES)
def test_every_page_route_serves_html_and_json(ann: Tenant, path: str) -> None:
    path = _fill(path, ann)
    page = ann.browser.get(path, headers={"Accept": BROWSER_ACCEPT})
    assert (page.status_code, page.mimetype) == (200, "text/html"), path
    answer = ann.browser.get(path)
    assert (answer.status_code, answer.mimetype) == (200, "application/json"), path


@pytest.mark.parametrize("path", ["/login", "/register"])
def test_login_and_registration_describe_forms_in_json(app: Flask, passer_by: Person, path: str) -> None:
    passer_by.go(path)
    form = app.test_client().get(path).get_json()["form"]
    assert (form["method"], form["action"]) == ("POST", path)
    names = [found.attributes["name"] for found in passer_by.page.all("input") if found.attributes["type"] != "hidden"]
    assert [entry["name"] for entry in form["fields"]] == names
    assert all(entry["value"] is None for entry in form["fields"])


def test_api_only_routes_return_json_even_to_browsers(tenant: Tenant) -> None:
    for path in ("/v1/search?q=x", "/v1/client-info", "/healthz", "/openapi.json"):
        response = tenant.browser.get(path, headers={"Accept": BROWSER_ACCEPT})
        assert response.mimetype == "application/json", path


def test_private_key_can_read_html_pages_but_not_submit_forms(tenant: Tenant) -> None:
    response = tenant.private.get("/sites", headers={"Accept": "text/html"})
    assert (response.status_code, response.mimetype) == (200, "text/html")
    response = tenant.private.post("/sites", data={"name": "Another", "url": "https://other.example.com"})
    assert_error(response, 415, "unsupported_media_type")
    response = tenant.private.post(f"/sites/{tenant.site_id}", data={"_method": "DELETE"})
    assert_error(response, 405, "method_not_allowed")
    assert tenant.browser.get(f"/sites/{tenant.site_id}").status_code == 200


def test_token_takes_precedence_over_a_session_for_forms(tenant: Tenant) -> None:
    headers = {"Authorization": f"Bearer {tenant.tokens['private']}"}
    values = {"_method": "DELETE", "csrf_token": tenant.browser.csrf_token}
    response = tenant.browser.client.post(f"/sites/{tenant.site_id}", data=values, headers=headers)
    assert_error(response, 405, "method_not_allowed")


def test_forms_to_api_only_routes_return_415(tenant: Tenant) -> None:
    values = {"csrf_token": tenant.browser.csrf_token, "_method": "PATCH", "name": "x"}
    key = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}"
    for path in (key, f"/sites/{tenant.site_id}"):
        assert_error(tenant.browser.client.post(path, data=values), 415, "unsupported_media_type")


def test_json_writes_get_json_responses(tenant: Tenant) -> None:
    response = tenant.browser.post("/sites", json={"name": ""}, headers={"Accept": BROWSER_ACCEPT})
    assert_error(response, 400, "validation_failed", field="name")


def test_method_override_applies_only_to_forms(tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}"
    token = tenant.browser.csrf_token
    for method in ("GET", "OPTIONS", "TRACE", "nonsense", ""):
        response = tenant.browser.client.post(path, data={"_method": method, "csrf_token": token})
        assert response.status_code == 405, method
    assert tenant.browser.post(path, json={"_method": "DELETE"}).status_code == 405
    assert tenant.browser.client.post(f"{path}?_method=DELETE", data={"csrf_token": token}).status_code == 405
    headers = {"X-HTTP-Method-Override": "DELETE"}
    assert tenant.browser.client.post(path, data={"csrf_token": token}, headers=headers).status_code == 405
    assert tenant.browser.get(path).status_code == 200


def test_multipart_form_works_like_a_url_encoded_one(tenant: Tenant) -> None:
    values = {"_method": "DELETE", "csrf_token": tenant.browser.csrf_token, "name": "Pages"}
    path = f"/sites/{tenant.site_id}"
    response = tenant.browser.client.post(path, data=values, content_type="multipart/form-data")
    assert (response.status_code, response.headers["Location"]) == (303, "/sites?notice=site-deleted")
    assert tenant.browser.get(path).status_code == 404


def test_oversized_form_returns_413(tenant: Tenant) -> None:
    person = person_of(tenant)
    values = {"csrf_token": tenant.browser.csrf_token, "name": "x" * 1_100_000, "url": "https://www.example.com/"}
    parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in values.items())
    multipart = {"data": f"{parts}--x--\r\n".encode(), "content_type": "multipart/form-data; boundary=x"}
    for sent in ({"data": values}, multipart):
        response = person.call("POST", "/sites", **sent)
        assert (response.status_code, response.mimetype) == (413, "text/html")
    response = person.call("POST", f"/sites/{tenant.site_id}", data={**values, "_method": "PUT"})
    assert response.status_code == 405


def test_head_request_returns_get_headers_without_a_body(tenant: Tenant) -> None:
    response = tenant.browser.call("HEAD", "/dashboard", headers={"Accept": BROWSER_ACCEPT})
    assert (response.status_code, response.mimetype, response.data) == (200, "text/html", b"")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nope", 404),
        ("/sites/999", 404),
        ("/sites/", 404),
        ("/sites/999999999999999999999", 404),
        ("/logout", 405),
        ("/sites?limit=x", 400),
        ("/api/analytics?period=1y", 400),
        ("/docs/nope", 404),
    ],
)
def test_errors_are_html_for_browsers_and_json_for_programs(person: Person, path: str, status: int) -> None:
    response = person.call("GET", path)
    assert (response.status_code, response.mimetype) == (status, "text/html")
    assert person.page.one("h1").text
    answer = person.client.get(path)
    assert (answer.status_code, answer.mimetype) == (status, "application/json")


@pytest.mark.parametrize("path", ["/nope", "/sites/999", "/docs/nope", "/logout", "/sites?limit=x"])
def test_error_page_shows_the_logged_in_user(person: Person, passer_by: Person, path: str) -> None:
    person.call("GET", path)
    assert _menu(person) == [
        "Dashboard",
        "Sites",
        "Collections",
        "Analytics",
        "Members",
        "Plans",
        "Docs",
        "Profile",
        "Log out",
    ]
    assert person.page.first("a", "Go to the dashboard")
    passer_by.call("GET", "/nope")
    assert _menu(passer_by) == ["Plans", "Docs", "Log in"]


def test_rate_limit_page_shows_the_logged_in_user(
    person: Person, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.app.extensions["runtime"].counters.reset_all()
    monkeypatch.setattr("app.services.usage.quota.SESSION_LIMIT", 1)
    person.call("GET", "/sites")
    response = person.call("GET", "/sites")
    assert response.status_code == 429
    assert _menu(person) == [
        "Dashboard",
        "Sites",
        "Collections",
        "Analytics",
        "Members",
        "Plans",
        "Docs",
        "Profile",
        "Log out",
    ]
    assert re.search(r"More than 1 request per minute; try again in \d+ seconds?\.", person.page.one("main").text)


def _menu(person: Person) -> list[str]:
    menu = person.page.one("nav", aria_label="Main")
    return [found.text for found in menu.walk() if found.tag in ("a", "button")]


def test_site_of_another_account_is_404(person: Person, stranger: Tenant) -> None:
    for path in (
        "/sites/{site}",
        "/sites/{site}/edit",
        "/sites/{site}/try",
        "/sites/{site}/try?q=x",
        "/sites/{site}/documents",
        "/api/sites/{site}/keys",
        "/api/sites/{site}/keys/{key}/edit",
        "/api/analytics?site_id={site}",
    ):
        assert person.call("GET", _fill(path, stranger)).status_code == 404, path


def test_non_private_keys_cannot_read_pages(tenant: Tenant) -> None:
    for client in (tenant.public, tenant.search):
        response = client.get("/dashboard", headers={"Accept": BROWSER_ACCEPT})
        assert (response.status_code, response.mimetype) == (403, "text/html")
        assert client.get(f"/sites/{tenant.site_id}/try?q=x").status_code == 403
