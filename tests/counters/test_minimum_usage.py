"""A store that lost a day's usage is raised to the copied usage and continues from there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.metering import MinimumUsage, RaisedDays
from app.counters.values import Reservation, UsageReservation
from tests.counters.every_method import NOW, TODAY

RESERVE = UsageReservation(1, 60, 7)


class Known:
    """Returns the copied usage and records each lookup."""

    def __init__(self, minimum: MinimumUsage | None):
        self.minimum = minimum
        self.asked: list[tuple[int, date]] = []

    def read(self, account_id: int, day: date) -> MinimumUsage | None:
        self.asked.append((account_id, day))
        return self.minimum


def knowing(url: str, minimum: MinimumUsage | None) -> tuple[CounterStore, Known]:
    known = Known(minimum)
    return create_counters(url, known.read), known


def search(store: CounterStore) -> Reservation | None:
    return store.consume([], reserve=RESERVE, now=NOW).reservation


def report(store: CounterStore) -> object:
    return store.report_usage(1, 7, "search", 1, capped=False, now=NOW)


def test_counting_resumes_from_the_copied_usage(shared_url: str) -> None:
    store, known = knowing(shared_url, MinimumUsage(50, 8))
    assert [store.consume([], reserve=RESERVE, now=NOW).used_today for _ in range(3)] == [51, 52, 53]
    assert store.usage_of_day(1, TODAY).indexing == 8
    assert known.asked == [(1, TODAY)]
    store.close()


def test_daily_limit_includes_the_copied_usage(shared_url: str) -> None:
    store, _ = knowing(shared_url, MinimumUsage(59, 0))
    assert [search(store) is None for _ in range(3)] == [False, True, True]
    store.close()


@pytest.mark.parametrize("step", [search, report])
def test_copied_usage_never_lowers_existing_counts(shared_url: str, step: Callable[[CounterStore], object]) -> None:
    first, _ = knowing(shared_url, MinimumUsage(0, 0))
    for _ in range(5):
        search(first)
    second, _ = knowing(shared_url, MinimumUsage(3, 0))
    used = first.usage_of_day(1, TODAY).used
    step(second)
    assert second.usage_of_day(1, TODAY).used == used + (step is search)
    first.close()
    second.close()


def test_report_is_added_to_the_copied_usage(shared_url: str) -> None:
    store, _ = knowing(shared_url, MinimumUsage(50, 8))
    assert store.report_usage(1, 7, "search", 2, capped=False, now=NOW).used_today == 52
    store.report_usage(1, 7, "indexing", 2, capped=False, now=NOW)
    assert store.usage_of_day(1, TODAY).indexing == 10
    store.close()


def test_reported_usage_is_never_below_the_copied_usage(shared_url: str) -> None:
    store, known = knowing(shared_url, MinimumUsage(50, 8))
    assert store.usage_of_day(1, TODAY)[1:3] == (50, 8)
    search(store)
    store.close()
    store.clear()
    store.check()
    assert store.usage_of_day(1, TODAY)[1:3] == (50, 8)
    known.minimum = None
    assert store.usage_of_day(1, TODAY).used == 0
    store.close()


def test_raised_day_is_read_without_another_lookup(shared_url: str) -> None:
    store, known = knowing(shared_url, MinimumUsage(50, 8))
    search(store)
    assert store.usage_of_day(1, TODAY).used == 51
    assert known.asked == [(1, TODAY)]
    store.close()


def test_searches_continue_without_a_copy_and_the_next_search_retries_the_lookup(shared_url: str) -> None:
    store, known = knowing(shared_url, None)
    assert search(store) is not None
    known.minimum = MinimumUsage(50, 0)
    assert search(store) is not None
    assert store.usage_of_day(1, TODAY).used == 51
    assert search(store) is not None
    assert len(known.asked) == 2
    store.close()


def test_cleared_store_is_raised_to_the_copied_usage_again(shared_url: str) -> None:
    store, known = knowing(shared_url, MinimumUsage(0, 0))
    search(store)
    known.minimum = MinimumUsage(1, 0)
    store.close()
    store.clear()
    assert store.consume([], reserve=RESERVE, now=NOW).used_today == 2
    store.close()


def test_memory_for_raised_days_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.counters.metering._DAYS_REMEMBERED", 2)
    raised_days = RaisedDays()
    for account_id in range(3):
        raised_days.record(account_id, TODAY, "first")
    assert [raised_days.incarnation_of(account_id, TODAY) for account_id in range(3)] == ["", "", "first"]
