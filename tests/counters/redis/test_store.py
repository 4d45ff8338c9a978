"""A Redis that is unreachable, frozen, emptied, full, or restarted."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from app.counters import (
    CounterStore,
    CountersUnavailable,
    UsageReservation,
    WindowRequest,
    create_counters,
)
from tests.counters.conftest import RedisServer
from tests.counters.every_method import EVERY_METHOD, NOW, call, until_it_is_back

BUDGET_SECONDS, PATIENT_SECONDS = 0.3, 20.0
DAY = WindowRequest("day", 1000, 86_400)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for one test, which may break it."""
    broken = RedisServer(tmp_path)
    broken.start()
    yield broken
    broken.stop()


@pytest.fixture
def counters(server: RedisServer) -> Iterator[CounterStore]:
    with closing(create_counters(server.url, timeout_seconds=PATIENT_SECONDS)) as store:
        store.consume([DAY], now=NOW)
        yield store


@pytest.fixture
def impatient(counters: CounterStore, server: RedisServer) -> Iterator[CounterStore]:
    """Another store on the same server with a short timeout."""
    with closing(create_counters(server.url, timeout_seconds=BUDGET_SECONDS)) as store:
        until_it_is_back(store.check)
        yield store


def freeze(server: RedisServer, frozen: bool) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)


def test_without_a_server_every_method_fails_at_once(counters: CounterStore, server: RedisServer) -> None:
    server.stop()
    for method in EVERY_METHOD:
        began = time.monotonic()
        with pytest.raises(CountersUnavailable, match=f"127.0.0.1:{server.port}"):
            call(counters, method)
        assert time.monotonic() - began < PATIENT_SECONDS / 2


@pytest.mark.slow
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_a_server_that_does_not_answer_makes_every_method_fail_in_time(redis_server: RedisServer, method: str) -> None:
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


def test_a_window_is_kept_until_its_end_whatever_the_servers_clock_says(
    counters: CounterStore, server: RedisServer
) -> None:
    """The server gets a duration, not an end, because its clock may be days away from the callers'."""
    counters.consume([DAY], now=NOW)
    (window,) = counters.peek([DAY], now=NOW).windows
    with closing(redis.Redis(port=server.port)) as client:
        kept_ms = client.pttl(f"sitesearch:counters:window:{DAY.key}")
    assert kept_ms >= window.reset_ms - NOW * 1000


def test_a_restarted_server_is_found_again(counters: CounterStore, server: RedisServer) -> None:
    server.stop()
    with pytest.raises(CountersUnavailable):
        counters.check()
    server.start()
    assert counters.consume([DAY], now=NOW).windows[0].hits == 1


def test_a_server_that_forgot_the_scripts_is_told_again(counters: CounterStore, server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.script_flush()
    assert counters.consume([DAY], now=NOW).windows[0].hits == 2


def test_a_full_server_makes_writes_fail_and_keeps_what_it_has(counters: CounterStore, server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(CountersUnavailable):
            counters.consume([DAY], now=NOW)
        with pytest.raises(CountersUnavailable):
            counters.check()
        client.config_set("maxmemory", 0)
    assert counters.consume([DAY], now=NOW).windows[0].hits == 2


def test_a_wrong_password_is_unavailable_and_told_nobody(server: RedisServer) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        client.config_set("requirepass", "right")
    with closing(create_counters(server.url.replace("://", "://:very-wrong@"))) as counters:
        with pytest.raises(CountersUnavailable) as caught:
            counters.check()
        assert "very-wrong" not in str(caught.value)


def test_everything_kept_has_an_end(counters: CounterStore, server: RedisServer) -> None:
    for method in EVERY_METHOD:
        if method not in ("clear", "forget_account", "reset", "reset_all"):
            call(counters, method)
    counters.consume([DAY], reserve=UsageReservation(1, 9, 7), credentials_of=1, now=NOW)
    with closing(redis.Redis(port=server.port, decode_responses=True)) as client:
        lasting = {key for key in client.scan_iter() if client.ttl(key) < 0}
    assert lasting == {"sitesearch:counters:epoch:1", "sitesearch:counters:incarnation"}
