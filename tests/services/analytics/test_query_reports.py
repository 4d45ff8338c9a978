"""Analytics of one query."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import orjson
import pytest
from sqlalchemy import insert

from app.errors import ApiError
from app.models import StoredDocument
from app.services.analytics import query_reports
from app.services.analytics.events import Click, EventRecorder, SearchEvent
from app.services.analytics.query_reports import (
    ClickedAnchor,
    ClickedDocument,
    QueryAnalytics,
    get_query_analytics,
)
from app.storage.database import Database

from .conftest import TODAY, click, search

DAY_SECONDS = 86_400
Report = Callable[..., QueryAnalytics]


@pytest.fixture
def report(database: Database, recorder: EventRecorder) -> Report:
    """Record events, and report on a query of the first site."""

    def report(*events: SearchEvent | Click, query: str = "docs", days: int = 7, site_id: int = 1) -> QueryAnalytics:
        for event in events:
            recorder.record(event)
        recorder.flush()
        with database.read() as session:
            return get_query_analytics(session, 1, site_id, query, days, TODAY)

    return report


def test_query_without_searches_has_zero_counts_and_a_full_series(report: Report) -> None:
    told = report(search("other"), click("other"), days=30)

    assert (told.query, told.searches, told.clicks) == ("docs", 0, 0)
    assert told.click_through_rate is None
    assert told.average_click_position is None
    assert told.clicked_documents == []
    assert [day.date for day in told.series] == [TODAY - timedelta(days=back) for back in range(29, -1, -1)]
    assert {(day.searches, day.zero_results, day.clicks) for day in told.series} == {(0, 0, 0)}


def test_query_report_counts_searches_and_clicks_of_the_period_per_day_and_document(report: Report) -> None:
    week = 6 * DAY_SECONDS
    told = report(
        *(search(seconds=-back * DAY_SECONDS) for back in (0, 0, 6, 7)),
        search(results=0),
        search(site_id=2),
        click("docs", "b", search_key=1, position=1),
        click("docs", "b", search_key=2, position=4),
        click("docs", "a", search_key=2, position=2, seconds=-week),
        click("docs", "c", search_key=3, position=None),
        click("docs", "z", search_key=4, seconds=-week - DAY_SECONDS),
        click("docs", "z", search_key=4, site_id=2),
        click("docs and", "z", search_key=5),
        query="  DOCS ",
    )

    assert (told.query, told.searches, told.clicks) == ("docs", 4, 4)
    assert told.click_through_rate == 3 / 4
    assert told.average_click_position == 7 / 3
    first, *_, last = told.series
    assert (first.searches, first.zero_results, first.clicks) == (1, 0, 1)
    assert (last.searches, last.zero_results, last.clicks) == (3, 1, 3)
    assert told.clicked_documents == [
        ClickedDocument("b", None, 2, 2.5),
        ClickedDocument("a", None, 1, 2.0),
        ClickedDocument("c", None, 1, None),
    ]


def test_query_report_lists_clicked_anchors_per_document(report: Report) -> None:
    week = 6 * DAY_SECONDS
    told = report(
        click("docs", "a", search_key=1, anchor="install"),
        click("docs", "a", search_key=2, anchor="setup", seconds=-week),
        click("DOCS", "a", search_key=3, anchor="setup"),
        click("docs", "a", search_key=4),
        click("docs", "a", search_key=5, anchor="gone", seconds=-week - DAY_SECONDS),
        click("docs", "a", search_key=6, anchor="elsewhere", site_id=2),
        click("other", "a", search_key=7, anchor="other"),
        click("docs", "b", search_key=1, anchor="größe"),
    )

    assert told.clicked_documents == [
        ClickedDocument("a", None, 4, 1.0, (ClickedAnchor("setup", 2), ClickedAnchor("install", 1))),
        ClickedDocument("b", None, 1, 1.0, (ClickedAnchor("größe", 1),)),
    ]


def test_second_click_on_a_page_of_one_search_is_ignored_even_with_another_anchor(report: Report) -> None:
    told = report(click(anchor="first", search_key=1), click(anchor="second", search_key=1), click(search_key=1))

    assert (told.clicks, told.clicked_documents[0].anchors) == (1, (ClickedAnchor("first", 1),))


def test_longest_query_document_id_and_anchor_of_a_click_can_be_stored(report: Report) -> None:
    query, document_id, anchor = "".join(chr(0x10000 + 7 * n) for n in range(128)), "é🚲" * 256, "🚲é" * 100

    told = report(click(query, document_id, anchor=anchor), query=query)

    assert [(document.id, document.anchors) for document in told.clicked_documents] == [
        (document_id, (ClickedAnchor(anchor, 1),))
    ]


def test_clicked_documents_have_the_current_titles_of_the_sites_own_documents(
    database: Database, report: Report
) -> None:
    rows = [
        (1, "there", {"id": "there", "title": "Here I am"}),
        (1, "deleted", None),
        (2, "elsewhere", {"id": "elsewhere", "title": "Of another site"}),
    ]
    with database.write() as session:
        for site_id, document_id, document in rows:
            body = None if document is None else orjson.dumps(document)
            session.execute(
                insert(StoredDocument).values(site_id=site_id, id=document_id, revision=1, changed_at=1, body=body)
            )

    told = report(*(click(document_id=document_id) for _, document_id, _ in rows))

    assert {document.id: document.title for document in told.clicked_documents} == {
        "there": "Here I am",
        "deleted": None,
        "elsewhere": None,
    }


def test_clicked_documents_are_limited_and_sorted_by_clicks_then_code_point(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_reports, "MAX_CLICKED_DOCUMENTS", 4)
    ids = ["é", "a", "Z", "b", "-", "a b"]

    told = report(*(click(document_id=document_id) for document_id in ids), click(document_id="é", search_key=2))

    assert [document.id for document in told.clicked_documents] == ["é", "-", "Z", "a"]


@pytest.mark.parametrize("site_id", [3, 4, 0, -1])
def test_query_report_of_another_accounts_site_returns_404(report: Report, site_id: int) -> None:
    with pytest.raises(ApiError) as caught:
        report(search(site_id=3), site_id=site_id)
    assert caught.value.status == 404


def test_query_report_with_zero_days_raises_value_error(report: Report) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        report(days=0)
