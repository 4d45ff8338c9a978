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


class TestDirectEngine:
    """An engine that browsers reach themselves, with keys of its own."""

    @pytest.fixture
    def ended(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Such an engine; what it was told to end."""
        part = tenant.app.extensions["runtime"]
        monkeypatch.setattr(part, "settings", replace(part.settings, search_public_url="https://engine.example"))
        engine = part.engines.current
        ended: list[str] = []

        def issue(index: str, holder: str, expires_at: datetime) -> Credential:
            return Credential(f"secret-of-{holder}-until-{expires_at:%H:%M}", holder)

        monkeypatch.setattr(engine, "issues_credentials", True)
        monkeypatch.setattr(engine, "issue_credential", issue)
        monkeypatch.setattr(engine, "revoke_credential", ended.append)
        return ended

    def path(self, tenant: Tenant, kind: str) -> str:
        return f"/api/sites/{tenant.site_id}/keys/{tenant.keys[kind]['id']}"

    def test_a_key_that_names_origins_has_a_public_engine_key_of_its_own(
        self, tenant: Tenant, ended: list[str]
    ) -> None:
        key_id = tenant.keys["public"]["id"]
        assert info(tenant)["engine_public_key"].startswith(f"secret-of-site-{tenant.site_id}-")

        assert_ok(tenant.browser.put(self.path(tenant, "public"), json={"allowed_origins": ["https://a.example"]}))
        answer = info(tenant)
        assert answer["engine_host"] == "https://engine.example"
        assert answer["engine_public_key"] == answer["engine_key"]
        assert answer["engine_public_key"].startswith(f"secret-of-{key_id}-v1-")

        assert_ok(tenant.browser.delete(self.path(tenant, "public")))
        assert ended == [f"{key_id}-v1"]

    def test_an_expiry_that_is_brought_forward_ends_what_was_handed_out(self, tenant: Tenant, ended: list[str]) -> None:
        key_id, path = tenant.keys["search"]["id"], self.path(tenant, "search")
        noon = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)

        def expire(hours: int | None) -> str:
            """What the key is given then, after its expiry was set."""
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
