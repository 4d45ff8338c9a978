"""Connections to server engines."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from backends.errors import EngineNotAsked, ResponseTooLarge
from backends.servers import http
from backends.servers.http import Budget, HttpPool, TransportFailure
from backends.servers.server_url import ServerUrl
from backends.servers.silence import PAUSE_SECONDS, SUSPECT_SECONDS, Silence
from tests.backends.fakes.broken import broken_server
from tests.backends.fakes.clock import Clock
from tests.patience import PATIENCE_SECONDS
from tests.waiting import recorded_calls, recorded_pool


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections: set[tuple[str, int]]

    def do_GET(self) -> None:
        self.server.connections.add(self.client_address)
        if self.path == "/late":
            self.server.release.wait(PATIENCE_SECONDS)
        body = (self.headers.get("Cookie") or self.path).encode()
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Set-Cookie", "session=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Suppress the request log."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    server.connections = set()
    server.release = threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pool(server: ThreadingHTTPServer) -> Iterator[HttpPool]:
    pool = HttpPool(ServerUrl.parse(f"typesense://:k@127.0.0.1:{server.server_port}", default_port=1), {"X-Key": "k"})
    yield pool
    pool.close()


def get(pool: HttpPool, path: str = "/x") -> bytes:
    return pool.send("GET", pool._url.nodes[0], path, Budget(PATIENCE_SECONDS)).body


def test_connections_are_reused_until_the_pool_is_closed(server: ThreadingHTTPServer, pool: HttpPool) -> None:
    for _ in range(10):
        assert get(pool) == b"/x"
    assert len(server.connections) == 1
    pool.close()
    assert get(pool) == b"/x"
    assert len(server.connections) == 2


def test_late_response_is_never_returned_for_the_next_request(server: ThreadingHTTPServer, pool: HttpPool) -> None:
    for _ in range(3):
        server.release.clear()
        with pytest.raises(TransportFailure):
            pool.send("GET", pool._url.nodes[0], "/late", Budget(0.1))
        server.release.set()
        assert get(pool, "/y") == b"/y"


def test_requests_of_an_operation_share_its_budget_and_other_threads_get_their_own(pool: HttpPool) -> None:
    with pool.operation():
        first = pool.budget()
        with pool.operation():
            assert pool.budget() is first
        assert pool.budget(1e9).remaining() <= pool.timeout_seconds
        assert 0 < pool.budget(0.5).remaining() <= 0.5
        others: list[Budget] = []
        thread = threading.Thread(target=lambda: others.append(pool.budget()))
        thread.start()
        thread.join()
        assert others[0] is not first
    assert pool.budget() is not first
    assert pool.budget(shares=3).remaining() > pool.timeout_seconds


def test_cookies_are_not_stored_and_redirects_are_not_followed(pool: HttpPool) -> None:
    assert get(pool) == b"/x"
    assert get(pool, "/y") == b"/y"
    assert pool.send("GET", pool._url.nodes[0], "/away", Budget(PATIENCE_SECONDS)).status == 302


def test_proxy_environment_variables_are_ignored(pool: HttpPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert get(pool) == b"/x"


def _child(pool: HttpPool, results: object) -> None:
    results.put([get(pool, f"/child{n}") for n in range(20)])


@pytest.mark.slow
def test_a_pool_used_before_a_fork_works_in_every_child(pool: HttpPool) -> None:
    get(pool)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    children = [context.Process(target=_child, args=(pool, results)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in range(50):
        assert get(pool, "/parent") == b"/parent"
    for child in children:
        assert results.get() == [f"/child{n}".encode() for n in range(20)]
        child.join()


def test_response_above_the_size_limit_raises_reply_too_large(pool: HttpPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_RESPONSE_BYTES", 100)
    assert get(pool, "/" + "x" * 99) == b"/" + b"x" * 99

    with pytest.raises(ResponseTooLarge):
        get(pool, "/" + "x" * 100)

    assert get(pool) == b"/x"


@pytest.mark.parametrize(
    "way", ["hangs", "drips", "cut", "cut in a chunk", "cut between chunks", "resets in the middle"]
)
def test_stalled_or_truncated_response_raises_transport_failure_in_time(way: str) -> None:
    with broken_server(way) as port:
        pool = HttpPool(ServerUrl.parse(f"typesense://:k@127.0.0.1:{port}", default_port=1), {})
        began = time.monotonic()
        with pytest.raises(TransportFailure):
            pool.send("GET", f"http://127.0.0.1:{port}", "/x", Budget(0.2))
        with pytest.raises(TransportFailure):
            list(pool.lines(f"http://127.0.0.1:{port}", "/x", 0.2))
        assert time.monotonic() - began < 10, "the server itself sends nothing for 30 seconds"
        pool.close()


class FrozenPool(HttpPool):
    """A pool with short limits, whose clock for the silence of the server is frozen."""

    def __init__(self, *ports: int):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        super().__init__(ServerUrl.parse(f"typesense://:k@{hosts}?timeout_seconds=0.2", default_port=1), {})
        self.clock = Clock()
        self._connections().silence = Silence(0.1, self.clock.monotonic)

    def ask(self, node: int = 0) -> int:
        return self.send("GET", self._url.nodes[node], "/x", self.budget()).status


@pytest.mark.parametrize("way", ["hangs", "drips"])
def test_unresponsive_server_gets_no_further_request(way: str) -> None:
    with broken_server(way) as port, closing(FrozenPool(port)) as pool:
        with pytest.raises(TransportFailure):
            pool.ask()
        pool.clock.sleep(SUSPECT_SECONDS)
        for _ in range(3):
            with pytest.raises(EngineNotAsked):
                pool.ask()
        pool.clock.sleep(PAUSE_SECONDS)
        with pytest.raises(EngineNotAsked):
            next(pool.lines(pool._url.nodes[0], "/x", 0.2))


@pytest.mark.parametrize("way", ["503", "404 page", "garbage", "resets", "refuses"])
def test_any_response_to_a_probe_proves_that_the_server_is_there(way: str) -> None:
    with broken_server("hangs") as port, closing(FrozenPool(port)) as pool:
        with pytest.raises(TransportFailure):
            pool.ask()
        pool.clock.sleep(SUSPECT_SECONDS)
        with pytest.raises(EngineNotAsked):
            pool.ask()
        pool.clock.sleep(PAUSE_SECONDS)
        with broken_server(way) as other:
            pool._connections()._url = pool._url = ServerUrl.parse(f"typesense://:k@127.0.0.1:{other}", default_port=1)
            for _ in range(3):
                with suppress(TransportFailure):
                    pool.ask()


def test_cluster_with_a_node_that_responds_is_not_silent(server: ThreadingHTTPServer) -> None:
    with broken_server("hangs") as port, closing(FrozenPool(port, server.server_port)) as pool:
        for _ in range(3):
            with pytest.raises(TransportFailure):
                pool.ask(0)
            pool.clock.sleep(SUSPECT_SECONDS)
            assert pool.ask(1) == 200


def test_exception_of_a_probe_ends_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    with broken_server("hangs") as port, closing(FrozenPool(port)) as pool:
        with pytest.raises(TransportFailure):
            pool.ask()
        pool.clock.sleep(SUSPECT_SECONDS)
        with monkeypatch.context() as patched:
            patched.setattr(pool._connections(), "_responds", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                pool.ask()
        pool.clock.sleep(PAUSE_SECONDS)
        with pytest.raises(EngineNotAsked):
            pool.ask()
        assert not pool._connections().silence._is_probing


def test_a_thread_that_waits_for_the_server_lets_others_work(pool: HttpPool, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded_pool() as worker_pool:
        opened = recorded_calls(monkeypatch, pool._connections(), "open", worker_pool)
        get(pool)
        assert [*pool.lines(pool._url.nodes[0], "/lines", PATIENCE_SECONDS)] == [b"/lines"]
        assert not worker_pool.is_waiting
    assert opened == [True, True]
