"""/metrics uses the Prometheus format and requires a local client or a token; a crawling process serves its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask
from prometheus_client import REGISTRY, Counter, Histogram
from werkzeug.test import TestResponse

from app.metrics import COUNTED, serve_processes
from tests.callers import ApiClient, Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.metrics.samples import has, samples_of
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error

TOKEN = "a token for the metrics"
HEADERS_OF_PROXIES = (
    "Via", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-IP",
    "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP",
    "X-Original-Host", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id", "Fly-Client-IP", "X-Scheme",
)  # fmt: skip


def metrics(app: Flask, token: str | None = None, address: str = "127.0.0.1", **headers: str) -> TestResponse:
    return ApiClient(app, token).get("/metrics", headers=headers, environ_overrides={"REMOTE_ADDR": address})


def test_every_count_of_the_service_is_exported() -> None:
    made = {each for each in REGISTRY._collector_to_names if isinstance(each, Counter | Histogram)}

    assert made == set(COUNTED)


def test_metrics_response_is_in_prometheus_format(app: Flask) -> None:
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
def test_unauthorized_requests_get_401(
    tmp_path: Path, token: str | None, address: str, headers: dict[str, str], code: str
) -> None:
    app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

    assert_error(metrics(app, token, address, **headers), 401, code)
    close_app(app)


def test_metrics_token_grants_access(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, metrics_token=TOKEN))

    assert metrics(app, TOKEN, "10.0.0.1").status_code == 200
    close_app(app)


@pytest.mark.parametrize("token", ["", "x", TOKEN])
def test_any_token_is_rejected_if_none_is_configured(app: Flask, token: str) -> None:
    assert metrics(app, token or None, "10.0.0.1").status_code == 401


def test_api_key_does_not_grant_access_to_metrics(tenant: Tenant) -> None:
    overrides: dict[str, Any] = {"environ_overrides": {"REMOTE_ADDR": "10.0.0.1"}}

    assert_error(tenant.private.get("/metrics", **overrides), 401, "invalid_api_key")


class TestAProcessThatCrawls:
    """A crawling process does not run the service's /metrics, so it serves its counts on its own port."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        server = serve_processes("127.0.0.1", 0, TOKEN)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()

    def test_crawling_process_reports_only_its_own_metrics(self, url: str) -> None:
        answer = requests.get(f"{url}/metrics", timeout=PATIENCE_SECONDS)

        assert answer.headers["Content-Type"].startswith("text/plain")
        samples = samples_of(answer.text)
        assert has(samples, "search_source_runs_total")
        assert has(samples, "search_build_info")
        assert not has(samples, "search_documents")

    @pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), (TOKEN, 200)])
    def test_crawling_process_requires_the_token_behind_a_proxy(self, url: str, token: str, status: int) -> None:
        headers = {"X-Forwarded-For": "10.0.0.1"} | ({"Authorization": f"Bearer {token}"} if token else {})

        assert requests.get(f"{url}/metrics", headers=headers, timeout=PATIENCE_SECONDS).status_code == status

    def test_crawling_process_serves_only_metrics(self, url: str) -> None:
        assert requests.get(f"{url}/v1/search", timeout=PATIENCE_SECONDS).status_code == 404
