"""Limits are exact across worker processes and machines; requests rejected as server_busy count nowhere."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.server import Server
from tests.service.clients import Answer, Customer, page, register, statuses, together, until_not_busy
from tests.service.conftest import one_machine

pytestmark = pytest.mark.service

CLIENTS = 32
REQUESTS = 500


def burst(count: int, ask: Callable[[int], Answer]) -> list[Answer]:
    """Return the responses to concurrent requests of all clients, repeated while the server is busy."""
    return together(CLIENTS, count, lambda number: until_not_busy(lambda: ask(number)))


@pytest.fixture(autouse=True)
def _one_page(customer: Customer) -> None:
    assert customer.private.index(page(1)).status == 200


def test_concurrent_searches_succeed_exactly_up_to_the_quota(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", searches_per_day=100)

    answers = burst(REQUESTS, lambda number: customer.search.search(f"page {number}"))

    assert statuses(answers) == {200: 100, 429: 400}
    used = sorted(a.body["remaining_quota"]["used_today"] for a in answers if a.status == 200)
    assert used == list(range(1, 101))
    rejected = next(answer for answer in answers if answer.status == 429)
    assert rejected.body.keys() == {"error", "message", "retry_after"}
    assert rejected.headers["Retry-After"] == str(rejected.body["retry_after"])
    assert rejected.headers["X-RateLimit-Limit"] == "100"
    assert customer.used_today() == 100


@contextmanager
def busy(server: Server) -> Iterator[None]:
    """Lock the counter file for seconds from another process, and stop a worker that may hold it, alternately."""
    ended = threading.Event()

    def keep() -> None:
        with closing(sqlite3.connect(server.folder / "counters.db", isolation_level=None, timeout=60)) as file:
            while not ended.is_set():
                file.execute("BEGIN IMMEDIATE")
                ended.wait(random.uniform(1.5, 3))
                file.execute("COMMIT")
                worker = random.choice(server.worker_pids())
                os.kill(worker, signal.SIGSTOP)
                ended.wait(random.uniform(0.1, 1.5))
                os.kill(worker, signal.SIGCONT)

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()


def test_concurrent_searches_succeed_exactly_up_to_the_quota_while_the_counter_file_is_busy(tmp_path: Path) -> None:
    with one_machine(tmp_path, workers=3, limits_timeout_seconds="") as servers:
        customer = register(servers, "ann@example.com")
        assert customer.private.index(page(1)).status == 200
        servers[0].set_plan(customer.email, "business", searches_per_day=15, requests_per_minute="unlimited")

        def ask(number: int) -> Answer:
            if number % 2:
                return customer.search.call("GET", "/v1/search?q=page&sort=nowhere")
            return customer.search.search("page")

        with busy(servers[0]):
            answers = burst(REQUESTS, ask)
            answers += burst(CLIENTS, lambda number: ask(0))

        assert statuses(answers)[200] == 15
        assert set(statuses(answers)) <= {200, 400, 429}
        assert customer.used_today() == 15
        assert "unavailable" not in servers[0].log


def test_concurrent_requests_succeed_exactly_up_to_the_minute_limit(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", requests_per_minute=150)
    left = int(customer.search.search("page").headers["X-RateLimit-Remaining"])
    assert 100 < left < 150

    answers = burst(REQUESTS, lambda number: customer.search.search(f"page {number}"))

    assert statuses(answers) == {200: left, 429: REQUESTS - left}
    remaining = [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers if answer.status == 200]
    assert sorted(remaining) == list(range(left))
    assert {int(answer.headers["Retry-After"]) for answer in answers if answer.status == 429} <= set(range(1, 61))


def test_flooding_key_does_not_reduce_the_exact_request_limit_of_sessions(
    servers: list[Server], customer: Customer
) -> None:
    servers[0].set_plan(customer.email, "business", requests_per_minute=20, requests_per_day=40)
    callers = (customer.private, customer.session, customer.session)
    left = int(customer.session.call("GET", "/sites").headers["X-RateLimit-Remaining"])
    assert 500 < left < 600
    sent = (left + 50) // 2 * 3

    answers = burst(sent, lambda number: callers[number % 3].call("GET", "/sites"))

    by_key = [answer for number, answer in enumerate(answers) if number % 3 == 0]
    by_session = [answer for number, answer in enumerate(answers) if number % 3]
    assert statuses(by_key).keys() == {200, 429}
    assert statuses(by_key)[200] <= 20
    assert statuses(by_session) == {200: left, 429: len(by_session) - left}
    remaining = [int(answer.headers["X-RateLimit-Remaining"]) for answer in by_session if answer.status == 200]
    assert sorted(remaining) == list(range(left))
    assert {answer.headers["X-RateLimit-Limit"] for answer in by_session} == {"600"}


def test_concurrent_failing_searches_are_not_charged(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", searches_per_day=100, requests_per_minute="unlimited")
    wrong = ("sort=nowhere", "filters=author+%3D", "limit=0", "site_id=999999", "facets=content")

    def fail(number: int) -> Answer:
        return customer.search.call("GET", f"/v1/search?q=page&{wrong[number % len(wrong)]}")

    answers = burst(REQUESTS, fail)

    assert statuses(answers) == {400: 400, 404: 100}
    assert customer.used_today() == 0
    assert customer.search.search("page").body["remaining_quota"]["used_today"] == 1


def test_failing_searches_do_not_use_up_the_quota_of_concurrent_good_ones(
    servers: list[Server], customer: Customer
) -> None:
    """Good and bad searches race; the bad ones return their share of the quota."""
    servers[0].set_plan(customer.email, "business", searches_per_day=50, requests_per_minute="unlimited")

    def alternate(number: int) -> Answer:
        if number % 2:
            return customer.search.call("GET", "/v1/search?q=page&sort=nowhere")
        return customer.search.search("page")

    raced = burst(60, alternate)
    rest = burst(100, lambda number: customer.search.search("page"))

    good = statuses(raced)[200] + statuses(rest)[200]
    assert good == 50
    assert customer.used_today() == 50


def test_concurrent_documents_are_accepted_exactly_up_to_the_limit(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", documents=100, requests_per_minute="unlimited")

    answers = burst(300, lambda number: customer.private.index(page(f"one-{number}")))

    assert statuses(answers) == {200: 99, 403: 201}
    assert {answer.error for answer in answers if answer.status == 403} == {"document_limit_reached"}
    (site,) = customer.private.must("GET", "/sites")["sites"]
    assert site["indexed_pages"] == 100
    assert customer.search.search("page", limit=1).body["results"]["estimatedTotalHits"] == 100
    assert customer.private.index(page(1, title="Replaced")).body["updated"] == 1


def test_concurrent_keys_are_created_exactly_up_to_the_limit(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", keys=10)
    path = f"/api/sites/{customer.site_id}/keys"

    answers = burst(64, lambda number: customer.private.call("POST", path, {"name": f"key {number}"}))

    assert statuses(answers) == {201: 8, 403: 56}
    assert {answer.error for answer in answers if answer.status == 403} == {"key_limit_reached"}
    assert customer.private.must("GET", path)["total"] == 10


def test_concurrent_sites_are_created_exactly_up_to_the_limit(servers: list[Server], customer: Customer) -> None:
    servers[0].set_plan(customer.email, "business", sites=10)
    body = {"name": "Pages", "url": "https://www.example.com/"}

    answers = burst(64, lambda number: customer.private.call("POST", "/sites", body))

    assert statuses(answers) == {201: 9, 403: 55}
    assert {answer.error for answer in answers if answer.status == 403} == {"site_limit_reached"}
    assert customer.private.must("GET", "/sites")["total"] == 10
