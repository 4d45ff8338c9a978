"""CORS and security headers."""

from __future__ import annotations

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import ApiClient, Tenant
from tests.responses import assert_error

ORIGIN = {"Origin": "https://shop.example"}
FOR_BROWSERS = [
    ("GET", "/v1/search?q=x"),
    ("POST", "/v1/search"),
    ("GET", "/v1/client-info"),
    ("POST", "/v1/report-usage"),
    ("POST", "/api/v1/search-log"),
    ("POST", "/api/v1/click"),
    ("GET", "/openapi.json"),
    ("POST", "/engine/multi-search"),
    ("POST", "/engine/indexes/site_1/search"),
    ("GET", "/v1/nowhere"),
]
MANAGEMENT = [
    ("GET", "/sites"),
    ("POST", "/sites"),
    ("DELETE", "/sites/1"),
    ("GET", "/api/sites/1/keys"),
    ("POST", "/api/keys/key_AAAAAAAAAA/toggle"),
    ("GET", "/dashboard"),
    ("PUT", "/profile"),
    ("GET", "/api/analytics"),
    ("GET", "/api/analytics/query?site_id=1&q=x"),
    ("POST", "/login"),
    ("POST", "/register"),
    ("POST", "/api/v1/index/bulk"),
    ("DELETE", "/api/v1/index/destroy"),
    ("GET", "/nowhere"),
]
ALLOWED = {
    "authorization", "content-type", "idempotency-key", "x-request-id", "x-meilisearch-client", "x-search-session",
    "x-search-analytics", "x-search-channel", "x-search-page", "meili-include-metadata", "mcp-protocol-version",
    "mcp-method", "mcp-name", "x-algolia-api-key", "x-algolia-application-id", "x-algolia-agent",
}  # fmt: skip
EXPOSED = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after", "x-request-id"}


def names(value: str) -> set[str]:
    return {name.strip().lower() for name in value.split(",")}


def preflight(app: Flask, method: str, path: str) -> TestResponse:
    headers = {
        **ORIGIN,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return ApiClient(app).call("OPTIONS", path, headers=headers)


@pytest.mark.parametrize(("method", "path"), FOR_BROWSERS)
def test_preflight_succeeds_before_authentication_and_is_cacheable(shared_app: Flask, method: str, path: str) -> None:
    response = preflight(shared_app, method, path)

    assert response.status_code in (200, 204)
    headers = response.headers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Access-Control-Max-Age"] == "7200"
    assert method in {name.strip() for name in headers["Access-Control-Allow-Methods"].split(",")}
    assert names(headers["Access-Control-Allow-Headers"]) == ALLOWED
    assert "Access-Control-Allow-Credentials" not in headers
    assert "X-RateLimit-Limit" not in headers


@pytest.mark.parametrize(("method", "path"), FOR_BROWSERS)
def test_browser_api_responses_and_errors_have_cors_headers(ann: Tenant, method: str, path: str) -> None:
    for client in (ann.public, ann.private, ApiClient(ann.app), ApiClient(ann.app, "nonsense")):
        headers = client.call(method, path, headers=ORIGIN).headers
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert names(headers["Access-Control-Expose-Headers"]) == EXPOSED
        assert "Access-Control-Allow-Credentials" not in headers


@pytest.mark.parametrize(("method", "path"), MANAGEMENT)
def test_management_api_has_no_cors_headers(ann: Tenant, method: str, path: str) -> None:
    answers = [
        preflight(ann.app, method, path),
        ann.private.call(method, path, headers=ORIGIN),
        ann.browser.client.open(path, method=method, headers=ORIGIN),
        ApiClient(ann.app).call(method, path, headers=ORIGIN),
    ]

    for response in answers:
        assert [name for name, _ in response.headers if name.lower().startswith("access-control")] == []


def test_rate_limit_response_is_readable_by_other_origins(tenant: Tenant) -> None:
    tenant.set_plan("pro", searches_per_day=0)

    response = tenant.search.get("/v1/search?q=x", headers=ORIGIN)

    assert_error(response, 429, "rate_limit_exceeded")
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "retry-after" in names(response.headers["Access-Control-Expose-Headers"])


@pytest.mark.parametrize(
    "path", ["/v1/client-info", "/sites", "/dashboard", "/profile/edit", "/api/analytics", "/v1/search?q=x"]
)
def test_personal_responses_are_sent_with_no_store(ann: Tenant, path: str) -> None:
    assert ann.private.get(path).headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/login", "/register", "/dashboard", "/sites", "/docs"])
def test_pages_have_a_strict_content_security_policy(ann: Tenant, path: str) -> None:
    response = ann.browser.get(path, headers={"Accept": "text/html"})

    assert response.mimetype == "text/html"
    policy = {
        directive.strip().partition(" ")[0]: directive.strip().partition(" ")[2]
        for directive in response.headers["Content-Security-Policy"].split(";")
    }
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert "http" not in response.headers["Content-Security-Policy"]
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
