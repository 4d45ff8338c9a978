"""Changes to keys, sites, and plans by one worker take effect in every other worker with the next request.

One persistent connection to each of the four workers checks each of them after every change, while other clients make
all of them load and cache the same keys continuously.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.server import Server
from tests.service.clients import Customer, WorkerConnection, connections_to_all_workers, crowd

pytestmark = pytest.mark.service

TOGGLES = 60
CHANGES = 40
STIRRERS = 3


@pytest.fixture
def workers(servers: list[Server], customer: Customer) -> Iterator[list[WorkerConnection]]:
    servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
    with connections_to_all_workers(servers) as connections:
        assert len(connections) == 4
        yield connections


def outcomes(workers: list[WorkerConnection], token: str) -> list[str]:
    """Return the outcome of a search at each worker: ``ok`` or the error code."""
    return [worker.call("GET", "/v1/search?q=page", token).error or "ok" for worker in workers]


def test_disabling_or_enabling_a_key_takes_effect_in_every_worker_at_the_next_request(
    customer: Customer, workers: list[WorkerConnection]
) -> None:
    path, token = f"/api/keys/{customer.keys['search']}/toggle", customer.tokens["search"]
    turns = itertools.cycle(workers)
    wrong = []

    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for number in range(TOGGLES):
            answer = next(turns).call("POST", path, customer.tokens["private"])
            assert answer.status == 200, answer.body
            expected = "ok" if answer.body["key"]["active"] else "key_disabled"
            seen = outcomes(workers, token)
            if seen != [expected] * 4:
                wrong.append((number, expected, seen))

    assert wrong == []


def test_key_rotation_takes_effect_in_every_worker_at_the_next_request(
    customer: Customer, workers: list[WorkerConnection]
) -> None:
    path = f"/api/sites/{customer.site_id}/keys/{customer.keys['search']}/rotate"
    turns = itertools.cycle(workers)
    token = customer.tokens["search"]

    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for _ in range(CHANGES):
            old, token = token, next(turns).call("POST", path, customer.tokens["private"]).body["api_key"]
            customer.tokens["search"] = token
            assert outcomes(workers, old) == ["invalid_api_key"] * 4
            assert outcomes(workers, token) == ["ok"] * 4


def test_scope_change_takes_effect_in_every_worker_at_the_next_request(
    customer: Customer, workers: list[WorkerConnection]
) -> None:
    keys = f"/api/sites/{customer.site_id}/keys"
    turns = itertools.cycle(workers)
    body = {"name": "narrow", "type": "private", "scopes": ["search"]}
    made = next(turns).call("POST", keys, customer.tokens["private"], body).body

    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for number in range(CHANGES):
            scopes = ["sites"] if number % 2 else ["search"]
            path = f"{keys}/{made['key']['id']}"
            assert next(turns).call("PUT", path, customer.tokens["private"], {"scopes": scopes}).status == 200
            expected = "insufficient_permission" if number % 2 else "ok"
            assert outcomes(workers, made["api_key"]) == [expected] * 4


def test_key_creation_and_deletion_take_effect_in_every_worker_at_the_next_request(
    customer: Customer, workers: list[WorkerConnection]
) -> None:
    path = f"/api/sites/{customer.site_id}/keys"
    turns = itertools.cycle(workers)

    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for _ in range(CHANGES):
            made = next(turns).call("POST", path, customer.tokens["private"], {"name": "short-lived"}).body
            assert outcomes(workers, made["api_key"]) == ["ok"] * 4
            deleted = next(turns).call("DELETE", f"{path}/{made['key']['id']}", customer.tokens["private"])
            assert deleted.status == 200
            assert outcomes(workers, made["api_key"]) == ["invalid_api_key"] * 4


def test_pausing_a_site_takes_effect_in_every_worker_at_the_next_request(
    customer: Customer, workers: list[WorkerConnection]
) -> None:
    turns = itertools.cycle(workers)
    token = customer.tokens["search"]

    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for number in range(CHANGES):
            active = bool(number % 2)
            path = f"/sites/{customer.site_id}"
            assert next(turns).call("PUT", path, customer.tokens["private"], {"active": active}).status == 200
            assert outcomes(workers, token) == (["ok"] if active else ["site_inactive"]) * 4


def test_plan_change_takes_effect_in_every_worker_at_the_next_request(
    servers: list[Server], customer: Customer, workers: list[WorkerConnection]
) -> None:
    with crowd(STIRRERS, lambda number: customer.search.search("page"), pause_seconds=0.02):
        for limit in (1_000_001, 1_000_002, 1_000_003):
            servers[-1].set_plan(customer.email, "business", searches_per_day=limit, requests_per_minute="unlimited")
            for worker in workers:
                answer = worker.call("GET", "/v1/search?q=page", customer.tokens["search"])
                assert answer.body["remaining_quota"]["daily_limit"] == limit
