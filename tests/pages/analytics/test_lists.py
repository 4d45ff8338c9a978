"""Long lists of queries are sorted and paginated by URL parameters."""

from __future__ import annotations

import pytest
from flask import Flask

from app.pages.analytics.lists import KINDS, LongList, make_list
from app.services.analytics.reports import QueryCount

APP = Flask(__name__)
ITEMS = [
    QueryCount("b", 5, clicks=1, clicked_searches=1, positioned_clicks=1, click_positions=4, searches=5),
    QueryCount("a", 5, clicks=3, clicked_searches=2, positioned_clicks=2, click_positions=2, searches=5),
    QueryCount("c", 9, searches=9),
]


def shown(query: str, items: list[QueryCount] = ITEMS) -> LongList:
    with APP.test_request_context(f"/api/analytics?{query}"):
        return make_list(items, KINDS[0], {"period": "7d"})


@pytest.mark.parametrize(
    ("sort", "queries", "column", "order"),
    [
        ("", "cab", "count", "descending"),
        ("count", "cab", "count", "descending"),
        ("-count", "abc", "count", "ascending"),
        ("query", "abc", "query", "ascending"),
        ("-query", "cba", "query", "descending"),
        ("clicks", "abc", "clicks", "descending"),
        ("click_through_rate", "abc", "click_through_rate", "descending"),
        ("average_click_position", "abc", "average_click_position", "ascending"),
        ("-average_click_position", "cba", "average_click_position", "descending"),
        ("nonsense", "cab", "count", "descending"),
    ],
)
def test_list_can_be_sorted_by_any_column(sort: str, queries: str, column: str, order: str) -> None:
    told = shown(f"sort={sort}")

    assert [item.query for item in told.items] == list(queries)
    assert {each.name: each.order for each in told.columns if each.order} == {column: order}


def test_column_heading_links_sort_by_the_column_and_reverse_the_order() -> None:
    addresses = {each.name: each.address for each in shown("sort=clicks").columns}

    assert addresses["count"] == "?period=7d&list=top_queries&sort=count"
    assert addresses["clicks"] == "?period=7d&list=top_queries&sort=-clicks"
    assert {each.name: each.address for each in shown("sort=-clicks").columns}["clicks"].endswith("sort=clicks")


MANY = [QueryCount(f"query {number:03}", 1) for number in range(120)]


@pytest.mark.parametrize(
    ("page", "first", "length"),
    [
        ("", 1, 50),
        ("1", 1, 50),
        ("2", 51, 50),
        ("3", 101, 20),
        ("4", 101, 20),
        ("0", 1, 50),
        ("x", 1, 50),
        ("²", 1, 50),
    ],
)
def test_list_is_paginated_and_invalid_page_numbers_are_corrected(page: str, first: int, length: int) -> None:
    told = shown(f"page={page}&sort=-query", MANY)

    assert (told.first, len(told.items), told.total) == (first, length, 120)
    assert bool(told.previous) is (first > 1)
    assert bool(told.next) is (first < 101)
    if told.next:
        assert told.next == f"?period=7d&list=top_queries&sort=-query&page={2 if first == 1 else 3}"
