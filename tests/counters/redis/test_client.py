"""A hanging Redis is contacted again only after a pause; a Redis that rejects connections is contacted every time."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from app.counters.base import CounterStore
from app.counters.redis import client
from app.counters.values import CountersUnavailable
from tests.counters.conftest import RedisServer
from tests.counters.every_method import NOW, until_it_is_back
from tests.counters.redis.conftest import freeze
from tests.counters.redis.test_store import DAY


def test_hanging_server_fails_steps_immediately_and_is_retried_after_a_second(
    impatient: CounterStore, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: moment))
    freeze(server, True)
    for _ in range(3):
        with pytest.raises(CountersUnavailable, match="cannot be used"):
            impatient.consume([DAY], now=NOW)
    for _ in range(50):
        with pytest.raises(CountersUnavailable, match="is unavailable"):
            impatient.consume([DAY], now=NOW)
    moment += 1
    with pytest.raises(CountersUnavailable, match="cannot be used"):
        impatient.consume([DAY], now=NOW)
    with pytest.raises(CountersUnavailable, match="is unavailable"):
        impatient.consume([DAY], now=NOW)
    freeze(server, False)

    assert until_it_is_back(lambda: impatient.consume([DAY], now=NOW)).allowed


def test_refusing_server_is_contacted_for_every_step(counters: CounterStore, server: RedisServer) -> None:
    server.stop()
    for _ in range(10):
        with pytest.raises(CountersUnavailable, match="cannot be used"):
            counters.consume([DAY], now=NOW)
    server.start()

    assert counters.consume([DAY], now=NOW).allowed
