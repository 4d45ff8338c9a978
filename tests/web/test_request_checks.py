"""Precedence of errors: each check against the next one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import time_machine
from flask import Flask

from tests.callers import ApiClient, Tenant, page
from tests.responses import assert_error, assert_ok

MIB = 1_048_576


@pytest.fixture(autouse=True)
def _one_minute() -> Iterator[None]:
    """Make all requests of a test in the same minute."""
    with time_machine.travel(datetime.now(UTC), tick=False):
        yield


def test_0_ip_address_limit_is_checked_before_the_route(app: Flask) -> None:
    nobody = ApiClient(app)
    for _ in range(300):
        nobody.get("/openapi.json")

    for method, path in (("GET", "/nowhere"), ("PUT", "/dashboard"), ("GET", "/dashboard")):
        assert_error(nobody.call(method, path), 429, "rate_limit_exceeded")


@pytest.mark.parametrize("token", [None, "svc_prv_nonsense"])
def test_1_route_is_checked_before_identity(shared_app: Flask, token: str | None) -> None:
    client = ApiClient(shared_app, token)

    assert_error(client.get("/nowhere"), 404, "not_found")
    assert_error(client.put("/dashboard"), 405, "method_not_allowed")


def test_1_unknown_route_counts_towards_the_callers_limit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant.set_plan("pro", requests_per_minute=4)
    monkeypatch.setattr("app.services.usage.quota.SESSION_LIMIT", 4)
    tenant.app.extensions["runtime"].counters.reset_all()

    for client, pairs in ((tenant.private, 2), (tenant.public, 20), (tenant.browser, 2)):
        for method, path, code in (
            ("GET", "/nowhere", "not_found"),
            ("PUT", "/dashboard", "method_not_allowed"),
        ) * pairs:
            assert client.call(method, path).get_json()["error"] == code
        for method, path in (("GET", "/nowhere"), ("PUT", "/dashboard"), ("GET", "/dashboard")):
            assert_error(client.call(method, path), 429, "rate_limit_exceeded")


def test_1_route_is_checked_before_a_key_that_was_disabled(tenant: Tenant) -> None:
    assert_error(tenant.search.get("/nowhere"), 404, "not_found")
    tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle")

    assert_error(tenant.search.get("/nowhere"), 404, "not_found")
    assert_error(tenant.search.put("/dashboard"), 405, "method_not_allowed")


def test_2_identity_is_checked_before_request_limits(tenant: Tenant) -> None:
    tenant.set_plan("pro", requests_per_minute=5)
    disabled = tenant.client("search")
    tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle")
    while tenant.private.get("/sites").status_code == 200:
        pass

    assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
    assert_error(disabled.get("/v1/search?q=x"), 401, "key_disabled")
    assert_error(ApiClient(tenant.app).get("/sites"), 401, "missing_api_key")


def test_3_request_limits_are_checked_before_csrf_and_the_kind_of_key(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.set_plan("pro", requests_per_minute=5)
    monkeypatch.setattr("app.services.usage.quota.SESSION_LIMIT", 5)
    for client in (tenant.private, tenant.public, tenant.browser):
        while client.get("/dashboard").status_code != 429:
            pass

    assert_error(tenant.browser.client.put("/profile", json={"name": "x"}), 429, "rate_limit_exceeded")
    assert_error(tenant.search.get("/dashboard"), 429, "rate_limit_exceeded")
    assert_error(tenant.public.get("/dashboard"), 429, "rate_limit_exceeded")


def test_4_csrf_is_checked_before_the_body_and_objects(ann: Tenant) -> None:
    browser = ann.browser.client

    assert_error(browser.put("/profile", data=b"{", content_type="text/plain"), 403, "csrf_failed")
    assert_error(browser.put("/profile", data=b" " * (MIB + 1)), 403, "csrf_failed")
    assert_error(browser.delete("/sites/987654321"), 403, "csrf_failed")


def test_5_kind_of_key_is_checked_before_the_body_and_objects(ann: Tenant) -> None:
    for client in (ann.public, ann.search):
        for data in (b"{", b" " * (MIB + 1)):
            response = client.post("/api/v1/index/bulk?site_id=x", data=data, content_type="text/plain")
            assert_error(response, 403, "insufficient_permission")
        assert_error(client.get("/sites/987654321"), 403, "insufficient_permission")


@pytest.mark.parametrize(
    "path", ["/v1/search", "/sites", "/api/v1/index/bulk?site_id=x", "/api/v1/index/destroy?site_id=x"]
)
def test_6_body_size_type_json_and_fields_are_checked_in_this_order(ann: Tenant, path: str) -> None:
    method = "DELETE" if "destroy" in path else "POST"
    too_large = b"{" * (16 * MIB + 1 if "bulk" in path else MIB + 1)

    def send(data: bytes, content_type: str) -> object:
        return ann.private.call(method, path, data=data, content_type=content_type)

    assert_error(send(too_large, "text/plain"), 413, "payload_too_large")
    assert_error(send(b"{", "text/plain"), 415, "unsupported_media_type")
    assert_error(send(b"{", "application/json"), 400, "invalid_json")
    assert_error(send(b'{"wrong": 1}', "application/json"), 400, "validation_failed")


def test_6_body_is_checked_before_objects(ann: Tenant, eve: Tenant) -> None:
    for site_id in (eve.site_id, 987654321):
        assert_error(ann.private.put(f"/sites/{site_id}", json={"wrong": 1}), 400, "validation_failed")
        assert_error(ann.private.put(f"/sites/{site_id}", data=b"{}"), 415, "unsupported_media_type")
        keys = f"/api/sites/{site_id}/keys"
        past = {"name": "x", "expires_at": "2001-01-01"}
        assert_error(ann.private.post(keys, json=past), 400, "validation_failed", field="expires_at")
        assert_error(ann.private.put(f"{keys}/x", json={"expires_at": "2001-01-01"}), 400, "validation_failed")
        bulk = f"/api/v1/index/bulk?site_id={site_id}"
        assert_error(ann.private.post(bulk, json={"documents": [{}]}), 400, "validation_failed")
        search = f"/v1/search?site_id={site_id}"
        assert_error(ann.private.get(f"{search}&q="), 400, "validation_failed", field="q")
        assert_error(ann.private.get(f"{search}&q=x&sort=,"), 400, "invalid_sort")
        assert_error(ann.private.get(f"{search}&q=x&facets=,"), 400, "invalid_facet")
    assert_error(ann.public.post("/v1/report-usage", json={"index": "nowhere"}), 400, "validation_failed")


def test_7_objects_are_checked_before_site_state_and_quotas(tenant: Tenant, stranger: Tenant) -> None:
    other = assert_ok(tenant.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}), 201)["site"]["id"]
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    tenant.browser.put(f"/sites/{other}", json={"active": False})
    tenant.set_plan("pro", searches_per_day=0, keys=0, documents=0)

    for site_id in (stranger.site_id, 987654321):
        assert_error(tenant.private.get(f"/v1/search?q=x&site_id={site_id}"), 404, "site_not_found")
        bulk = tenant.private.post(f"/api/v1/index/bulk?site_id={site_id}", json={"documents": [page(1)]})
        assert_error(bulk, 404, "site_not_found")
        keys = tenant.private.post(f"/api/sites/{site_id}/keys", json={"name": "x"})
        assert_error(keys, 404, "site_not_found")
    assert_error(tenant.search.get(f"/v1/search?q=x&site_id={other}"), 403, "insufficient_permission")


def test_8_paused_site_is_checked_before_quotas(tenant: Tenant) -> None:
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    tenant.set_plan("pro", searches_per_day=0, documents=0)

    assert_error(tenant.search.get("/v1/search?q=x"), 403, "site_inactive")
    bulk = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(1)]})
    assert_error(bulk, 403, "site_inactive")


def test_8_site_state_and_quotas_are_checked_before_the_operation(tenant: Tenant) -> None:
    tenant.set_plan("pro", searches_per_day=0)
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    destroyed = tenant.private.delete("/api/v1/index/destroy", json={"id": "no such document"})
    assert_error(destroyed, 403, "site_inactive")
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True})
    assert_error(
        tenant.search.get("/v1/search", query_string={"q": "x", "filters": "nowhere = 1"}), 429, "rate_limit_exceeded"
    )
