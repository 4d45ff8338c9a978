"""Restarts without failed requests: behind a systemd socket, and one machine after the other behind nginx."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.counters.conftest import RedisServer
from tests.deploy.proxies import Proxy, running_caddy, running_nginx, write_upstream
from tests.postgres import PostgresServer
from tests.server import PROJECT, Server, running_server
from tests.service.clients import Answer, NoAnswer, crowd, eventually, page, register
from tests.service.conftest import two_machines
from tests.service.stored import counted_queries

pytestmark = pytest.mark.deploy


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), options=("--databases", "200"))
    server.start()
    yield server
    server.stop()


@contextmanager
def kept_socket() -> Iterator[socket.socket]:
    """Create a socket as site-search.socket does: it listens whether or not the service runs."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        yield listening


AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "flask", "--app", "wsgi", "serve"])
"""


def start_on(listening: socket.socket, server: Server) -> None:
    """Start the service as systemd does, with the socket as its third descriptor."""
    with (server.folder / "server.log").open("ab") as log:
        server.process = subprocess.Popen(
            [sys.executable, "-c", AS_SYSTEMD, str(listening.fileno())], cwd=PROJECT, env=server.environment,
            stdout=log, stderr=subprocess.STDOUT, pass_fds=[listening.fileno()], start_new_session=True,
        )  # fmt: skip


def test_restart_behind_the_systemd_socket_fails_no_request(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, workers=2, trusted_proxies=1, default_plan="business") as server,
        kept_socket() as kept,
    ):
        customer = register([server], "ann@example.com")
        server.set_plan(customer.email, "business", requests_per_minute="unlimited")
        assert customer.private.index(page(1)).status == 200
        server.stop()
        server.base_url = f"http://127.0.0.1:{kept.getsockname()[1]}"
        start_on(kept, server)

        with crowd(4, lambda number: customer.search.search(f"page {number}"), pause_seconds=0.02) as searches:
            searches.wait_for(50)
            server.stop()
            start_on(kept, server)
            searches.wait_for(50)

        assert searches.unanswered == []
        assert {answer.status for _, answer in searches.answers} == {200}
        server.stop()
        assert len(counted_queries(server)) == len(searches.answers)


def test_nginx_returns_503_server_busy_while_the_service_is_down(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", workers=1) as server, running_nginx(tmp_path / "nginx", [server]) as proxy:
        server.stop()

        answer = proxy.call("GET", "/v1/search?q=page")

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert (answer.json()["error"], answer.json()["retry_after"]) == ("server_busy", 5)


def test_caddy_holds_requests_while_the_service_restarts(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", workers=1) as server, running_caddy(tmp_path / "caddy", server) as proxy:
        server.stop()
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(proxy.call, "GET", "/v1/search?q=page", "svc_srch_unknown") for _ in range(4)]
            server.start()

    assert [each.result().json()["error"] for each in asked] == ["invalid_api_key"] * 4


def ask(proxy: Proxy, method: str, path: str, token: str, body: object = None) -> Answer:
    """Send a request through the proxy, over a new connection and without retries."""
    began = time.monotonic()
    try:
        answer = proxy.call(method, path, token, json=body)
    except requests.RequestException as error:
        raise NoAnswer(str(error)) from error
    return Answer(answer.status_code, dict(answer.headers), answer.json(), began, time.monotonic())


def reload_nginx(proxy: Proxy) -> None:
    """Reload nginx's files while running requests continue."""
    before = children(proxy.process.pid)
    proxy.process.send_signal(signal.SIGHUP)

    def has_new_workers() -> None:
        assert children(proxy.process.pid) - before

    eventually(has_new_workers)


def children(pid: int) -> set[str]:
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_rolling_restart_loses_no_request(tmp_path: Path, postgres: PostgresServer, redis: RedisServer) -> None:
    """As in docs/upgrading.md: each machine is removed from nginx, restarted, and added again when it is ready."""
    with two_machines(tmp_path, postgres, redis, workers=1) as servers:
        customer = register(servers, "ann@example.com")
        servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
        with running_nginx(tmp_path / "nginx", servers) as proxy:

            def work(number: int) -> Answer:
                if number % 4:
                    return ask(proxy, "GET", f"/v1/search?q=page+{number}", customer.tokens["search"])
                body = {"documents": [page(number)]}
                return ask(proxy, "POST", "/api/v1/index/bulk", customer.tokens["private"], body)

            with crowd(4, work, pause_seconds=0.05) as requests_made:
                requests_made.wait_for(40)
                for server in servers:
                    write_upstream(tmp_path / "nginx", servers, down=[server])
                    reload_nginx(proxy)
                    server.stop()
                    server.start()
                    write_upstream(tmp_path / "nginx", servers)
                    reload_nginx(proxy)
                    requests_made.wait_for(40)

        assert requests_made.unanswered == []
        assert {answer.status for _, answer in requests_made.answers} == {200}
        sent = {f"page-{number}" for number, _ in requests_made.answers if number % 4 == 0}
        listed = customer.private.must("GET", "/api/v1/documents?limit=1000&fields=id")
        assert {each["id"] for each in listed["documents"]} == sent
        searched = sum(number % 4 > 0 for number, _ in requests_made.answers)
        assert customer.used_today() == searched
