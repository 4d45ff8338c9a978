"""Installations: one machine with files, or two with PostgreSQL and Redis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import Server, running_server
from tests.service.clients import Customer, register

_numbers = itertools.count(1)
COMMON: dict[str, str | int] = {"default_plan": "business", "trusted_proxies": 1}
"""Generous limits, and trust in the clients' forwarded IP addresses."""

PATIENT: dict[str, str | int] = {"limits_timeout_seconds": 20, "database_timeout_seconds": 20}
"""Long timeouts, since the whole installation shares this machine and responds slowly."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


LASTING = ("--appendonly", "yes", "--appendfsync", "no", "--databases", "200")
"""Options of a Redis that writes every change to its file before responding, so that data survives a kill.

The tests kill processes, not the machine, so that waiting for the disk, which other tests also use, is unnecessary.
"""


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), options=LASTING)
    server.start()
    yield server
    server.stop()


@contextmanager
def two_machines(
    folder: Path, postgres: PostgresServer, redis: RedisServer, *, workers: int = 2, **settings: str | int
) -> Iterator[list[Server]]:
    """Run two gunicorn masters that share a PostgreSQL database, a Redis database, and the index."""
    number = next(_numbers)
    shared: dict[str, str | int] = {
        "database_url": postgres.create_database(f"service_{number}"),
        "limits_url": redis.url.removesuffix("/0") + f"/{number}",
        "search_url": f"tantivy://{folder / 'indexes'}",
        **COMMON,
        **PATIENT,
        **settings,
    }
    with ExitStack() as stack:
        yield [stack.enter_context(running_server(folder / name, workers=workers, **shared)) for name in ("a", "b")]


@contextmanager
def one_machine(
    folder: Path, *, workers: int = 4, application: str = "wsgi:app", **settings: str | int
) -> Iterator[list[Server]]:
    """Run one gunicorn master with files."""
    values = {**COMMON, **PATIENT, **settings}
    with running_server(folder / "data", workers=workers, application=application, **values) as server:
        yield [server]


BACKINGS = ("one machine", "two machines")
"""Four workers: of one master with SQLite files, and of two masters with PostgreSQL and Redis."""


@pytest.fixture(scope="session")
def one_machine_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with one_machine(tmp_path_factory.mktemp("one")) as made:
        yield made


@pytest.fixture(scope="session")
def two_machines_servers(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, redis: RedisServer
) -> Iterator[list[Server]]:
    with two_machines(tmp_path_factory.mktemp("two"), postgres, redis) as made:
        yield made


@pytest.fixture(params=BACKINGS)
def servers(request: pytest.FixtureRequest) -> list[Server]:
    """Four workers of each kind, shared by all tests: each test registers its own tenant and breaks nothing."""
    found: list[Server] = request.getfixturevalue(f"{request.param.replace(' ', '_')}_servers")
    return found


@pytest.fixture
def settings() -> dict[str, str | int]:
    """Additional settings of :func:`fresh_servers`."""
    return {}


@pytest.fixture(params=BACKINGS)
def fresh_servers(
    request: pytest.FixtureRequest, tmp_path: Path, settings: dict[str, str | int]
) -> Iterator[list[Server]]:
    """Four workers of each kind, new for each test, which may break them."""
    if request.param == "one machine":
        with one_machine(tmp_path, **settings) as made:
            yield made
    else:
        postgres, redis = request.getfixturevalue("postgres"), request.getfixturevalue("redis")
        with two_machines(tmp_path, postgres, redis, **settings) as made:
            yield made


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Server]:
    """A new machine with files and four workers."""
    with one_machine(tmp_path) as made:
        yield made[0]


@pytest.fixture
def customer(servers: list[Server]) -> Customer:
    """A new tenant on :func:`servers`."""
    return register(servers, f"customer-{next(_numbers)}@example.com")
