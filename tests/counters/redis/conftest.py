"""A Redis server that a test may break, and stores with a long and a short timeout."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.counters import create_counters
from app.counters.base import CounterStore
from tests.counters.conftest import RedisServer
from tests.counters.every_method import until_it_is_back

BUDGET_SECONDS, PATIENT_SECONDS = 0.3, 20.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for one test, which may break it."""
    broken = RedisServer(tmp_path)
    broken.start()
    yield broken
    broken.stop()


@pytest.fixture
def counters(server: RedisServer) -> Iterator[CounterStore]:
    """A store with a long timeout, to inspect the effects of other stores."""
    with closing(create_counters(server.url, timeout_seconds=PATIENT_SECONDS)) as store:
        yield store


@pytest.fixture
def impatient(server: RedisServer) -> Iterator[CounterStore]:
    """Another store on the same server with a short timeout."""
    with closing(create_counters(server.url, timeout_seconds=BUDGET_SECONDS)) as store:
        until_it_is_back(store.check)
        yield store


def freeze(server: RedisServer, frozen: bool) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)
