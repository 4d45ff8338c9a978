"""Each click counts once, and each search with clicks once."""

from __future__ import annotations

import pytest

from app.services.analytics.events import Click, EventRecorder
from app.services.analytics.reports import get_analytics
from app.storage.database import Database

from .conftest import TODAY, click, delete_site, search

TWICE = [
    click("a", "x", search_key=1, position=2),
    click("a", "y", search_key=1, position=None),
    click("A ", "x", search_key=1, position=9),
    click("a", "x", search_key=2, position=5),
    click("a", "x", search_key=1, position=2, seconds=3600),
]


def told(database: Database, account_id: int = 1) -> tuple[int, int, int, int]:
    with database.read() as session:
        totals = get_analytics(session, account_id, 7, today=TODAY).totals
    return totals.clicks, totals.clicked_searches, totals.positioned_clicks, totals.click_positions


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("events", [TWICE, [TWICE[1], TWICE[0], *TWICE[2:]]])
def test_repeated_click_on_a_document_of_one_search_counts_once(
    database: Database, recorder: EventRecorder, events: list[Click], together: bool
) -> None:
    for event in events:
        recorder.record(event)
        if not together:
            recorder.flush()
    recorder.flush()

    assert told(database) == (3, 2, 2, 2 + 5)


def test_clicks_are_counted_separately_per_site_and_account(database: Database, recorder: EventRecorder) -> None:
    for site_id in (1, 2, 3):
        recorder.record(click("a", "x", site_id=site_id, search_key=1))
    recorder.flush()

    assert told(database) == (2, 2, 2, 2)
    assert told(database, 2) == (1, 1, 1, 1)


def test_query_with_clicks_but_no_searches_is_not_listed(database: Database, recorder: EventRecorder) -> None:
    recorder.record(click("clicked"))
    recorder.record(search("searched"))
    recorder.flush()

    with database.read() as session:
        found = get_analytics(session, 1, 7, today=TODAY)
    assert [item.query for item in found.top_queries] == [item.query for item in found.no_click_queries] == ["searched"]
    assert (found.unique_queries, found.totals.clicks, found.totals.click_through_rate) == (1, 1, 1.0)


def test_clicks_of_a_deleted_site_are_dropped(database: Database, recorder: EventRecorder) -> None:
    recorder.record(click(site_id=1))
    recorder.record(click(site_id=2))
    delete_site(database, 1)
    recorder.flush()

    assert told(database) == (1, 1, 1, 1)
