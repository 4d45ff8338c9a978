"""Killing workers at any moment loses no answered search, and counts none twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from tests.server import Server
from tests.service.clients import Answer, Customer, crowd, eventually, page, register
from tests.service.stored import counted_queries

pytestmark = pytest.mark.service

KILLS = 25
CLIENTS = 12


def analytics_total(customer: Customer) -> int:
    total: int = customer.private.must("GET", "/api/analytics?period=7d")["total_searches"]
    return total


def test_successful_searches_are_counted_exactly_once_although_workers_are_killed(fresh_servers: list[Server]) -> None:
    servers = fresh_servers
    customer = register(servers, "ann@example.com")
    servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
    assert customer.private.index(page(1)).status == 200
    moments = random.Random(50)

    def search(number: int) -> Answer:
        return customer.search.search(f"page n{number}")

    with crowd(CLIENTS, search) as searches:
        for _ in range(KILLS):
            searches.wait_for(moments.randint(1, 12), seconds=60)
            time.sleep(moments.uniform(0, 0.02))
            victims = [pid for server in servers for pid in server.worker_pids()]
            with suppress(ProcessLookupError):
                os.kill(moments.choice(victims), signal.SIGKILL)

    assert len(searches.unanswered) >= 5, "no kill interrupted a write"
    answers = [answer for _, answer in searches.answers]
    assert {answer.status for answer in answers} == {200}
    used = Counter(answer.body["remaining_quota"]["used_today"] for answer in answers)
    assert max(used.values()) == 1, "two successful searches had the same number"
    answered = {f"page n{number}" for number, _ in searches.answers}

    def all_are_stored() -> Counter[str]:
        found = counted_queries(servers[0])
        assert answered <= found.keys()
        return found

    stored = eventually(all_are_stored)
    assert max(stored.values()) == 1
    charged = customer.used_today()
    assert len(answered) <= len(stored) <= charged <= searches.asked
    assert analytics_total(customer) == len(stored)

    for server in servers:
        server.kill()
    for server in servers:
        server.start()

    assert customer.used_today() == charged
    assert analytics_total(customer) == len(stored)
    assert customer.search.search("page").body["remaining_quota"]["used_today"] == charged + 1


def test_searches_just_before_all_processes_are_killed_are_counted_after_a_restart(
    fresh_servers: list[Server],
) -> None:
    servers = fresh_servers
    customer = register(servers, "ann@example.com")
    servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")

    for number in range(20):
        assert customer.search.search(f"last words {number}").status == 200
    for server in servers:
        server.kill()
    for server in servers:
        server.start()

    def all_are_counted() -> None:
        assert analytics_total(customer) == 20

    eventually(all_are_counted)
    assert set(counted_queries(servers[0]).values()) == {1}
    assert customer.used_today() == 20
