"""Visitors of a query are counted exactly, also when keystrokes are merged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from sqlalchemy import func, select, update

from app.models import QueryDay, QueryVisit, SearchEvent
from app.services.analytics.events import EventRecorder
from app.services.analytics.events import SearchEvent as Search
from app.storage.database import Database

from .conftest import MOMENT, search

DAY_SECONDS = 86_400


@pytest.fixture(autouse=True)
def today() -> Iterator[None]:
    """Freeze the time; visitors are distinguished in the days before."""
    with time_machine.travel(MOMENT, tick=False):
        yield


def visitors(database: Database, query: str) -> tuple[int, int]:
    """Return the number of visitors with results and without."""
    with database.read() as session:
        days = session.execute(
            select(func.sum(QueryDay.found_visitors), func.sum(QueryDay.missed_visitors)).where(QueryDay.query == query)
        ).one()
    return int(days[0] or 0), int(days[1] or 0)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("events", "counted"),
    [
        ([search("a"), search("a", results=0)], (0, 0)),
        ([search("a", session_id="s", seconds=100 * n) for n in range(3)], (1, 0)),
        ([search("a", session_id=name) for name in "stu"], (3, 0)),
        ([search("a", session_id="s", results=n, seconds=100 * n) for n in range(2)], (1, 1)),
        ([search("a", session_id="s", seconds=-DAY_SECONDS * n) for n in range(3)], (1, 0)),
        ([search("a", session_id="s"), search("ab", session_id="s", seconds=5)], (0, 0)),
        ([search("a", session_id="s"), search("a", session_id="s", seconds=5)], (1, 0)),
        ([search("a", session_id="s", results=0), search("a", session_id="s", seconds=5)], (1, 0)),
        (
            [search("a", session_id="s", seconds=s) for s in (0, 40)] + [search("ab", session_id="s", seconds=50)],
            (1, 0),
        ),
        (
            [
                search("a", session_id="s", seconds=0),
                search("abc", session_id="s", seconds=20),
                search("x", session_id="s", seconds=10),
            ],
            (1, 0),
        ),
    ],
)
def test_visitor_of_a_query_is_counted_once_despite_repeats_days_and_merging(
    database: Database, recorder: EventRecorder, events: list[Search], counted: tuple[int, int], together: bool
) -> None:
    for event in events:
        recorder.record(event)
        if not together:
            recorder.flush()
    recorder.flush()

    assert visitors(database, "a") == counted


def test_merging_an_event_without_a_recorded_visit_does_not_reduce_the_visitor_count(
    database: Database, recorder: EventRecorder
) -> None:
    recorder.record(search("a", session_id="s"))
    recorder.flush()
    with database.write() as session:  # As a migration from version 1 leaves it.
        session.execute(QueryVisit.__table__.delete())
        session.execute(update(QueryDay).values(visitors=0, found_visitors=0))
    recorder.record(search("ab", session_id="s", seconds=5))
    recorder.flush()

    assert visitors(database, "a") == (0, 0)
    recorder.record(search("a", session_id="s", seconds=100))
    recorder.flush()
    assert visitors(database, "a") == (1, 0)
    with database.read() as session:
        assert session.scalars(select(QueryVisit.events)).all() == [1] * 4
        assert session.scalar(select(func.count()).select_from(SearchEvent)) == 3
