"""Clicks are assigned to searches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.services.analytics.clicks import make_click, make_query_id
from app.services.analytics.event_lines import Click

from .conftest import MOMENT

SECRET = "s" * 40


def click(**wish: Any) -> Click:
    """Return a click on one document at the frozen moment."""
    fields = {"query_id": None, "query": None, "session_id": None, "position": None, "moment": MOMENT, **wish}
    made = make_click(SECRET, 1, "page-1", **fields)
    assert made is not None
    return made


def test_query_id_determines_the_search_and_query_of_a_click() -> None:
    one, other = (make_query_id(SECRET, 1, "Harbor", MOMENT) for _ in range(2))

    first = click(query_id=one, query="elsewhere", session_id="s", position=3)

    assert (first.query, first.document_id, first.position) == ("harbor", "page-1", 3)
    assert click(query_id=one, moment=MOMENT + timedelta(hours=20)).search_key == first.search_key
    assert click(query_id=other).search_key != first.search_key


def test_clicks_without_query_id_belong_to_one_search_per_session_query_and_half_day() -> None:
    first = click(query=" Harbor ", session_id="s")

    assert first.query == "harbor"
    assert click(query="harbor", session_id="s", moment=MOMENT + timedelta(hours=11)).search_key == first.search_key
    others = [
        click(query="harbor", session_id="s", moment=MOMENT + timedelta(hours=12)),
        click(query="harbor", session_id="t"),
        click(query="harbors", session_id="s"),
        click(query="harbor"),
        click(query="harbor", session_id=""),
    ]
    assert len({first.search_key, *(other.search_key for other in others)}) == 6


def test_clicks_on_a_match_all_listing_are_not_recorded() -> None:
    for query in ("*", " * "):
        fields = {"session_id": None, "position": None, "moment": MOMENT}
        assert make_click(SECRET, 1, "page-1", query_id=None, query=query, **fields) is None
        query_id = make_query_id(SECRET, 1, query, MOMENT)
        assert make_click(SECRET, 1, "page-1", query_id=query_id, query="harbor", **fields) is None
