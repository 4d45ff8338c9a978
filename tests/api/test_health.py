"""GET /healthz, /readyz and /metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.answers import assert_error, assert_ok
from tests.callers import ApiClient, Tenant, page
from tests.conftest import close_app, make_app, make_settings

TOKEN = "a token for the metrics"
HEADERS_OF_PROXIES = (
    "Via", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-IP",
    "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP",
    "X-Original-Host", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id", "Fly-Client-IP", "X-Scheme",
)  # fmt: skip


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


def metrics(app: Flask, token: str | None = None, address: str = "127.0.0.1", **headers: str) -> TestResponse:
    return ApiClient(app, token).get("/metrics", headers=headers, environ_overrides={"REMOTE_ADDR": address})


class TestMetrics:
    """In Prometheus' format: to this machine, or with a token."""

    def counted(self, app: Flask, endpoint: str, status: int) -> float:
        text = metrics(app).get_data(as_text=True)
        found = re.search(
            rf'^http_requests_total{{endpoint="{re.escape(endpoint)}",method="GET",status="{status}"}} (\S+)$',
            text,
            re.MULTILINE,
        )
        return float(found[1]) if found else 0.0

    def test_requests_are_counted_by_endpoint_and_status(self, app: Flask, tenant: Tenant) -> None:
        tenant.index(page(1))
        before = self.counted(app, "search.search", 200), self.counted(app, "search.search", 403)

        tenant.find("page")
        tenant.find("page")
        tenant.public.get("/v1/search?q=page")

        after = self.counted(app, "search.search", 200), self.counted(app, "search.search", 403)
        assert (after[0] - before[0], after[1] - before[1]) == (2, 1)

    def test_the_format(self, app: Flask) -> None:
        response = metrics(app)

        assert response.status_code == 200
        assert response.mimetype == "text/plain"
        assert "# TYPE http_requests_total counter" in response.get_data(as_text=True)
        assert "# TYPE http_request_duration_seconds histogram" in response.get_data(as_text=True)

    def test_unknown_addresses_and_methods_make_no_new_series(self, app: Flask) -> None:
        for number in range(3):
            ApiClient(app).call(f"METHOD{number}", f"/nowhere/{number}")

        text = metrics(app).get_data(as_text=True)

        assert "nowhere" not in text
        assert "METHOD0" not in text

    @pytest.mark.parametrize(
        ("token", "address", "headers", "code"),
        [
            (None, "10.0.0.1", {}, "missing_api_key"),
            ("wrong", "10.0.0.1", {}, "invalid_api_key"),
            (None, "127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, "missing_api_key"),
            (None, "127.0.0.1", {"Forwarded": "for=127.0.0.1"}, "missing_api_key"),
            ("", "10.0.0.1", {}, "missing_api_key"),
            *((None, "127.0.0.1", {name: "10.0.0.1"}, "missing_api_key") for name in HEADERS_OF_PROXIES),
        ],
    )
    def test_others_are_refused(
        self, tmp_path: Path, token: str | None, address: str, headers: dict[str, str], code: str
    ) -> None:
        app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

        assert_error(metrics(app, token, address, **headers), 401, code)
        close_app(app)

    def test_the_token_lets_in(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

        assert metrics(app, TOKEN, "10.0.0.1").status_code == 200
        close_app(app)

    @pytest.mark.parametrize("token", ["", "x", TOKEN])
    def test_without_a_token_set_none_lets_in(self, app: Flask, token: str) -> None:
        assert metrics(app, token or None, "10.0.0.1").status_code == 401


def test_a_key_is_no_token_for_metrics(tenant: Tenant) -> None:
    overrides: dict[str, Any] = {"environ_overrides": {"REMOTE_ADDR": "10.0.0.1"}}

    assert_error(tenant.private.get("/metrics", **overrides), 401, "invalid_api_key")
