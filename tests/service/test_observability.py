"""Metrics are summed over all workers; logs are JSON lines without secrets."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import SECRET, Server
from tests.service.clients import PASSWORD, Answer, Caller, NoAnswer, eventually, page, register, together
from tests.service.conftest import one_machine, two_machines

pytestmark = pytest.mark.service

SAMPLE = re.compile(r'^http_requests_total\{endpoint="([^"]+)",method="([^"]+)",status="([^"]+)"\} ([0-9.e+]+)$', re.M)


def requests_counted(server: Server) -> Counter[tuple[str, str, str]]:
    """Return the number of requests in the metrics by endpoint, method, and status."""
    content = Caller([server], "metrics-token").call("GET", "/metrics").body.decode()
    return Counter({(row[0], row[1], row[2]): int(float(row[3])) for row in SAMPLE.findall(content)})


def test_metrics_are_summed_over_all_workers_even_after_one_dies(tmp_path: Path) -> None:
    with one_machine(tmp_path, metrics_token="metrics-token") as (server,):
        customer = register([server], "ann@example.com")
        before = requests_counted(server)

        def ask(number: int) -> Answer:
            if number % 3 == 0:
                return customer.search.call("GET", "/v1/search?q=page&limit=0")
            return customer.search.search("page")

        together(8, 300, ask)
        assert requests_counted(server) - before == Counter(
            {("search.search", "GET", "200"): 200, ("search.search", "GET", "400"): 100, ("metrics", "GET", "200"): 1}
        )
        victim = server.worker_pids()[0]
        os.kill(victim, signal.SIGKILL)

        def is_replaced() -> None:
            assert len(set(server.worker_pids()) - {victim}) == 4

        eventually(is_replaced)
        together(8, 30, ask)
        counted = requests_counted(server) - before
        assert counted["search.search", "GET", "200"] == 220
        assert counted["search.search", "GET", "400"] == 110
        everything = Caller([server], "metrics-token").call("GET", "/metrics").body.decode()
        assert 'http_request_duration_seconds_count{endpoint="search.search"} 330.0\n' in everything


def test_log_names_variables_that_resemble_a_setting_once_at_the_start(tmp_path: Path) -> None:
    with one_machine(tmp_path, crawl_private_address="true") as (server,):
        lines = [json.loads(line) for line in server.log.splitlines()]

    message = "CRAWL_PRIVATE_ADDRESS is not a setting of this service; did you mean CRAWL_PRIVATE_ADDRESSES?"
    assert [line["level"] for line in lines if line["message"] == message] == ["WARNING"]


def test_every_log_line_is_json_with_a_request_id_and_without_secrets(
    tmp_path: Path, postgres: PostgresServer, redis: RedisServer
) -> None:
    """Requests with every kind of secret succeed and fail, also while the database and the counters are unavailable."""
    with two_machines(tmp_path, postgres, redis, log_level="INFO", metrics_token="metrics-token") as servers:
        customer = register(servers, "ann@example.com", kinds=("public", "search", "private"))
        nobody = Caller(servers)

        def do_everything() -> None:
            for path in ("/v1/search?q=page", "/v1/client-info", "/sites", "/nowhere"):
                for token in (*customer.tokens.values(), customer.tokens["search"][:-1] + "#", "not-a-token"):
                    Caller(servers, token).call("GET", path)
            customer.private.index(page(1))
            customer.session.call("GET", "/dashboard")
            customer.session.call("POST", f"/api/keys/{customer.keys['public']}/toggle", X_CSRF_Token="wrong")
            nobody.call("POST", "/login", {"email": customer.email, "password": PASSWORD})
            nobody.call("POST", "/login", {"email": customer.email, "password": PASSWORD + "?"})
            nobody.call("POST", "/register", {"name": "x", "email": "bad", "password": PASSWORD})
            nobody.call("GET", "/readyz")
            nobody.call("GET", f"/v1/search?q=page&api_key={customer.tokens['search']}")

        do_everything()
        rotated = customer.private.must("POST", f"/api/sites/{customer.site_id}/keys/{customer.keys['public']}/rotate")
        for part in (postgres, redis):
            part.stop()
            try:
                do_everything()
            finally:
                part.start()
        os.kill(servers[0].worker_pids()[0], signal.SIGKILL)
        seen = Caller(servers).call("GET", "/v1/search?q=page", X_Request_Id="known-request-id")
        assert seen.headers["X-Request-Id"] == "known-request-id"
        for server in servers:
            server.stop()
        with pytest.raises(NoAnswer):
            nobody.call("GET", "/healthz")
        log = "".join(server.log for server in servers)

    lines = [json.loads(line) for line in log.splitlines()]
    assert len(lines) > 100
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    assert {"app.access", "gunicorn.error"} <= {line["logger"] for line in lines}
    assert all(line["request_id"] for line in lines if line["logger"] == "app.access")
    assert "known-request-id" in {line.get("request_id") for line in lines}
    assert "the database is unavailable" in log
    assert "the counter store is unavailable" in log
    cookie = customer.session.headers["Cookie"].partition("=")[2]
    secrets = {
        *customer.tokens.values(), rotated["api_key"], PASSWORD, SECRET, cookie,
        customer.session.headers["X-CSRF-Token"], "postgres-password", "metrics-token", "$argon2",
    }  # fmt: skip
    found = [secret for secret in secrets if secret in log]
    assert found == [], [line for line in log.splitlines() if any(secret in line for secret in found)][:3]
