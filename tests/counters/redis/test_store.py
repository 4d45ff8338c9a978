"""A Redis that is unreachable, frozen, emptied, full, or restarted."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
import redis

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable, UsageReservation, WindowRequest
from tests.counters.conftest import RedisServer
from tests.counters.every_method import EVERY_METHOD, NOW, call, until_it_is_back
from tests.counters.redis.conftest import BUDGET_SECONDS, PATIENT_SECONDS, freeze

DAY = WindowRequest("day", 1000, 86_400)


@pytest.fixture
def counters(counters: CounterStore) -> CounterStore:
    counters.consume([DAY], now=NOW)
    return counters


def test_every_method_fails_immediately_without_a_server(counters: CounterStore, server: RedisServer) -> None:
    server.stop()
    for method in EVERY_METHOD:
        began = time.monotonic()
        with pytest.raises(CountersUnavailable, match=f"127.0.0.1:{server.port}"):
            call(counters, method)
        assert time.monotonic() - began < PATIENT_SECONDS / 2


@pytest.mark.slow
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_method_fails_in_time_if_the_server_hangs(redis_server: RedisServer, method: str) -> None:
    with closing(create_counters(redis_server.url, timeout_seconds=BUDGET_SECONDS)) as counters:
        until_it_is_back(counters.check)
        freeze(redis_server, True)
        try:
            began = time.monotonic()
            with pytest.raises(CountersUnavailable) as caught:
                call(counters, method)
            assert time.monotonic() - began < PATIENT_SECONDS
            assert isinstance(caught.value.__cause__, redis.exceptions.RedisError)
        finally:
            freeze(redis_server, False)
        until_it_is_back(lambda: call(counters, method))


def test_window_expiry_does_not_depend_on_the_server_clock(counters: CounterStore, server: RedisServer) -> None:
    """The server receives a duration, not an expiry time, because its clock may differ from the caller's by days."""
    counters.consume([DAY], now=NOW)
    (window,) = counters.peek([DAY], now=NOW).windows
    with closing(redis.Redis(port=server.port)) as client:
        kept_ms = client.pttl(f"sitesearch:counters:window:{DAY.key}")
    assert kept_ms >= window.reset_ms - NOW * 1000


def test_store_reconnects_to_a_restarted_server(counters: CounterStore, server: RedisServer) -> None:
    server.stop()
    with pytest.raises(CountersUnavailable):
        counters.check()
    server.start()
    assert counters.consume([DAY], now=NOW).windows[0].hits == 1


def test_scripts_are_reloaded_after_the_server_flushes_them(counters: CounterStore, server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.script_flush()
    assert counters.consume([DAY], now=NOW).windows[0].hits == 2


def test_full_server_rejects_writes_and_keeps_its_data(counters: CounterStore, server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(CountersUnavailable):
            counters.consume([DAY], now=NOW)
        with pytest.raises(CountersUnavailable):
            counters.check()
        client.config_set("maxmemory", 0)
    assert counters.consume([DAY], now=NOW).windows[0].hits == 2


def test_wrong_password_raises_unavailable_without_revealing_it(server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.config_set("requirepass", "right")
    with closing(create_counters(server.url.replace("://", "://:very-wrong@"))) as counters:
        with pytest.raises(CountersUnavailable) as caught:
            counters.check()
        assert "very-wrong" not in str(caught.value)


def test_every_key_expires_except_epochs_and_the_incarnation(counters: CounterStore, server: RedisServer) -> None:
    for method in EVERY_METHOD:
        if method not in ("clear", "forget_account", "reset", "reset_all"):
            call(counters, method)
    counters.consume([DAY], reserve=UsageReservation(1, 9, 7), credentials_of=1, now=NOW)
    with closing(redis.Redis(port=server.port, decode_responses=True)) as client:
        lasting = {key for key in client.scan_iter() if client.ttl(key) < 0}
    assert lasting == {"sitesearch:counters:epoch:1", "sitesearch:counters:incarnation"}
