"""GET /healthz and /readyz."""

from __future__ import annotations

from flask import Flask

from tests.callers import ApiClient, Tenant
from tests.responses import assert_ok


def test_healthz_returns_ok(app: Flask) -> None:
    assert assert_ok(ApiClient(app).get("/healthz")) == {"status": "ok"}


def test_readyz_reports_every_dependency(app: Flask) -> None:
    assert assert_ok(ApiClient(app).get("/readyz")) == {
        "status": "ok",
        "checks": {"database": "ok", "counters": "ok", "search": "ok"},
    }


def test_healthz_and_readyz_ignore_credentials(tenant: Tenant) -> None:
    for path in ("/healthz", "/readyz"):
        for client in (ApiClient(tenant.app, "nonsense"), tenant.public, tenant.browser):
            assert_ok(client.get(path))
