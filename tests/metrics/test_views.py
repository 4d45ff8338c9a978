"""/metrics is in Prometheus' format, for this machine or with a token; a crawling process has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask
from werkzeug.test import TestResponse

from app.metrics.views import serve_processes
from tests.answers import assert_error
from tests.callers import ApiClient, Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.metrics.samples import has, samples_of
from tests.patience import PATIENCE_SECONDS

TOKEN = "a token for the metrics"
HEADERS_OF_PROXIES = (
    "Via", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-IP",
    "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP",
    "X-Original-Host", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id", "Fly-Client-IP", "X-Scheme",
)  # fmt: skip


def metrics(app: Flask, token: str | None = None, address: str = "127.0.0.1", **headers: str) -> TestResponse:
    return ApiClient(app, token).get("/metrics", headers=headers, environ_overrides={"REMOTE_ADDR": address})


def test_the_format(app: Flask) -> None:
    response = metrics(app)

    assert response.status_code == 200
    assert response.mimetype == "text/plain"
    assert "# TYPE http_requests_total counter" in response.get_data(as_text=True)
    assert "# TYPE http_request_duration_seconds histogram" in response.get_data(as_text=True)


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
    tmp_path: Path, token: str | None, address: str, headers: dict[str, str], code: str
) -> None:
    app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

    assert_error(metrics(app, token, address, **headers), 401, code)
    close_app(app)


def test_the_token_lets_in(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

    assert metrics(app, TOKEN, "10.0.0.1").status_code == 200
    close_app(app)


@pytest.mark.parametrize("token", ["", "x", TOKEN])
def test_without_a_token_set_none_lets_in(app: Flask, token: str) -> None:
    assert metrics(app, token or None, "10.0.0.1").status_code == 401


def test_a_key_is_no_token_for_metrics(tenant: Tenant) -> None:
    overrides: dict[str, Any] = {"environ_overrides": {"REMOTE_ADDR": "10.0.0.1"}}

    assert_error(tenant.private.get("/metrics", **overrides), 401, "invalid_api_key")


class TestAProcessThatCrawls:
    """A crawling process has no /metrics of the service, so it serves its counts on its own port."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        server = serve_processes("127.0.0.1", 0, TOKEN)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()

    def test_it_tells_what_it_counts_and_nothing_that_the_service_tells(self, url: str) -> None:
        answer = requests.get(f"{url}/metrics", timeout=PATIENCE_SECONDS)

        assert answer.headers["Content-Type"].startswith("text/plain")
        samples = samples_of(answer.text)
        assert has(samples, "search_source_runs_total")
        assert has(samples, "search_build_info")
        assert not has(samples, "search_documents")

    @pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), (TOKEN, 200)])
    def test_behind_a_proxy_it_asks_for_the_token(self, url: str, token: str, status: int) -> None:
        headers = {"X-Forwarded-For": "10.0.0.1"} | ({"Authorization": f"Bearer {token}"} if token else {})

        assert requests.get(f"{url}/metrics", headers=headers, timeout=PATIENCE_SECONDS).status_code == status

    def test_there_is_nothing_else(self, url: str) -> None:
        assert requests.get(f"{url}/v1/search", timeout=PATIENCE_SECONDS).status_code == 404
