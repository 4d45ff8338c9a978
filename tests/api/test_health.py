"""GET /healthz and /readyz."""

from __future__ import annotations

from flask import Flask

from tests.answers import assert_ok
from tests.callers import ApiClient, Tenant


def test_health(app: Flask) -> None:
    assert assert_ok(ApiClient(app).get("/healthz")) == {"status": "ok"}


def test_readiness_names_every_part(app: Flask) -> None:
    assert assert_ok(ApiClient(app).get("/readyz")) == {
        "status": "ok",
        "checks": {"database": "ok", "counters": "ok", "search": "ok"},
    }


def test_both_need_no_key_and_take_no_wrong_one_amiss(tenant: Tenant) -> None:
    for path in ("/healthz", "/readyz"):
        for client in (ApiClient(tenant.app, "nonsense"), tenant.public, tenant.browser):
            assert_ok(client.get(path))
