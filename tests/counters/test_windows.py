"""Request windows: the contract for every store."""

from __future__ import annotations

import pytest

from app.counters.base import CounterStore
from app.counters.metering import UNLIMITED
from app.counters.values import WindowRequest

NOW = 1_700_000_000.25
MIDNIGHT = 1_700_006_400
MINUTE = WindowRequest("minute", 3, 60)
DAY = WindowRequest("day", 5, 86_400)


def test_window_allows_exactly_its_limit(counters: CounterStore) -> None:
    outcomes = [counters.consume([MINUTE], now=NOW) for _ in range(5)]
    assert [outcome.allowed for outcome in outcomes] == [True, True, True, False, False]
    assert [outcome.windows[0].hits for outcome in outcomes] == [1, 2, 3, 3, 3]
    assert [outcome.windows[0].remaining for outcome in outcomes] == [2, 1, 0, 0, 0]


def test_a_window_starts_with_its_first_hit_and_lasts_its_seconds(counters: CounterStore) -> None:
    counters.consume([MINUTE], now=NOW)
    for later in (0.0, 1.0, 59.999):
        assert counters.consume([MINUTE], now=NOW + later).windows[0].reset_ms == 1_700_000_060_250
    renewed = counters.consume([MINUTE], now=NOW + 60)
    assert renewed.allowed
    assert (renewed.windows[0].hits, renewed.windows[0].reset_ms) == (1, 1_700_000_120_250)


def test_day_window_is_the_utc_day(counters: CounterStore) -> None:
    for moment in (MIDNIGHT - 60, MIDNIGHT - 0.001):
        window = counters.consume([DAY], now=moment).windows[0]
        assert (window.reset_ms, window.reset_at) == (MIDNIGHT * 1000, MIDNIGHT)
    assert counters.peek([DAY], now=MIDNIGHT - 0.001).windows[0].hits == 2
    for moment in (MIDNIGHT, MIDNIGHT + 86_399.999):
        assert counters.peek([DAY], now=moment).windows[0].reset_ms == (MIDNIGHT + 86_400) * 1000
    renewed = counters.consume([DAY], now=MIDNIGHT)
    assert (renewed.windows[0].hits, renewed.windows[0].reset_ms) == (1, (MIDNIGHT + 86_400) * 1000)


def test_full_day_window_reopens_at_midnight(counters: CounterStore) -> None:
    for _ in range(5):
        counters.consume([DAY], now=MIDNIGHT - 90.5)
    rejected = counters.consume([DAY], now=MIDNIGHT - 90.5).rejected
    assert rejected is not None
    assert rejected.retry_after(MIDNIGHT - 90.5) == 91
    assert not counters.consume([DAY], now=MIDNIGHT - 0.001).allowed
    assert counters.consume([DAY], now=MIDNIGHT).allowed


def test_differing_clocks_share_one_day_window_at_midnight(counters: CounterStore) -> None:
    """The first caller past midnight starts the day for all callers, and no caller returns to the previous day."""
    for _ in range(5):
        counters.consume([DAY], now=MIDNIGHT - 1)
    hits = [counters.consume([DAY], now=MIDNIGHT + offset).windows[0].hits for offset in (0.0, -0.5, 0.1, -0.25)]
    assert hits == [1, 2, 3, 4]
    assert counters.peek([DAY], now=MIDNIGHT + 1).windows[0].reset_at == MIDNIGHT + 86_400


def test_hit_of_an_ended_day_is_not_refunded_to_the_next_day(counters: CounterStore) -> None:
    old = counters.consume([DAY], now=MIDNIGHT - 0.001)
    counters.consume([DAY], now=MIDNIGHT)
    counters.refund(windows=old.windows, now=MIDNIGHT)
    assert counters.peek([DAY], now=MIDNIGHT).windows[0].hits == 1


def test_rejected_hit_counts_in_no_window(counters: CounterStore) -> None:
    for _ in range(3):
        counters.consume([MINUTE, DAY], now=NOW)
    rejected = counters.consume([MINUTE, DAY], now=NOW)
    assert rejected.rejected == rejected.windows[0]
    assert [window.hits for window in rejected.windows] == [3, 3]
    assert counters.consume([DAY], now=NOW).windows[0].hits == 4


def test_rejection_names_the_full_window_with_the_longest_wait(counters: CounterStore) -> None:
    short, long = WindowRequest("short", 1, 60), WindowRequest("long", 1, 3600)
    counters.consume([short, long], now=NOW)
    rejected = counters.consume([short, long], now=NOW).rejected
    assert rejected is not None
    assert rejected.key == "long"
    assert rejected.retry_after(NOW) == 3600


def test_retry_after_is_rounded_up_and_never_zero(counters: CounterStore) -> None:
    window = WindowRequest("one", 1, 60)
    counters.consume([window], now=NOW)
    waits = {}
    for moment in (NOW, NOW + 0.5, NOW + 59.9):
        rejected = counters.consume([window], now=moment).rejected
        assert rejected is not None
        waits[moment] = rejected.retry_after(moment)
        assert rejected.reset_at == 1_700_000_061
    assert list(waits.values()) == [60, 60, 1]


def test_window_without_a_limit_counts_and_never_rejects(counters: CounterStore) -> None:
    unlimited = WindowRequest("unlimited", None, 60)
    for hits in range(1, 6):
        window = counters.consume([unlimited], now=NOW).windows[0]
        assert (window.hits, window.remaining) == (hits, UNLIMITED)


def test_limit_of_zero_rejects_the_first_hit(counters: CounterStore) -> None:
    rejected = counters.consume([WindowRequest("none", 0, 60)], now=NOW).rejected
    assert rejected is not None
    assert (rejected.hits, rejected.reset_ms) == (0, 1_700_000_060_250)


def test_changed_limit_applies_from_the_next_hit(counters: CounterStore) -> None:
    for _ in range(3):
        counters.consume([MINUTE], now=NOW)
    assert counters.consume([MINUTE._replace(limit=4)], now=NOW).allowed
    assert not counters.consume([MINUTE._replace(limit=2)], now=NOW).allowed


def test_hit_can_cost_several_units(counters: CounterStore) -> None:
    window = WindowRequest("batch", 10, 60, cost=4)
    assert [counters.consume([window], now=NOW).allowed for _ in range(3)] == [True, True, False]
    assert counters.consume([window._replace(cost=2)], now=NOW).windows[0].hits == 10


def test_windows_are_returned_in_request_order(counters: CounterStore) -> None:
    windows = [WindowRequest(key, 9, 60) for key in ("b", "c", "a", "ü/ \N{SNOWMAN}")]
    assert [state.key for state in counters.consume(windows, now=NOW).windows] == [window.key for window in windows]


def test_peek_counts_nothing_and_shows_the_outcome_of_a_hit(counters: CounterStore) -> None:
    fresh = counters.peek([MINUTE], now=NOW)
    assert fresh.allowed
    assert (fresh.windows[0].hits, fresh.windows[0].reset_ms) == (0, 1_700_000_060_250)
    for _ in range(3):
        counters.consume([MINUTE], now=NOW)
    full = counters.peek([MINUTE], now=NOW + 1)
    assert full.rejected == full.windows[0]
    assert full.windows[0].hits == 3
    assert counters.peek([MINUTE], now=NOW + 60).allowed


def test_hit_can_be_refunded(counters: CounterStore) -> None:
    outcome = [counters.consume([MINUTE, DAY], now=NOW) for _ in range(3)][-1]
    counters.refund(windows=outcome.windows, now=NOW + 1)
    assert [window.hits for window in counters.peek([MINUTE, DAY], now=NOW + 1).windows] == [2, 2]
    assert counters.consume([MINUTE], now=NOW + 1).allowed


def test_hit_of_an_ended_window_is_not_refunded_to_the_next_window(counters: CounterStore) -> None:
    old = counters.consume([MINUTE], now=NOW)
    counters.consume([MINUTE], now=NOW + 60)
    counters.refund(windows=old.windows, now=NOW + 60)
    assert counters.peek([MINUTE], now=NOW + 60).windows[0].hits == 1


def test_reset_clears_only_the_named_windows(counters: CounterStore) -> None:
    counters.consume([MINUTE, DAY], now=NOW)
    counters.reset(["minute", "never seen"])
    counters.reset([])
    assert [window.hits for window in counters.peek([MINUTE, DAY], now=NOW).windows] == [0, 1]


def test_reset_all_clears_windows_but_not_usage(counters: CounterStore) -> None:
    counters.consume([MINUTE, DAY], now=NOW)
    counters.report_usage(1, 7, "search", 5, capped=False, now=NOW)
    assert counters.reset_all() == 2
    seen = counters.peek([MINUTE, DAY], usage_of=1, now=NOW)
    assert [window.hits for window in seen.windows] == [0, 0]
    assert seen.used_today == 5


def test_window_started_by_a_wrong_clock_is_restarted(counters: CounterStore) -> None:
    wrong = NOW + 10 * 365 * 86_400
    for _ in range(3):
        counters.consume([MINUTE], now=wrong)
    corrected = counters.consume([MINUTE], now=NOW)
    assert corrected.allowed
    assert (corrected.windows[0].hits, corrected.windows[0].reset_ms) == (1, 1_700_000_060_250)


@pytest.mark.parametrize("behind", [0.5, 30.0])
def test_slightly_slow_clock_counts_in_the_same_window(counters: CounterStore, behind: float) -> None:
    counters.consume([MINUTE], now=NOW)
    assert counters.consume([MINUTE], now=NOW - behind).windows[0].hits == 2


def test_request_without_windows_is_allowed(counters: CounterStore) -> None:
    outcome = counters.consume([], now=NOW)
    assert (outcome.allowed, outcome.windows, outcome.used_today, outcome.credential_version) == (True, (), None, None)
