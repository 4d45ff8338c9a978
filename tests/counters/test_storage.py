"""The stores as storages of the limits library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from app.counters.limiter import CounterStorage
from app.counters.values import CountersUnavailable

NOW = 1_700_000_000.25


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def storage(counters_url: str, clock: time_machine.Traveller) -> Iterator[CounterStorage]:
    made = storage_from_string(f"counters+{counters_url}")
    assert isinstance(made, CounterStorage)
    yield made
    made.store.close()


def test_storage_counts_until_the_window_ends(storage: CounterStorage, clock: time_machine.Traveller) -> None:
    assert [storage.incr("key", 60), storage.incr("key", 60, amount=3)] == [1, 4]
    assert (storage.get("key"), storage.get("other")) == (4, 0)
    assert storage.get_expiry("key") == NOW + 60
    assert abs(storage.get_expiry("other") - NOW) < 0.001
    clock.shift(60)
    assert storage.get("key") == 0
    assert storage.incr("key", 60) == 1


def test_storage_can_clear_one_key_and_reset_all(storage: CounterStorage) -> None:
    for key in ("a", "b", "c"):
        storage.incr(key, 60)
    storage.clear("a")
    assert [storage.get(key) for key in ("a", "b", "c")] == [0, 1, 1]
    assert storage.reset() == 2
    assert [storage.get(key) for key in ("a", "b", "c")] == [0, 0, 0]


def test_limits_library_strategy_works_with_the_storage(storage: CounterStorage) -> None:
    limiter, limit = FixedWindowRateLimiter(storage), RateLimitItemPerMinute(2)
    assert [limiter.hit(limit, "caller") for _ in range(3)] == [True, True, False]
    assert limiter.get_window_stats(limit, "caller") == (NOW + 60, 0)


def test_check_reports_whether_the_store_is_available(
    storage: CounterStorage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert storage.check() is True
    away = storage_from_string(f"counters+sqlite://{tmp_path_factory.mktemp('empty')}/missing/counters.db")
    assert away.check() is False
    with pytest.raises(CountersUnavailable):
        away.get("key")


def test_errors_are_wrapped_as_storage_error_on_request(tmp_path_factory: pytest.TempPathFactory) -> None:
    away = f"counters+sqlite://{tmp_path_factory.mktemp('empty')}/missing/counters.db"
    with pytest.raises(StorageError):
        storage_from_string(away, wrap_exceptions=True).get("key")
