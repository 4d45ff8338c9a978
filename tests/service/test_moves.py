"""Indexes are rebuilt, and moved to another engine, while searches and writes continue."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server import PROJECT, Server
from tests.service.clients import Answer, Crowd, Customer, crowd, eventually, page, register
from tests.service.conftest import BACKINGS, one_machine, two_machines
from tests.service.stored import rows

pytestmark = pytest.mark.service

SEED = 2000
SEARCHERS, WRITERS = 4, 2
INTERRUPTIONS = 3


@pytest.fixture(params=BACKINGS)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Server]]:
    """New machines with two workers and two configured engines."""
    engines = {"search_url": f"tantivy://{tmp_path / 'first'} tantivy://{tmp_path / 'second'}?name=second"}
    if request.param == "one machine":
        with one_machine(tmp_path, workers=2, **engines) as made:
            yield made
    else:
        postgres, redis = request.getfixturevalue("postgres"), request.getfixturevalue("redis")
        with two_machines(tmp_path, postgres, redis, workers=1, **engines) as made:
            yield made


@pytest.fixture
def customer(servers: list[Server]) -> Customer:
    made = register(servers, "ann@example.com")
    servers[0].set_plan(made.email, "business", requests_per_minute="unlimited")
    for begin in range(0, SEED, 1000):
        assert made.private.index(*[page(f"seed-{number}") for number in range(begin, begin + 1000)]).status == 200
    return made


@contextmanager
def load(customer: Customer) -> Iterator[tuple[Crowd, Crowd]]:
    """Search and write; every search must see all documents acknowledged before it started."""
    acknowledged = itertools.count(SEED + 1)
    least = [SEED]

    def search(_: int) -> Answer:
        wanted = least[0]
        answer = customer.search.search("page", limit=1)
        assert answer.status == 200, answer.body
        assert answer.body["results"]["estimatedTotalHits"] >= wanted, "a search used an incomplete index"
        return answer

    def write(number: int) -> Answer:
        answer = customer.private.index(page(f"new-{number}"))
        assert answer.status == 200, answer.body
        least[0] = max(least[0], next(acknowledged))
        return answer

    with (
        crowd(SEARCHERS, search, pause_seconds=0.01) as searches,
        crowd(WRITERS, write, pause_seconds=0.05) as writes,
    ):
        yield searches, writes
    assert not searches.unanswered
    assert not writes.unanswered


def check_index(servers: list[Server], customer: Customer, engine: str) -> None:
    """Assert that the index is on ``engine`` and contains exactly the stored documents."""
    stored = {row.id for row in rows(servers[0], "SELECT id FROM documents WHERE body IS NOT NULL")}
    found: set[str] = set()
    for offset in range(0, len(stored) + 100, 100):
        results = customer.private.must("GET", f"/v1/search?q=*&limit=100&offset={offset}")["results"]
        found |= {hit["id"] for hit in results["hits"]}
    assert found == stored
    ((used, rebuilding),) = rows(servers[0], "SELECT engine, rebuilding FROM sites")
    assert used.endswith(engine)
    assert not rebuilding


def test_move_and_reindex_under_load_fail_no_search_and_lose_no_document(
    servers: list[Server], customer: Customer
) -> None:
    with load(customer) as (searches, writes):
        searches.wait_for(20)
        servers[0].flask("search", "reindex", "--json")
        searches.wait_for(20)
        servers[0].flask("search", "move", "--to", "second", "--json")
        searches.wait_for(20)
        writes.wait_for(5)
    check_index(servers, customer, ":second")

    for server in servers:
        server.stop()
        server.environment["SEARCH_URL"] = server.environment["SEARCH_URL"].split()[1]
        server.start()
    check_index(servers, customer, ":second")
    assert customer.private.index(page("last")).status == 200
    assert customer.private.found_ids("last") >= {"page-last"}


def test_move_that_is_killed_at_any_moment_can_be_repeated(servers: list[Server], customer: Customer) -> None:
    moments = random.Random(7)

    with load(customer) as (searches, writes):
        for _ in range(INTERRUPTIONS):
            command = subprocess.Popen(
                [sys.executable, "-m", "flask", "--app", "wsgi", "search", "move", "--to", "second", "--json"],
                cwd=PROJECT, env=servers[0].environment, stdout=subprocess.DEVNULL,
            )  # fmt: skip

            def has_begun(command: subprocess.Popen[bytes] = command) -> None:
                ((rebuilding, engine),) = rows(servers[0], "SELECT rebuilding, engine FROM sites")
                assert rebuilding or engine.endswith(":second") or command.poll() is not None

            try:
                eventually(has_begun, seconds=180)
                time.sleep(moments.uniform(0, 0.4))
            finally:
                command.kill()
                command.wait()
            searches.wait_for(10)
        servers[0].flask("search", "move", "--to", "second", "--json")
        writes.wait_for(5)

    check_index(servers, customer, ":second")
