"""The service behind nginx and Caddy, with the files from deploy/."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from app.config import Settings
from tests.deploy.proxies import Proxy, running_caddy, running_nginx
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, running_server
from tests.service.clients import PASSWORD, Customer, page, register
from tests.services.asks.model_server import END, STREAM, ModelServer, event, run_model_server

pytestmark = pytest.mark.deploy

KINDS = ("nginx", "caddy")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with run_model_server() as running:
        yield running


@pytest.fixture(scope="module")
def server(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with one worker of two threads, so that a blocked thread is noticeable."""
    folder = tmp_path_factory.mktemp("service")
    settings = {"llm_url": model.url, "llm_model": "small", "default_plan": "business", "web_threads": 2}
    with running_server(folder, workers=1, trusted_proxies=1, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def customer(server: Server) -> Customer:
    return register([server], "ann@example.com")


@pytest.fixture(scope="module", params=KINDS)
def proxy(request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    running = running_nginx(folder, [server]) if request.param == "nginx" else running_caddy(folder, server)
    with running as made:
        yield made


def document(number: int, content: str) -> dict[str, str]:
    return {"id": f"large-{number}", "title": "Large", "content": content, "url": "/large"}


def test_documents_and_searches_pass_through_the_proxy(proxy: Proxy, customer: Customer) -> None:
    sent = proxy.call("POST", "/api/v1/index/bulk", customer.tokens["private"], json={"documents": [page(1)]})
    found = proxy.call("GET", "/v1/search?q=page", customer.tokens["search"])

    assert sent.status_code == 200
    assert found.status_code == 200
    assert [hit["id"] for hit in found.json()["results"]["hits"]] == [page(1)["id"]]
    assert found.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert found.headers["Access-Control-Allow-Origin"] == "*"
    assert found.headers["X-Request-Id"]


def test_bulk_request_may_be_larger_than_other_requests(proxy: Proxy, customer: Customer) -> None:
    body = {"documents": [document(number, "word " * 180_000) for number in range(2)]}

    sent = proxy.call("POST", "/api/v1/index/bulk", customer.tokens["private"], json=body)
    searched = proxy.call("POST", "/v1/search", customer.tokens["search"], json={"q": "x" * 2_000_000})

    assert sent.status_code == 200
    assert (searched.status_code, searched.json()["error"]) == (413, "payload_too_large")


def test_oversized_bulk_request_returns_413(proxy: Proxy, customer: Customer) -> None:
    body = b"x" * (Settings().max_bulk_body_bytes + 1)

    answer = proxy.call("POST", "/api/v1/index/bulk", customer.tokens["private"], data=body)

    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")


def test_visitors_are_counted_by_their_real_ip_address(proxy: Proxy, server: Server) -> None:
    """A forged header does not attribute a request to another IP address."""

    def remaining(**headers: str) -> int:
        answer = proxy.call("GET", "/v1/search?q=x", "svc_sea_unknown", headers=headers)
        assert answer.status_code == 401
        return int(answer.headers["X-RateLimit-Remaining"])

    first = remaining()

    assert remaining(**{"X-Forwarded-For": "203.0.113.7"}) == first - 1
    assert remaining(**{"X-Forwarded-For": "203.0.113.8", "Forwarded": "for=203.0.113.9"}) == first - 2


def test_metrics_are_not_public(proxy: Proxy, server: Server) -> None:
    assert proxy.call("GET", "/metrics").status_code == 404
    assert requests.get(f"{server.base_url}/metrics", timeout=PATIENCE_SECONDS).status_code == 200


def test_caching_headers_pass_through_the_proxy(proxy: Proxy, server: Server) -> None:
    for path in ("/widget.js", "/login"):
        direct = requests.get(server.base_url + path, timeout=PATIENCE_SECONDS)
        through = proxy.call("GET", path)
        assert through.status_code == 200
        assert through.headers["Cache-Control"] == direct.headers["Cache-Control"]
        assert through.headers.get("ETag") == direct.headers.get("ETag")


def test_session_cookie_is_secure_behind_the_proxy(proxy: Proxy, customer: Customer) -> None:
    answer = proxy.call("POST", "/login", data={"email": customer.email, "password": "wrong"})
    assert answer.status_code in (400, 401)
    form = {"email": customer.email, "password": PASSWORD}

    cookie = proxy.call("POST", "/login", data=form).headers["Set-Cookie"]

    assert "Secure" in cookie


@pytest.mark.parametrize("encoding", ["identity", "gzip, br"])
def test_answers_pass_through_the_proxy_as_they_are_written(
    proxy: Proxy, customer: Customer, model: ModelServer, encoding: str
) -> None:
    """The model ends its answer only after the visitor has received the first sentence."""
    finish = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield event("Page 1 is here [1]. ") + event("And ")
        assert finish.wait(PATIENCE_SECONDS)
        yield END

    model.respond = lambda _: (200, STREAM, chunks())
    proxy.call("POST", "/api/v1/index/bulk", customer.tokens["private"], json={"documents": [page(1)]})
    customer.session.must("PUT", f"/sites/{customer.site_id}/search-settings", {"ask": True})

    with proxy.call(
        "POST", "/v1/ask", customer.tokens["search"], json={"q": "content of page 1", "stream": True},
        headers={"Accept-Encoding": encoding}, stream=True,
    ) as response:  # fmt: skip
        lines = response.iter_lines(chunk_size=1)
        assert b"event: text" in lines
        finish.set()
        assert b"event: done" in lines


def test_slow_clients_do_not_block_a_thread(proxy: Proxy, server: Server, customer: Customer) -> None:
    """Neither of two threads waits for six clients that have sent part of a body of 2 MB."""
    target = urlsplit(proxy.base_url)
    context = ssl.create_default_context(cafile=str(proxy.certificates))
    head = (
        f"POST /api/v1/index/bulk HTTP/1.1\r\nHost: {target.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {customer.tokens['private']}\r\nContent-Length: 2000000\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            plain = stack.enter_context(
                socket.create_connection(("127.0.0.1", int(target.port or 0)), timeout=PATIENCE_SECONDS)
            )
            slow = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
            slow.sendall(head.encode() + b"{" + b" " * 500_000)

        bodies = [{"documents": [document(number, "word " * 20_000)]} for number in range(4)]
        answers = [
            proxy.call("POST", "/api/v1/index/bulk", customer.tokens["private"], json=body).status_code
            for body in bodies
        ]

        assert answers == [200] * 4
