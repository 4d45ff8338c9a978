"""Outages of the database or the counters under load: searches continue, writes are rejected, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from app.counters import BUSY_SECONDS
from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import Server
from tests.service.clients import (
    Answer,
    Crowd,
    Customer,
    connections_to_all_workers,
    crowd,
    eventually,
    page,
    register,
    until_not_busy,
)
from tests.service.stored import counted_queries, locked

pytestmark = pytest.mark.service

AWAY_SECONDS = 12.0
"""More than twice a write's timeout, so that a write begins and ends within the outage."""

SEARCHERS, WRITERS = 8, 3
"""Few enough slow writers of one account for its share of the threads of a single worker."""
PATIENCE_SECONDS = 5.0
"""Maximum duration of a search during the outage."""


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, str | int]:
    """Use the shipped timeout for the unavailable dependency."""
    away = "database" if "database_away" in request.fixturenames else "limits"
    return {f"{away}_timeout_seconds": ""}


@contextmanager
def stopped(server: PostgresServer | RedisServer) -> Iterator[None]:
    """Stop a server for as long as the block lasts."""
    server.stop()
    try:
        yield
    finally:
        server.start()


@pytest.fixture
def customer(fresh_servers: list[Server]) -> Customer:
    """A tenant whose keys every worker has used."""
    made = register(fresh_servers, "ann@example.com")
    fresh_servers[0].set_plan(made.email, "business", requests_per_minute="unlimited")
    assert made.private.index(page(1)).status == 200
    with connections_to_all_workers(fresh_servers) as workers:
        for worker in workers:
            for kind in ("search", "private"):
                assert worker.call("GET", "/v1/search?q=*", made.tokens[kind]).status == 200
    return made


@pytest.fixture
def database_away(fresh_servers: list[Server], request: pytest.FixtureRequest) -> Callable[[], Iterator[None]]:
    if len(fresh_servers) == 1:
        return lambda: locked(f"{fresh_servers[0].folder}/service.db")
    return lambda: stopped(request.getfixturevalue("postgres"))


@pytest.fixture
def counters_away(fresh_servers: list[Server], request: pytest.FixtureRequest) -> Callable[[], Iterator[None]]:
    if len(fresh_servers) == 1:
        return lambda: locked(f"{fresh_servers[0].folder}/counters.db")
    return lambda: stopped(request.getfixturevalue("redis"))


def answers_between(made: Crowd, begin: float, end: float) -> list[Answer]:
    """Return the responses to requests sent after ``begin`` and answered before ``end``."""
    return [answer for _, answer in made.answers if begin < answer.asked_at and answer.answered_at < end]


def run_with(
    customer: Customer, away: Callable[[], Iterator[None]], unnoticed_seconds: float = 0
) -> tuple[Crowd, Crowd, float, float]:
    """Search and write before, during, and after an outage. Returns both crowds, and the period of the outage.

    Args:
        unnoticed_seconds: Seconds before the returned period begins, since requests wait that long.
    """

    def search(number: int) -> Answer:
        return until_not_busy(lambda: customer.search.search(f"page n{number}"))

    with (
        crowd(SEARCHERS, search, pause_seconds=0.02) as searches,
        crowd(WRITERS, lambda number: customer.private.index(page(f"w{number}")), pause_seconds=0.05) as writes,
    ):
        searches.wait_for(50)
        writes.wait_for(10)
        with away():
            time.sleep(unnoticed_seconds)
            begin = time.monotonic()
            time.sleep(AWAY_SECONDS)
            end = time.monotonic()
        searches.wait_for(50)
        writes.wait_for(20, status=200)
    assert not searches.unanswered
    assert not writes.unanswered
    return searches, writes, begin, end


def check_writes(customer: Customer, writes: Crowd, begin: float, end: float, error: str) -> None:
    """Assert that writes during the outage were rejected, later ones accepted, and all acknowledged ones are found."""
    meanwhile = answers_between(writes, begin, end)
    assert len(meanwhile) >= WRITERS
    assert {(answer.status, answer.error) for answer in meanwhile} == {(503, error)}
    for answer in meanwhile:
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert answer.body["retry_after"] == int(answer.headers["Retry-After"])
    assert {answer.status for _, answer in writes.answers[-5:]} == {200}
    acknowledged = {f"page-w{number}" for number, answer in writes.answers if answer.status == 200}
    found: set[str] = {"page-1"}
    while batch := customer.private.must("GET", f"/v1/search?q=*&limit=100&offset={len(found) - 1}")["results"]["hits"]:
        found |= {hit["id"] for hit in batch}
        if len(batch) < 100:
            break
    assert acknowledged <= found


def test_searches_continue_during_a_database_outage_and_their_events_are_stored_later(
    fresh_servers: list[Server], customer: Customer, database_away: Callable[[], Iterator[None]]
) -> None:
    searches, writes, begin, end = run_with(customer, database_away)

    meanwhile = answers_between(searches, begin, end)
    assert len(meanwhile) >= 50
    assert {answer.status for _, answer in searches.answers} == {200}
    assert max(answer.seconds for answer in meanwhile) < PATIENCE_SECONDS
    check_writes(customer, writes, begin, end, "database_unavailable")
    asked = {f"page n{number}": 1 for number, _ in searches.answers}

    def all_are_stored() -> None:
        assert counted_queries(fresh_servers[0]) == asked

    eventually(all_are_stored)
    assert customer.used_today() == len(asked) + 8 + 1  # the eight that warmed the workers, and the listing
    log = "".join(server.log for server in fresh_servers)
    assert "search events stay on disk" in log
    assert "search events are being moved to the database again" in log


def test_searches_continue_during_a_counter_outage_and_writes_are_rejected(
    fresh_servers: list[Server], customer: Customer, counters_away: Callable[[], Iterator[None]]
) -> None:
    is_file = len(fresh_servers) == 1
    searches, writes, begin, end = run_with(customer, counters_away, BUSY_SECONDS + 5 if is_file else 0)

    meanwhile = answers_between(searches, begin, end)
    assert len(meanwhile) >= SEARCHERS, "no request must wait until they are available"
    assert {answer.status for _, answer in searches.answers} == {200}
    assert max(answer.seconds for answer in meanwhile) < PATIENCE_SECONDS
    assert all("X-RateLimit-Limit" in answer.headers for answer in meanwhile)
    check_writes(customer, writes, begin, end, "counters_unavailable")
    assert "the counter store is unavailable" in "".join(server.log for server in fresh_servers)
    answered = len(searches.answers) + 8 + 1  # the eight that warmed the workers, and the listing
    lost = 0 if is_file else SEARCHERS  # A step whose response was lost with Redis may have counted.

    def all_are_charged() -> int:
        charged = customer.used_today()
        assert answered <= charged <= answered + lost
        return charged

    used = eventually(all_are_charged)
    assert customer.search.search("page").body["remaining_quota"]["used_today"] == used + 1
