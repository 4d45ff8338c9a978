"""GET /v1/client-info."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.answers import assert_ok
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings

KINDS = ("public", "search", "private")


def info(tenant: Tenant, kind: str = "public", **kwargs: Any) -> dict[str, Any]:
    return assert_ok(tenant.client(kind).get("/v1/client-info", **kwargs))


def gateway_status(tenant: Tenant, token: str) -> int:
    """What the gateway says to an engine key."""
    path = f"/engine/indexes/{tenant.site['index']}/search?q=page"
    return ApiClient(tenant.app, token).get(path).status_code


@pytest.mark.parametrize("kind", KINDS)
def test_what_every_key_is_told(tenant: Tenant, kind: str) -> None:
    response = tenant.client(kind).get("/v1/client-info")

    answer = assert_ok(response)
    assert response.headers["Cache-Control"] == "no-store"
    assert answer == {
        "engine_host": "http://localhost/engine",
        "engine_key": answer["engine_key"],
        "engine_public_key": answer["engine_public_key"],
        "active": True,
        "index": tenant.site["index"],
        "domain": "www.example.com",
        "plan": "pro",
        "limits": {"daily_limit": 10_000, "used_today": 0, "unlimited": False},
        "usage_limits": {"max_indexed_pages": 100_000, "search_queries_per_month": 300_000, "unlimited": False},
    }
    for secret in (answer["engine_key"], answer["engine_public_key"]):
        assert len(secret) > 30
        assert not secret.startswith("svc_")
        assert secret not in tenant.tokens.values()


def test_the_host_is_the_public_url_where_there_is_one(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, public_url="https://search.example/base/"))
    tenant = register_tenant(app, "ann@example.com")

    assert info(tenant)["engine_host"] == "https://search.example/base/engine"
    close_app(app)


def test_the_host_is_the_requests_otherwise(tenant: Tenant) -> None:
    assert info(tenant, base_url="http://pages.example:8000")["engine_host"] == "http://pages.example:8000/engine"


def test_the_keys_search_this_index(tenant: Tenant) -> None:
    tenant.index(page(1))
    answer = info(tenant, "search")

    assert gateway_status(tenant, answer["engine_key"]) == 200
    assert gateway_status(tenant, answer["engine_public_key"]) == 200


def test_and_no_other(tenant: Tenant, stranger: Tenant) -> None:
    answer = info(tenant)

    for token in (answer["engine_key"], answer["engine_public_key"]):
        assert gateway_status(stranger, token) == 403


def test_the_engine_key_stops_with_its_service_key_and_the_public_one_does_not(tenant: Tenant) -> None:
    tenant.index(page(1))
    answer = info(tenant, "search")
    of_another = info(tenant, "private")["engine_key"]

    tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle")

    assert gateway_status(tenant, answer["engine_key"]) == 403
    assert gateway_status(tenant, answer["engine_public_key"]) == 200
    assert gateway_status(tenant, of_another) == 200


def test_both_stop_when_the_site_is_paused_and_fresh_ones_work_afterwards(tenant: Tenant) -> None:
    tenant.index(page(1))
    before = info(tenant)
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    paused = info(tenant)
    assert paused["active"] is False
    for answer in (before, paused):
        assert gateway_status(tenant, answer["engine_key"]) == 403
        assert gateway_status(tenant, answer["engine_public_key"]) == 403

    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True})
    assert gateway_status(tenant, info(tenant)["engine_public_key"]) == 200


def test_no_secret_is_logged(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    answer = info(tenant)
    gateway_status(tenant, answer["engine_key"])
    gateway_status(tenant, answer["engine_public_key"])

    for secret in (answer["engine_key"], answer["engine_public_key"], tenant.tokens["public"]):
        assert secret not in caplog.text


def test_the_document_has_no_secret_in_its_examples(shared_app: Flask) -> None:
    text = ApiClient(shared_app).get("/openapi.json").get_data(as_text=True)

    assert not re.search(r"svc_(?:pub|srch|prv)_[0-9A-Za-z]{38}", text)
