"""Reports on large sites are cached for a minute, and others are always computed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.services.analytics.report_parts import LARGE_SEARCHES, LIFETIME, MAX_RESULTS, RecentResults

MOMENT = datetime(2031, 5, 14, 12, tzinfo=UTC)


def large(_: object) -> int:
    return LARGE_SEARCHES


def small(_: object) -> int:
    return LARGE_SEARCHES - 1


class Counter:
    """A computation whose result is the number of times it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self) -> int:
        self.runs += 1
        return self.runs


def test_result_of_a_large_site_is_reused_for_a_minute() -> None:
    recent, compute = RecentResults(), Counter()

    with time_machine.travel(MOMENT, tick=False) as clock:
        assert [recent.get("a", compute, large) for _ in range(3)] == [1, 1, 1]
        clock.shift(LIFETIME - timedelta(seconds=1))
        assert recent.get("a", compute, large) == 1
        clock.shift(timedelta(seconds=1))
        assert recent.get("a", compute, large) == 2


def test_setting_the_clock_back_expires_a_cached_result() -> None:
    recent, compute = RecentResults(), Counter()

    with time_machine.travel(MOMENT, tick=False) as clock:
        recent.get("a", compute, large)
        clock.shift(-timedelta(hours=1))
        assert recent.get("a", compute, large) == 2


def test_result_of_a_small_site_is_computed_every_time() -> None:
    recent, compute = RecentResults(), Counter()

    assert [recent.get("a", compute, small) for _ in range(3)] == [1, 2, 3]


def test_results_are_cached_per_key_and_the_oldest_is_evicted_at_the_limit() -> None:
    recent, compute = RecentResults(), Counter()

    results = [recent.get(key, compute, large) for key in range(MAX_RESULTS + 1)]

    assert results == list(range(1, MAX_RESULTS + 2))
    assert recent.get(1, compute, large) == 2
    assert recent.get(0, compute, large) == MAX_RESULTS + 2, "the oldest result must be removed"


def test_concurrent_requests_for_one_result_compute_it_once() -> None:
    recent, compute = RecentResults(), Counter()
    everyone_asks = threading.Barrier(4, timeout=10)

    def ask(_: int) -> int:
        everyone_asks.wait()
        return recent.get("a", compute, large)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [1, 1, 1, 1]


def test_failed_computation_raises_its_error_and_caches_nothing() -> None:
    recent, compute = RecentResults(), Counter()

    def fail() -> int:
        raise ValueError("no database")

    with pytest.raises(ValueError, match="no database"):
        recent.get("a", fail, large)

    assert recent.get("a", compute, large) == 1
