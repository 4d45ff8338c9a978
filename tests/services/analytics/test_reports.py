"""Analytics equal a full recount for any events in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.models import QueryDay
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS, VISITOR_KINDS
from app.services.analytics.event_ingestion import ingest
from app.services.analytics.events import Click, SearchEvent
from app.services.analytics.reports import get_analytics
from app.storage.database import Database

from .conftest import MOMENT, SITES, delete_site, start_afresh
from .oracle import Event, count, visitors

MIDNIGHT = MOMENT.replace(hour=0)
PERIODS = (7, 30, 90)
QUERIES = ("a", "ab", "abc", " A  B", "ab c", "b", "B", "ba", "é", "e\u0301", "E", "Z", "zz", "日本", "-", "\U0001f600")


@dataclass(frozen=True)
class PassDays:
    """Moves the clock by a number of days, which is negative for a machine with a slow clock."""

    days: int


@dataclass(frozen=True)
class DeleteSite:
    """A site is deleted with its events."""

    site_id: int


keystrokes = st.builds(
    SearchEvent,
    site_id=st.sampled_from([1, 1, 1, 2]),
    query=st.sampled_from(["a", "ab", "abc", " A  B", "ab c", "b", "é", "e\u0301", "E"]),
    results_count=st.sampled_from([0, 1]),
    occurred_at=st.builds(
        lambda seconds: MIDNIGHT + timedelta(seconds=seconds),
        st.sampled_from([-60, -31, -30, -15, -1, -0.000001, 0, 0, 0.000001, 15, 29, 30, 30.000001, 31]),
    ),
    session_id=st.sampled_from(["s", "s", "s", "t"]),
    response_ms=st.sampled_from([None, 0, 3, 10]),
    matched=st.sampled_from([None, "all", "some"]),
    visitor=st.sampled_from([None, 1, 1, -2]),
    channel=st.sampled_from([None, "box", "box", "gateway", "agent"]),
    page=st.sampled_from([None, "/", "/docs/", "/é"]),
    mixed=st.booleans(),
)
moments = st.builds(
    lambda days: MOMENT - timedelta(days=days),
    st.sampled_from([-1, 0, 1, 5, 6, 6, 7, 13, 28, 29, 29, 30, 88, 89, 89, 90, 95, 179, 180]),
)
spread = st.builds(
    SearchEvent,
    site_id=st.sampled_from([1, 1, 2, 3]),
    query=st.sampled_from(QUERIES),
    results_count=st.sampled_from([0, 0, 1, 7]),
    occurred_at=moments,
    session_id=st.none(),
    response_ms=st.none(),
    matched=st.sampled_from([None, "some", "corrected"]),
    visitor=st.sampled_from([None, 1, 1, -2, 2**63 - 1]),
    channel=st.sampled_from([None, "api", "box", "agent"]),
    page=st.sampled_from([None, "/", "/docs/", "/Z"]),
    mixed=st.booleans(),
)
clicks = st.builds(
    Click,
    site_id=st.sampled_from([1, 1, 2, 3]),
    search_key=st.integers(1, 20),
    query=st.sampled_from(QUERIES),
    document_id=st.sampled_from(["x", "y"]),
    position=st.sampled_from([None, 1, 2, 30]),
    occurred_at=moments,
    channel=st.sampled_from([None, "api", "box"]),
)
arrivals = st.lists(keystrokes, min_size=1, max_size=6) | st.lists(spread | spread | clicks, min_size=8, max_size=30)
passing = st.builds(PassDays, st.sampled_from([-1, 1, 1, 1, 2, 7, 40]))
deletion = st.builds(DeleteSite, st.sampled_from(sorted(SITES)))
actions = st.lists(
    st.sampled_from([arrivals, arrivals, arrivals, passing, deletion]).flatmap(lambda kind: kind),
    min_size=4,
    max_size=16,
)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example([[SearchEvent(1, "a", 0, MIDNIGHT, None, None, channel="agent")]])
@example(
    [
        [
            SearchEvent(1, "a", 1, MOMENT, None, None, channel="box"),
            *(Click(site, 1, "a", "x", None, MOMENT, channel="box") for site in (1, 2)),
        ]
    ]
)
@given(actions)
def test_analytics_equal_a_full_recount_after_any_sequence_of_events(
    module_database: Database, actions: list[object]
) -> None:
    database = module_database
    start_afresh(database)
    arrived: list[Event] = []
    deleted: set[int] = set()
    today = latest = MOMENT.date()
    for number, action in enumerate(actions):
        day_number = (today - MOMENT.date()).days + to_microseconds(MOMENT) // DAY_MICROSECONDS
        match action:
            case PassDays(days):
                today += timedelta(days=days)
                latest = max(latest, today)
            case DeleteSite(site_id):
                delete_site(database, site_id)
                deleted.add(site_id)
            case list(batch):
                with database.write() as session:
                    dropped = ingest(session, [entry(event, number) for event in batch], day_number)
                assert dropped == sum(event.site_id in deleted for event in batch)
                arrived += batch
        if not isinstance(action, list) or number == len(actions) - 1:
            living = [event for event in arrived if event.site_id not in deleted]
            assert_counted(database, living, set(SITES) - deleted, today)
            assert_visitors_counted(database, living, latest)


def assert_counted(database: Database, living: list[Event], site_ids: set[int], today: date) -> None:
    """Assert that every period of every account and site equals a full recount."""
    with database.read() as session:
        for period in PERIODS:
            for account_id in set(SITES.values()):
                own = {site for site, owner in SITES.items() if owner == account_id}
                assert get_analytics(session, account_id, period, today=today) == count(living, own, period, today)
                assert get_analytics(session, account_id, period, today=today, limit=2) == count(
                    living, own, period, today, limit=2
                )
                for days, channel in ((period, "box"), (period + 3, None), (2, "agent")):
                    assert get_analytics(
                        session, account_id, days, today=today, channel=channel, details=True, limit=3
                    ) == count(living, own, days, today, channel=channel, details=True, limit=3)
                for site_id in own & site_ids:
                    assert get_analytics(session, account_id, period, site_id=site_id, today=today) == count(
                        living, {site_id}, period, today
                    )


def assert_visitors_counted(database: Database, living: list[Event], today: date) -> None:
    """Assert that the visitors of the days of every period add up to the distinct ones, for each query and site."""
    last = to_microseconds(datetime.combine(today, time(), UTC)) // DAY_MICROSECONDS
    with database.read() as session:
        for period in PERIODS:
            rows = session.execute(
                select(QueryDay.site_id, QueryDay.query, *(func.sum(getattr(QueryDay, kind)) for kind in VISITOR_KINDS))
                .where(QueryDay.day > last - period)
                .group_by(QueryDay.site_id, QueryDay.query)
            ).all()
            for site_id, query, *counted in rows:
                assert counted == visitors(living, site_id, query, today - timedelta(days=period - 1)), query


def entry(event: Event, recorded_at: int) -> Event:
    """Return an event as read from a journal."""
    return event if isinstance(event, Click) else replace(event, recorded_at=recorded_at)
