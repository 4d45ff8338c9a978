"""GET /v1/client-info."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask

from backends.base import Credential
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_ok

KINDS = ("public", "search", "private")


def info(tenant: Tenant, kind: str = "public", **kwargs: Any) -> dict[str, Any]:
    return assert_ok(tenant.client(kind).get("/v1/client-info", **kwargs))


def gateway_status(tenant: Tenant, token: str) -> int:
    """Return the gateway's status code for a search with an engine key."""
    path = f"/engine/indexes/{tenant.site['index']}/search?q=page"
    return ApiClient(tenant.app, token).get(path).status_code


@pytest.mark.parametrize("kind", KINDS)
def test_client_info_has_the_same_fields_for_every_kind_of_key(tenant: Tenant, kind: str) -> None:
    response = tenant.client(kind).get("/v1/client-info")

    answer = assert_ok(response)
    assert response.headers["Cache-Control"] == "no-store"
    assert answer == {
        "engine_host": "http://localhost/engine",
        "engine_key": answer["engine_key"],
        "engine_public_key": answer["engine_public_key"],
        "active": True,
        "ask": False,
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


def test_engine_host_uses_the_configured_public_url(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, public_url="https://search.example/base/"))
    tenant = register_tenant(app, "ann@example.com")

    assert info(tenant)["engine_host"] == "https://search.example/base/engine"
    close_app(app)


def test_engine_host_defaults_to_the_request_host(tenant: Tenant) -> None:
    assert info(tenant, base_url="http://pages.example:8000")["engine_host"] == "http://pages.example:8000/engine"


def test_engine_keys_can_search_the_sites_index(tenant: Tenant) -> None:
    tenant.index(page(1))
    answer = info(tenant, "search")

    assert gateway_status(tenant, answer["engine_key"]) == 200
    assert gateway_status(tenant, answer["engine_public_key"]) == 200


def test_engine_keys_cannot_search_another_sites_index(tenant: Tenant, stranger: Tenant) -> None:
    answer = info(tenant)

    for token in (answer["engine_key"], answer["engine_public_key"]):
        assert gateway_status(stranger, token) == 403


def test_disabling_a_key_revokes_its_engine_key_but_not_the_public_engine_key(tenant: Tenant) -> None:
    tenant.index(page(1))
    answer = info(tenant, "search")
    of_another = info(tenant, "private")["engine_key"]

    tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle")

    assert gateway_status(tenant, answer["engine_key"]) == 403
    assert gateway_status(tenant, answer["engine_public_key"]) == 200
    assert gateway_status(tenant, of_another) == 200


def test_pausing_the_site_revokes_engine_keys_and_resuming_issues_new_ones(tenant: Tenant) -> None:
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


class TestDirectEngine:
    """An engine that browsers call directly and that issues its own keys."""

    @pytest.fixture
    def ended(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Set up a direct engine and return the list of credentials revoked on it."""
        part = tenant.app.extensions["runtime"]
        monkeypatch.setattr(part, "settings", replace(part.settings, search_public_url="https://engine.example"))
        engine = part.engines.default
        ended: list[str] = []

        def issue(index: str, holder: str, expires_at: datetime) -> Credential:
            return Credential(f"secret-of-{holder}-until-{expires_at:%H:%M}", holder)

        monkeypatch.setattr(engine, "issues_credentials", True)
        monkeypatch.setattr(engine, "issue_credential", issue)
        monkeypatch.setattr(engine, "revoke_credential", ended.append)
        return ended

    def path(self, tenant: Tenant, kind: str) -> str:
        return f"/api/sites/{tenant.site_id}/keys/{tenant.keys[kind]['id']}"

    def test_key_with_allowed_origins_gets_its_own_public_engine_key(self, tenant: Tenant, ended: list[str]) -> None:
        key_id = tenant.keys["public"]["id"]
        assert info(tenant)["engine_public_key"].startswith(f"secret-of-site-{tenant.site_id}-")

        assert_ok(tenant.browser.put(self.path(tenant, "public"), json={"allowed_origins": ["https://a.example"]}))
        answer = info(tenant)
        assert answer["engine_host"] == "https://engine.example"
        assert answer["engine_public_key"] == answer["engine_key"]
        assert answer["engine_public_key"].startswith(f"secret-of-{key_id}-v1-")

        assert_ok(tenant.browser.delete(self.path(tenant, "public")))
        assert ended == [f"{key_id}-v1"]

    def test_moving_key_expiry_forward_revokes_issued_engine_keys(self, tenant: Tenant, ended: list[str]) -> None:
        key_id, path = tenant.keys["search"]["id"], self.path(tenant, "search")
        noon = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)

        def expire(hours: int | None) -> str:
            """Set the key's expiry and return the engine key issued afterwards."""
            expires_at = None if hours is None else (noon + timedelta(hours=hours)).isoformat()
            assert_ok(tenant.private.put(path, json={"expires_at": expires_at}))
            return str(info(tenant, "search")["engine_key"])

        with time_machine.travel(noon, tick=False):
            info(tenant, "search")
            assert expire(9) == f"secret-of-{key_id}-v2-until-21:00"
            assert ended == [f"{key_id}-v1"]
            assert expire(7) == f"secret-of-{key_id}-v3-until-19:00"
            assert ended == [f"{key_id}-v1", f"{key_id}-v2"]
            for hours in (7, 8, None):
                expire(hours)
            assert ended == [f"{key_id}-v1", f"{key_id}-v2"]


def test_client_info_secrets_are_not_logged(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    answer = info(tenant)
    gateway_status(tenant, answer["engine_key"])
    gateway_status(tenant, answer["engine_public_key"])

    for secret in (answer["engine_key"], answer["engine_public_key"], tenant.tokens["public"]):
        assert secret not in caplog.text


def test_openapi_document_contains_no_real_keys(shared_app: Flask) -> None:
    text = ApiClient(shared_app).get("/openapi.json").get_data(as_text=True)

    assert not re.search(r"svc_(?:pub|srch|prv)_[0-9A-Za-z]{38}", text)
