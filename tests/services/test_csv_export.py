"""The table is CSV that a spreadsheet opens without running anything."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date

import pytest

from app.services.analytics.reports import QueryCount
from app.services.csv_export import encode_csv
from tests.services.analytics.oracle import count

HEADER = ["list", "query", "count", "clicks", "click_through_rate", "average_click_position"]


def table(*queries: QueryCount) -> list[list[str]]:
    analytics = replace(count([], {1}, 7, date(2026, 3, 10)), top_queries=queries, no_click_queries=queries[:1])
    return list(csv.reader(io.StringIO(encode_csv(analytics), newline="")))


def test_each_query_of_each_list_is_a_line() -> None:
    lines = table(QueryCount('a, "b"', 4, 3, 1, 2, 5, 4), QueryCount("c", 2))

    assert lines == [
        HEADER,
        ["top_queries", 'a, "b"', "4", "3", "0.25", "2.5"],
        ["top_queries", "c", "2", "0", "", ""],
        ["no_click_queries", 'a, "b"', "4", "3", "0.25", "2.5"],
    ]


def test_lines_end_as_rfc_4180_says() -> None:
    assert encode_csv(count([], {1}, 7, date(2026, 3, 10))) == ",".join(HEADER) + "\r\n"


@pytest.mark.parametrize("query", ["=1+1", "+1", "-1", "@sum(a1)", "=cmd|' /c calc'!a0", "\uff1d1", "\uff0d1"])
def test_what_looks_like_a_formula_begins_with_an_apostrophe(query: str) -> None:
    assert table(QueryCount(query, 1))[1][1] == "'" + query


@pytest.mark.parametrize("query", ["a=b", "c++", "1-2", "me@example.com", "日本"])
def test_other_queries_stay_as_they_are(query: str) -> None:
    assert table(QueryCount(query, 1))[1][1] == query
