"""A Redis that is gone, frozen, emptied, full or restarted."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis

from app.counters import (
    ConsumeOutcome,
    CounterStore,
    CountersUnavailable,
    UsageReservation,
    WindowRequest,
    create_counters,
)
from app.counters.redis import store as redis_counters
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
    """Another store on the same server, which gives up soon."""
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


def test_a_step_whose_answer_was_lost_is_counted_at_most_once(
    counters: CounterStore, impatient: CounterStore, server: RedisServer
) -> None:
    freeze(server, True)
    with pytest.raises(CountersUnavailable):
        impatient.consume([DAY], reserve=UsageReservation(1, 9), now=NOW)
    freeze(server, False)
    seen = counters.peek([DAY], usage_of=1, now=NOW)
    assert seen.windows[0].hits in (1, 2)
    assert seen.used_today == seen.windows[0].hits - 1


def test_while_the_server_is_away_steps_fail_at_once_and_one_a_second_asks(
    impatient: CounterStore, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr(redis_counters, "time", SimpleNamespace(monotonic=lambda: moment))
    freeze(server, True)
    for _ in range(3):
        with pytest.raises(CountersUnavailable, match="cannot be used"):
            impatient.consume([DAY], now=NOW)
    for _ in range(50):
        with pytest.raises(CountersUnavailable, match="is away"):
            impatient.consume([DAY], now=NOW)
    freeze(server, False)
    with pytest.raises(CountersUnavailable, match="is away"):
        impatient.consume([DAY], now=NOW)

    def hit_a_second_later() -> ConsumeOutcome:
        nonlocal moment
        moment += 1
        return impatient.consume([DAY], now=NOW)

    assert until_it_is_back(hit_a_second_later).allowed
    assert until_it_is_back(lambda: impatient.consume([DAY], now=NOW)).allowed


def test_a_server_that_was_away_for_long_and_forgot_its_scripts_is_used_again(
    counters: CounterStore, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    for _ in range(5):
        with pytest.raises(CountersUnavailable):
            counters.consume([DAY], now=NOW)
    server.start()
    passed = time.monotonic() + 2
    monkeypatch.setattr(redis_counters, "time", SimpleNamespace(monotonic=lambda: passed))

    assert counters.consume([DAY], now=NOW).allowed


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
    assert lasting == {"sitesearch:counters:epoch:1"}
