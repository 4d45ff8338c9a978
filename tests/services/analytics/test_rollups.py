"""Reports stay exact from one day to the next, including late events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest

from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_ingestion import ingest
from app.services.analytics.reports import get_analytics
from app.storage.database import Database

from .conftest import MOMENT, SITES, TODAY, click, search
from .oracle import Event, count
from .test_reports import PERIODS, assert_counted, entry

TODAY_NUMBER = to_microseconds(MOMENT) // DAY_MICROSECONDS
DAY_SECONDS = 86_400
QUERIES = ("a", "b", "c", "d", "e")

Arrive = Callable[..., list[Event]]


@pytest.fixture
def arrive(database: Database) -> Arrive:
    """Move events to SQL. Returns all events so far."""
    arrived: list[Event] = []

    def arrive(*events: Event) -> list[Event]:
        with database.write() as session:
            ingest(session, [entry(event, len(arrived)) for event in events], TODAY_NUMBER)
        arrived.extend(events)
        return arrived

    return arrive


def full_days(period: int) -> list[Event]:
    """Five queries on the first two days and the last day of a period, on two sites of an account; some with clicks."""
    searches: list[Event] = [
        search(query, site_id=site_id, seconds=-days * DAY_SECONDS, results=number % 2)
        for days in (period - 1, period - 2, 0)
        for site_id in (1, 2)
        for number, query in enumerate(QUERIES)
    ]
    clicks = [
        click(query, site_id=site_id, seconds=-days * DAY_SECONDS, search_key=1000 * period + 10 * days + site_id)
        for query, days in (("b", period - 1), ("d", period - 2), ("d", 0), ("gone", period - 1))
        for site_id in (1, 2)
    ]
    return [*searches, *clicks]


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("days", [-8, -1, 0, 1, 2, 40])
def test_late_events_count_on_the_day_they_occurred(database: Database, arrive: Arrive, period: int, days: int) -> None:
    arrive(*full_days(period))
    late = [
        search(query, seconds=-back * DAY_SECONDS, results=0) for query in "abcde" for back in (period, period - 1, 0)
    ]
    assert_counted(database, arrive(*late), set(SITES), TODAY + timedelta(days=days))


@pytest.mark.parametrize("limit", [2, 10, 100])
def test_queries_whose_clicks_precede_the_period_are_listed_as_without_clicks(
    database: Database, arrive: Arrive, limit: int
) -> None:
    queries = [f"q{n:03}" for n in range(90)]
    arrived = arrive(
        *(search(query) for number, query in enumerate(queries) for _ in range(1 + number % 4)),
        *(click(query, seconds=-6 * DAY_SECONDS, search_key=n) for n, query in enumerate(queries) if n % 3),
        *(search(query, seconds=-6 * DAY_SECONDS, results=0) for query in queries[::2]),
    )
    assert_counted(database, arrived, set(SITES), TODAY + timedelta(days=1))
    with database.read() as session:
        found = get_analytics(session, 1, 7, site_id=1, today=TODAY + timedelta(days=1), limit=limit)
    assert found.no_click_queries == count(arrived, {1}, 7, TODAY + timedelta(days=1), limit=limit).no_click_queries
    assert len(found.no_click_queries) == min(limit, len(queries))


def test_tomorrows_events_are_not_counted_today(database: Database, arrive: Arrive) -> None:
    arrived = arrive(
        search("today"), search("both"), search("both", seconds=DAY_SECONDS), search("late", seconds=DAY_SECONDS)
    )
    assert_counted(database, arrived, set(SITES), TODAY)
    assert_counted(database, arrived, set(SITES), TODAY + timedelta(days=1))


def test_top_queries_stay_exact_when_the_day_with_most_searches_leaves_the_period(
    database: Database, arrive: Arrive
) -> None:
    gone = [search(f"q{n:03}", seconds=-6 * DAY_SECONDS) for n in range(200) for _ in range(3)]
    arrived = arrive(*gone, *(search(f"q{n:03}") for n in range(150, 200) for _ in range(1 + n % 3)), search("zzz"))
    assert_counted(database, arrived, set(SITES), TODAY + timedelta(days=1))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("first", "second", "counted"), [("a", "ab", {"ab"}), ("ab", "a", {"a", "ab"})])
def test_later_arrival_replaces_its_prefix_even_at_the_same_time(
    database: Database, arrive: Arrive, first: str, second: str, counted: set[str], together: bool
) -> None:
    entries = [search(first, session_id="s"), search(second, session_id="s")]
    for batch in [entries] if together else [[event] for event in entries]:
        arrived = arrive(*batch)
    with database.read() as session:
        found = get_analytics(session, 1, 7, today=TODAY)
    assert {item.query for item in found.top_queries} == counted
    assert_counted(database, arrived, set(SITES), TODAY)


@pytest.mark.parametrize(("gap", "searches"), [(30, 1), (30.000001, 2)])
def test_longer_query_replaces_its_prefix_within_thirty_seconds(
    database: Database, arrive: Arrive, gap: float, searches: int
) -> None:
    arrive(search("a", session_id="s", seconds=gap - 30), search("ab", session_id="s", seconds=2 * gap - 30))
    with database.read() as session:
        assert get_analytics(session, 1, 7, today=TODAY).total_searches == searches


def test_late_keystroke_event_corrects_earlier_merging(database: Database, arrive: Arrive) -> None:
    def counted() -> list[tuple[str, int]]:
        with database.read() as session:
            return [(item.query, item.count) for item in get_analytics(session, 1, 7, today=TODAY).top_queries]

    arrive(search("a", session_id="s", seconds=0), search("abc", session_id="s", seconds=20))
    assert counted() == [("abc", 1)]
    arrive(search("x", session_id="s", seconds=10))  # Between the two: now neither follows the other directly.
    assert counted() == [("a", 1), ("abc", 1), ("x", 1)]
    arrive(search("ab", session_id="s", seconds=5), search("abc", session_id="t", seconds=25))
    assert counted() == [("abc", 2), ("ab", 1), ("x", 1)]


def test_late_events_at_both_ends_of_a_session_keep_the_merging_between_them(
    database: Database, arrive: Arrive
) -> None:
    arrive(search("ab", session_id="s", seconds=15), search("ab c", session_id="s", seconds=30))

    arrived = arrive(search("a b", session_id="s", seconds=-1), search("e", session_id="s", seconds=61))

    assert_counted(database, arrived, set(SITES), TODAY)


def test_query_lists_are_sorted_by_count_then_code_point(database: Database, arrive: Arrive) -> None:
    texts = ["b", "a-b", "ab", "a b", "é", "z", "\U0001f600", "日", "ä", "_", "1", "-"]
    arrive(*(search(text, results=0) for text in texts), search("z", results=0))
    expected = [("z", 2), *((text, 1) for text in sorted(set(texts) - {"z"})[:9])]
    with database.read() as session:
        found = get_analytics(session, 1, 7, today=TODAY)
    assert [(item.query, item.count) for item in found.top_queries] == expected
    assert [(item.query, item.count) for item in found.zero_result_queries] == expected


def test_account_without_events_has_zero_counts_and_a_full_series(database: Database) -> None:
    with database.read() as session:
        found = get_analytics(session, 2, 30, today=TODAY)
    assert (found.total_searches, found.unique_queries, found.totals.avg_response_time_ms) == (0, 0, 0)
    assert (found.top_queries, found.zero_result_queries) == ([], [])
    assert [day.date for day in found.series] == [TODAY - timedelta(days=n) for n in range(29, -1, -1)]
    assert {(day.searches, day.zero_results) for day in found.series} == {(0, 0)}


def test_analytics_with_zero_days_raise_value_error(database: Database) -> None:
    with database.read() as session, pytest.raises(ValueError, match="at least 1"):
        get_analytics(session, 1, 0, today=date(2026, 3, 10))
