"""Daily searches: reserving, refunding, reporting, and deleting."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.counters.base import CounterStore
from app.counters.metering import charge_of_site, day_from_number, day_number, day_of
from app.counters.values import (
    DayUsage,
    IdempotencyKey,
    IntentRequest,
    ReportStatus,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    quota_window,
)

MIDNIGHT = 1_700_006_400.0
NOW = MIDNIGHT - 3600
TODAY = date(2023, 11, 14)
SEARCH = UsageReservation(account_id=1, daily_limit=3)
GATEWAY = UsageReservation(account_id=1, daily_limit=3, gateway_site_id=7)
MINUTE = WindowRequest("minute", 100, 60)


def used(counters: CounterStore, account_id: int = 1) -> int:
    return counters.usage_of_day(account_id, TODAY).used


@pytest.mark.parametrize("search", [SEARCH, GATEWAY], ids=["search", "gateway"])
def test_exactly_the_daily_limit_is_charged(counters: CounterStore, search: UsageReservation) -> None:
    outcomes = [counters.consume([MINUTE], reserve=search, now=NOW) for _ in range(5)]
    assert [outcome.reservation is not None for outcome in outcomes] == [True, True, True, False, False]
    assert [outcome.used_today for outcome in outcomes] == [1, 2, 3, 3, 3]
    assert {outcome.day for outcome in outcomes} == {TODAY}


def test_search_rejected_by_the_quota_still_counts_as_a_request(counters: CounterStore) -> None:
    for _ in range(5):
        outcome = counters.consume([MINUTE], reserve=SEARCH, now=NOW)
    assert outcome.allowed
    assert outcome.windows[0].hits == 5


def test_rejected_searches_count_on_their_day_up_to_its_last_second(counters: CounterStore) -> None:
    for moment in (NOW, MIDNIGHT - 1, MIDNIGHT):
        counters.count_rejection(1, now=moment)

    days = counters.usage_between(1, TODAY, TODAY + timedelta(days=1))

    assert [day.rejected for day in days] == [2, 1]


def test_request_rejected_by_a_window_is_not_charged(counters: CounterStore) -> None:
    full = WindowRequest("full", 0, 60)
    outcome = counters.consume([MINUTE, full], reserve=SEARCH, now=NOW)
    assert (outcome.allowed, outcome.reservation, outcome.used_today) == (False, None, None)
    assert used(counters) == 0
    assert counters.peek([MINUTE], now=NOW).windows[0].hits == 0


def test_every_search_is_charged_and_allowed_without_a_limit(counters: CounterStore) -> None:
    outcomes = [counters.consume([], reserve=SEARCH._replace(daily_limit=None), now=NOW) for _ in range(5)]
    assert [outcome.used_today for outcome in outcomes if outcome.reservation] == [1, 2, 3, 4, 5]


def test_limit_of_zero_charges_nothing(counters: CounterStore) -> None:
    outcome = counters.consume([], reserve=SEARCH._replace(daily_limit=0), now=NOW)
    assert (outcome.reservation, outcome.used_today) == (None, 0)


@pytest.mark.parametrize("search", [SEARCH, GATEWAY], ids=["search", "gateway"])
def test_failed_search_is_refunded(counters: CounterStore, search: UsageReservation) -> None:
    for _ in range(3):
        outcome = counters.consume([MINUTE], reserve=search, now=NOW)
    counters.refund(reservation=outcome.reservation, now=NOW + 1)
    assert used(counters) == 2
    assert counters.peek([MINUTE], now=NOW + 1).windows[0].hits == 3
    assert counters.consume([], reserve=search, now=NOW + 1).reservation is not None


@pytest.mark.parametrize("search", [SEARCH, GATEWAY], ids=["search", "gateway"])
def test_search_is_refunded_to_the_day_of_its_charge(counters: CounterStore, search: UsageReservation) -> None:
    outcome = counters.consume([], reserve=search, now=MIDNIGHT - 0.001)
    counters.consume([], reserve=search, now=MIDNIGHT)
    counters.refund(reservation=outcome.reservation, now=MIDNIGHT + 0.001)
    assert counters.usage_of_day(1, TODAY).used == 0
    assert counters.usage_of_day(1, TODAY + timedelta(days=1)).used == 1


def test_quota_resets_at_utc_midnight(counters: CounterStore) -> None:
    for _ in range(4):
        last = counters.consume([], reserve=SEARCH, now=MIDNIGHT - 0.001)
    assert last.reservation is None
    fresh = counters.consume([], reserve=SEARCH, now=MIDNIGHT)
    assert (fresh.used_today, fresh.day) == (1, TODAY + timedelta(days=1))


def test_exhausted_quota_is_reported_as_a_window_until_midnight(counters: CounterStore) -> None:
    for _ in range(4):
        outcome = counters.consume([], reserve=SEARCH, now=NOW)
    window = quota_window(outcome, 3)
    assert (window.limit, window.hits, window.remaining) == (3, 3, 0)
    assert window.reset_at == MIDNIGHT
    assert window.retry_after(NOW) == 3600


def test_accounts_are_charged_separately(counters: CounterStore) -> None:
    counters.consume([], reserve=SEARCH, now=NOW)
    assert counters.consume([], reserve=SEARCH._replace(account_id=2), now=NOW).used_today == 1
    assert counters.peek([], usage_of=3, now=NOW).used_today == 0


def test_windows_and_search_can_be_refunded_together(counters: CounterStore) -> None:
    outcome = counters.consume([MINUTE], reserve=SEARCH, now=NOW)
    counters.refund(reservation=outcome.reservation, windows=outcome.windows, now=NOW)
    seen = counters.peek([MINUTE], usage_of=1, now=NOW)
    assert (seen.windows[0].hits, seen.used_today) == (0, 0)


def report(counters: CounterStore, count: int, *, capped: bool = False, site: int = 7) -> int:
    return counters.report_usage(1, site, "search", count, capped=capped, now=NOW).used_today


def test_report_is_charged_and_may_exceed_the_quota(counters: CounterStore) -> None:
    assert report(counters, 500) == 500
    rejected = counters.consume([], reserve=SEARCH, now=NOW)
    assert (rejected.reservation, rejected.used_today) == (None, 500)


def test_site_is_charged_the_larger_of_gateway_searches_and_reports(counters: CounterStore) -> None:
    gateway = GATEWAY._replace(daily_limit=None)
    for _ in range(4):
        counters.consume([], reserve=gateway, now=NOW)
    assert report(counters, 3) == 4
    assert report(counters, 3) == 6
    assert counters.consume([], reserve=gateway, now=NOW).used_today == 6
    assert counters.consume([], reserve=gateway, now=NOW).used_today == 6
    assert counters.consume([], reserve=gateway, now=NOW).used_today == 7


def test_gateway_searches_of_one_site_do_not_offset_reports_of_another(counters: CounterStore) -> None:
    counters.consume([], reserve=GATEWAY, now=NOW)
    assert report(counters, 1, site=8) == 2
    assert counters.consume([], reserve=SEARCH, now=NOW).used_today == 3


def test_gateway_search_is_rejected_at_the_quota_even_if_a_report_already_paid(counters: CounterStore) -> None:
    report(counters, 3)
    for _ in range(5):
        outcome = counters.consume([], reserve=GATEWAY, now=NOW)
        assert (outcome.reservation, outcome.used_today) == (None, 3)
    assert report(counters, 1) == 4, "the gateway did not make the rejected searches"


def test_capped_reports_are_charged_at_most_ten_beyond_the_gateway(counters: CounterStore) -> None:
    for _ in range(2):
        counters.consume([], reserve=GATEWAY, now=NOW)
    for _ in range(30):
        total = report(counters, 10, capped=True)
    assert total == 12
    assert report(counters, 10, capped=True, site=8) == 22
    assert counters.consume([], reserve=GATEWAY._replace(daily_limit=None), now=NOW).used_today == 23


def test_refunded_gateway_search_keeps_the_charge_of_reports(counters: CounterStore) -> None:
    outcome = counters.consume([], reserve=GATEWAY, now=NOW)
    report(counters, 1)
    counters.refund(reservation=outcome.reservation, now=NOW)
    assert used(counters) == 1
    assert counters.consume([], reserve=GATEWAY, now=NOW).used_today == 1, "the click must be reported"


HARBOR = IntentRequest("visitor", "harbor")
HARBOR_CRUISE = IntentRequest("visitor", "harbor cruise")


@pytest.mark.parametrize("site", [None, 7], ids=["search", "gateway"])
def test_uncounted_search_is_charged_once_regardless_of_the_quota(counters: CounterStore, site: int | None) -> None:
    for _ in range(3):
        counters.consume([], reserve=SEARCH, now=NOW)
    for once in ("a", "b", "a", "b"):
        counters.settle(UncountedSearch(1, site, NOW), once=once, now=NOW + 60)
    assert used(counters) == 5
    assert counters.consume([], reserve=SEARCH, now=NOW).reservation is None


def test_uncounted_search_is_charged_to_its_own_day(counters: CounterStore) -> None:
    for late in (MIDNIGHT, MIDNIGHT + 86_399):
        counters.settle(UncountedSearch(1, None, MIDNIGHT - 0.001), once="a", now=late)
    assert counters.usage_of_day(1, TODAY).used == 1
    assert counters.usage_of_day(1, TODAY + timedelta(days=1)).used == 0


@pytest.mark.parametrize("search", [SEARCH, GATEWAY], ids=["search", "gateway"])
def test_failed_refund_is_settled_exactly_once(counters: CounterStore, search: UsageReservation) -> None:
    for _ in range(3):
        reservation = counters.consume([], reserve=search, now=NOW).reservation
    assert reservation is not None
    for once in ("a", "a", "b"):
        counters.settle(reservation, once=once, now=MIDNIGHT + 1)
    assert used(counters) == 1


def test_uncounted_typing_is_charged_as_one_search(counters: CounterStore) -> None:
    for number, intent in enumerate((HARBOR, HARBOR_CRUISE)):
        counters.settle(UncountedSearch(1, 7, NOW + number, intent), once=f"settled {number}", now=NOW + 60)
    assert used(counters) == 1
    going_on = counters.consume([], reserve=GATEWAY, intent=HARBOR_CRUISE, now=NOW + 5)
    assert going_on.continues
    for number in range(3):
        assert going_on.reservation is not None
        counters.settle(going_on.reservation, once=f"failed {number}", now=NOW + 60)
    assert used(counters) == 0, "every part of the request failed"


def test_settlement_key_does_not_collide_with_the_key_of_a_report(counters: CounterStore) -> None:
    counters.settle(UncountedSearch(1, None, NOW), once="k", now=NOW)
    idempotency = IdempotencyKey("k", "a")
    told = counters.report_usage(1, 7, "search", 5, capped=False, idempotency=idempotency, now=NOW)
    assert told == (ReportStatus.RECORDED, 6)


def test_indexing_is_recorded_without_a_charge(counters: CounterStore) -> None:
    counters.report_usage(1, 7, "indexing", 40, capped=True, now=NOW)
    outcome = counters.report_usage(1, 7, "indexing", 2, capped=False, now=NOW)
    assert outcome == (ReportStatus.RECORDED, 0)
    assert counters.usage_of_day(1, TODAY) == DayUsage(TODAY, 0, 42)


def test_repeated_report_is_ignored_for_a_day(counters: CounterStore) -> None:
    def send(key: str, body: str, now: float, account: int = 1) -> tuple[ReportStatus, int]:
        return counters.report_usage(
            account, 7, "search", 5, capped=False, idempotency=IdempotencyKey(key, body), now=now
        )

    noon = MIDNIGHT + 12 * 3600
    assert send("k", "a", noon) == (ReportStatus.RECORDED, 5)
    assert send("k", "a", noon + 1) == (ReportStatus.DUPLICATE, 5)
    assert send("k", "b", noon + 1) == (ReportStatus.CONFLICT, 5)
    assert send("l", "a", noon + 1) == (ReportStatus.RECORDED, 10)
    assert send("k", "a", noon + 1, account=2) == (ReportStatus.RECORDED, 5)
    assert send("k", "a", noon + 86_399) == (ReportStatus.DUPLICATE, 0)
    assert send("k", "b", noon + 86_400) == (ReportStatus.RECORDED, 5)
    assert send("k", "b", noon + 86_401) == (ReportStatus.DUPLICATE, 5)


def test_usage_is_kept_for_two_calendar_months(counters: CounterStore) -> None:
    for back in (62, 31, 1, 0):
        counters.report_usage(1, 7, "search", back + 1, capped=False, now=NOW - back * 86_400)
    counters.consume([], reserve=SEARCH, now=NOW)
    days = counters.usage_between(1, TODAY - timedelta(days=62), TODAY)
    assert [(usage.day, usage.used) for usage in days] == [
        (TODAY - timedelta(days=62), 63),
        (TODAY - timedelta(days=31), 32),
        (TODAY - timedelta(days=1), 2),
        (TODAY, 2),
    ]
    assert counters.usage_between(1, date(2023, 11, 1), date(2023, 11, 13)) == [days[2]]
    assert counters.usage_between(2, date(2023, 11, 1), date(2023, 11, 30)) == []


def test_range_of_usage_days_is_limited(counters: CounterStore) -> None:
    with pytest.raises(ValueError, match="400 days"):
        counters.usage_between(1, date(2020, 1, 1), date(2023, 1, 1))


def test_searches_of_a_deleted_site_stay_charged(counters: CounterStore) -> None:
    counters.consume([], reserve=GATEWAY, now=NOW)
    report(counters, 4)
    report(counters, 2, site=8)
    counters.forget_site(1, 7, now=NOW)
    assert used(counters) == 6
    again = counters.consume([], reserve=GATEWAY._replace(daily_limit=None), now=NOW)
    assert again.used_today == 7, "no report of it may remain"


def test_deleted_account_leaves_no_usage_or_report_keys(counters: CounterStore) -> None:
    idempotency = IdempotencyKey("k", "a")
    counters.consume([], reserve=GATEWAY, now=NOW)
    counters.report_usage(1, 7, "search", 5, capped=False, idempotency=idempotency, now=NOW)
    counters.report_usage(2, 9, "search", 5, capped=False, idempotency=idempotency, now=NOW)
    counters.forget_account(1, now=NOW)
    assert counters.usage_between(1, TODAY - timedelta(days=62), TODAY) == []
    assert counters.consume([], reserve=GATEWAY, now=NOW).used_today == 1
    again = counters.report_usage(1, 7, "search", 5, capped=False, idempotency=idempotency, now=NOW)
    assert again.status is ReportStatus.RECORDED
    assert used(counters, 2) == 5


counts = st.integers(0, 60)


@given(gateway=counts, trusted=counts, capped=counts)
def test_capped_reports_add_at_most_ten_to_the_charge(gateway: int, trusted: int, capped: int) -> None:
    charge = charge_of_site(gateway, trusted, capped)
    assert max(gateway, trusted) <= charge <= max(gateway, trusted) + 10
    assert charge <= max(gateway, trusted + capped)
    if trusted + capped - max(gateway, trusted) <= 10:
        assert charge == max(gateway, trusted + capped)


@given(gateway=counts, trusted=counts, capped=counts)
def test_charge_never_decreases_when_a_count_grows(gateway: int, trusted: int, capped: int) -> None:
    charge = charge_of_site(gateway, trusted, capped)
    assert 0 <= charge_of_site(gateway + 1, trusted, capped) - charge <= 1
    assert 0 <= charge_of_site(gateway, trusted + 1, capped) - charge <= 1
    assert 0 <= charge_of_site(gateway, trusted, capped + 1) - charge <= 1


@given(st.dates(date(1970, 1, 1), date(2200, 1, 1)))
def test_days_are_numbered_from_1970(day: date) -> None:
    assert day_from_number(day_number(day)) == day
    assert day_of(day_number(day) * 86_400.0) == day
