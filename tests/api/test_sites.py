"""Sites: create, list, show, change, pause, delete, and their forms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from flask import Flask

from tests.callers import ApiClient, Tenant, page, register_browser, register_tenant
from tests.responses import assert_error, assert_ok

NEW = {"name": "Shop", "url": "https://shop.example/"}
RECORD = {
    "id",
    "name",
    "url",
    "domain",
    "domains",
    "index",
    "active",
    "agents",
    "description",
    "plan",
    "indexed_pages",
    "created_at",
    "updated_at",
}


def create(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    site: dict[str, Any] = assert_ok(tenant.private.post("/sites", json={**NEW, **fields}), 201)["site"]
    return site


def test_created_site_has_the_expected_record(app: Flask) -> None:
    with time_machine.travel(datetime(2031, 5, 14, 12, 30, 15, 250_000, tzinfo=UTC), tick=False):
        browser, _ = register_browser(app, "ann@example.com")
        response = browser.post("/sites", json={"name": "  Shop ", "url": "HTTPS://Shop.Example:8443/a?b"})

    answer = assert_ok(response, 201)
    assert answer["success"] is True
    site = answer["site"]
    assert set(site) == RECORD
    assert response.headers["Location"] == f"/sites/{site['id']}"
    assert site == {
        **site, "name": "Shop", "url": "HTTPS://Shop.Example:8443/a?b", "domain": "shop.example", "domains": [],
        "active": True, "agents": False, "description": "", "plan": "pro", "indexed_pages": 0,
        "created_at": "2031-05-14T12:30:15.250Z", "updated_at": "2031-05-14T12:30:15.250Z",
    }  # fmt: skip
    with time_machine.travel(datetime(2031, 5, 14, 12, 31, tzinfo=UTC)):
        assert assert_ok(browser.get(response.headers["Location"])) == {"site": site}


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("http://example.com", "example.com"),
        ("https://EXAMPLE.com./", "example.com"),
        ("https://user@example.com:80/x", "example.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://日本.jp/", "xn--wgv71a.jp"),
        ("http://localhost:3000", "localhost"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://[::1]:8080/", "::1"),
        ("https://example.com/" + "x" * 2028, "example.com"),
    ],
)
def test_site_domain_is_the_normalized_host_of_its_url(ann: Tenant, url: str, domain: str) -> None:
    assert create(ann, url=url)["domain"] == domain


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": None}, "name"), ({"name": ""}, "name"), ({"name": "  "}, "name"), ({"name": "x" * 101}, "name"),
        ({"name": 5}, "name"), ({"name": "a\x00"}, "name"), ({"url": None}, "url"), ({"url": ""}, "url"),
        ({"url": "shop.example"}, "url"), ({"url": "/shop"}, "url"), ({"url": "//shop.example"}, "url"),
        ({"url": "ftp://shop.example"}, "url"), ({"url": "javascript:alert(1)"}, "url"), ({"url": "https://"}, "url"),
        ({"url": "https:///x"}, "url"), ({"url": "https://a b.example"}, "url"), ({"url": "https://a..b"}, "url"),
        ({"url": "https://" + "a" * 64 + ".example"}, "url"), ({"url": "https://x.example:99999"}, "url"),
        ({"url": "https://[::1"}, "url"), ({"url": "https://example.com/" + "x" * 2029}, "url"),
        ({"url": "https://<b>/"}, "url"), ({"active": True}, "active"), ({"id": 5}, "id"),
        ({"domains": "https://blog.example/"}, "domains"), ({"domains": None}, "domains"),
        ({"domains": ["https://blog.example/", "blog.example"]}, "domains[1]"), ({"domains": [5]}, "domains[0]"),
        ({"domains": [f"https://{number}.example/" for number in range(11)]}, "domains"),
    ],
)  # fmt: skip
def test_site_with_invalid_fields_is_rejected(ann: Tenant, fields: dict[str, Any], field: str) -> None:
    total = ann.private.get("/sites").get_json()["total"]

    assert_error(ann.private.post("/sites", json={**NEW, **fields}), 400, "validation_failed", field=field)
    assert ann.private.get("/sites").get_json()["total"] == total


def test_site_list_is_oldest_first_and_paginated(app: Flask) -> None:
    tenant = register_tenant(app, "ann@example.com")
    made = [tenant.site_id, *(create(tenant, name=f"Site {number}")["id"] for number in range(4))]

    everything = assert_ok(tenant.private.get("/sites"))
    middle = assert_ok(tenant.private.get("/sites?limit=2&offset=1"))

    assert [site["id"] for site in everything["sites"]] == made
    assert {name: everything[name] for name in ("total", "limit", "offset")} == {"total": 5, "limit": 20, "offset": 0}
    assert [site["id"] for site in middle["sites"]] == made[1:3]
    assert {name: middle[name] for name in ("total", "limit", "offset")} == {"total": 5, "limit": 2, "offset": 1}
    assert assert_ok(tenant.private.get("/sites?offset=99"))["sites"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=", "offset=-1", "offset=1.0"])
def test_pagination_out_of_range_returns_400(ann: Tenant, query: str) -> None:
    field = query.partition("=")[0]

    assert_error(ann.private.get(f"/sites?{query}"), 400, "validation_failed", field=field)
    keys = f"/api/sites/{ann.site_id}/keys?{query}"
    assert_error(ann.private.get(keys), 400, "validation_failed", field=field)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_omitted_fields_stay_unchanged_on_update(ann: Tenant, method: str) -> None:
    site = create(ann)

    renamed = assert_ok(ann.private.call(method, f"/sites/{site['id']}", json={"name": "Other"}))
    moved = assert_ok(ann.private.call(method, f"/sites/{site['id']}", json={"url": "http://other.example/"}))

    assert renamed["success"] is True
    assert renamed["site"] == {**site, "name": "Other", "updated_at": renamed["site"]["updated_at"]}
    assert (moved["site"]["name"], moved["site"]["domain"]) == ("Other", "other.example")
    assert moved["site"]["index"] == site["index"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "body"), ({"name": ""}, "name"), ({"url": "x"}, "url"), ({"active": "false"}, "active"),
     ({"active": None}, "active"), ({"plan": "business"}, "plan"), ({"name": "x", "id": 5}, "id")],
)  # fmt: skip
def test_site_update_with_invalid_fields_is_rejected(ann: Tenant, body: dict[str, Any], field: str) -> None:
    site = create(ann)

    assert_error(ann.private.put(f"/sites/{site['id']}", json=body), 400, "validation_failed", field=field)
    assert ann.private.get(f"/sites/{site['id']}").get_json() == {"site": site}


def test_paused_site_rejects_searches_but_can_be_managed(tenant: Tenant) -> None:
    tenant.index(page(1))
    paused = assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False}))

    assert paused["site"]["active"] is False
    assert_error(tenant.search.get("/v1/search?q=page"), 403, "site_inactive")
    assert_error(tenant.private.post("/v1/search", json={"q": "page"}), 403, "site_inactive")
    assert assert_ok(tenant.public.get("/v1/client-info"))["active"] is False
    assert_ok(tenant.search.post("/api/v1/search-log", json={"query": "x", "results_count": 0}))
    report = {"operation": "search", "count": 1, "index": tenant.site["index"]}
    assert_ok(tenant.public.post("/v1/report-usage", json=report))
    assert_ok(tenant.browser.get(f"/sites/{tenant.site_id}/edit"))
    assert_ok(tenant.browser.get(f"/api/analytics?site_id={tenant.site_id}"))
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"active": True}))
    assert tenant.found_ids("page") == ["page-1"]


def test_indexed_pages_equals_the_number_of_documents(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    tenant.index(page(2), page(3))
    tenant.private.delete("/api/v1/index/destroy", json={"id": "page-1"})

    assert assert_ok(tenant.private.get(f"/sites/{tenant.site_id}"))["site"]["indexed_pages"] == 2
    assert assert_ok(tenant.private.get("/dashboard"))["usage"]["indexed_pages"] == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("number", [2**63, 10**19 - 1, -(10**19) + 1])
def test_site_id_beyond_64_bits_returns_404(tenant: Tenant, method: str, number: int) -> None:
    body = {"json": {"name": "New"}} if method == "PUT" else {}

    assert_error(tenant.private.call(method, f"/sites/{number}", **body), 404, "site_not_found")


def test_purging_a_site_removes_its_keys_and_documents(tenant: Tenant) -> None:
    site = create(tenant)
    token = tenant.browser.post(f"/api/sites/{site['id']}/keys", json={"name": "k"}).get_json()["api_key"]
    tenant.private.post(f"/api/v1/index/bulk?site_id={site['id']}", json={"documents": [page(1)]})

    assert assert_ok(tenant.browser.delete(f"/sites/{site['id']}?purge=true")) == {"success": True}

    assert_error(tenant.browser.delete(f"/sites/{site['id']}"), 404, "site_not_found")
    assert_error(tenant.browser.get(f"/sites/{site['id']}"), 404, "site_not_found")
    assert_error(ApiClient(tenant.app, token).get("/v1/search?q=x"), 401, "invalid_api_key")
    dashboard = assert_ok(tenant.browser.get("/dashboard"))
    assert (dashboard["siteCount"], dashboard["apiKeyCount"], dashboard["usage"]["indexed_pages"]) == (1, 3, 0)
    assert create(tenant)["id"] > site["id"], "IDs must not be reused"


def test_usage_today_remains_when_the_site_is_purged(tenant: Tenant) -> None:
    site = create(tenant)
    assert_ok(tenant.private.get(f"/v1/search?q=x&site_id={site['id']}"))
    report = {"operation": "search", "count": 5, "index": site["index"]}
    assert_ok(tenant.private.post("/v1/report-usage", json=report))

    assert_ok(tenant.browser.delete(f"/sites/{site['id']}?purge=true"))
    tenant.app.extensions["jobs"].run_all()

    assert assert_ok(tenant.public.get("/v1/client-info"))["limits"]["used_today"] == 6


def test_site_creation_form_has_name_url_and_domains(ann: Tenant) -> None:
    form = assert_ok(ann.private.get("/sites/create"))["form"]

    assert (form["method"], form["action"]) == ("POST", "/sites")
    assert [(field["name"], field["type"], field["required"], field["value"]) for field in form["fields"]] == [
        ("name", "text", True, None),
        ("url", "url", True, None),
        ("domains", "list", False, None),
    ]
    assert [field["max_length"] for field in form["fields"]] == [100, 2048, None]
    assert "csrf_token" not in form


def test_site_edit_form_can_be_submitted_unchanged(ann: Tenant) -> None:
    site = create(ann, name="Edited")

    answer = assert_ok(ann.browser.get(f"/sites/{site['id']}/edit"))

    assert answer["site"] == site
    form = answer["form"]
    assert (form["method"], form["action"]) == ("PUT", f"/sites/{site['id']}")
    assert {field["name"]: field["value"] for field in form["fields"]} == {
        "name": "Edited", "url": site["url"], "domains": [], "active": True, "agents": False,
        "description": "",
    }  # fmt: skip
    assert form["csrf_token"] == ann.browser.csrf_token
    sent = {field["name"]: field["value"] for field in form["fields"]}
    assert_ok(ann.browser.call(form["method"], form["action"], json=sent))


def test_additional_domains_are_deduplicated_and_kept_until_replaced(ann: Tenant) -> None:
    blog, shop = "https://blog.example.org/", "HTTP://Shop.Example.net:8080"
    site = create(ann, domains=[blog, shop, blog])
    path = f"/sites/{site['id']}"
    assert site["domains"] == [blog, shop]
    assert assert_ok(ann.private.put(path, json={"name": "Other"}))["site"]["domains"] == [blog, shop]
    assert assert_ok(ann.private.get(path))["site"]["domains"] == [blog, shop]
    (field,) = [
        each for each in assert_ok(ann.browser.get(f"{path}/edit"))["form"]["fields"] if each["name"] == "domains"
    ]
    assert (field["type"], field["value"]) == ("list", [blog, shop])
    assert assert_ok(ann.private.put(path, json={"domains": []}))["site"]["domains"] == []
    ten = [f"https://{number}.example/" for number in range(10)]
    assert assert_ok(ann.private.put(path, json={"domains": ten}))["site"]["domains"] == ten
