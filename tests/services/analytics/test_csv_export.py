"""The CSV export is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace
from datetime import date

import pytest

from app.services.analytics.reports import QueryCount, encode_csv
from tests.services.analytics.oracle import count

HEADER = ["list", "query", "count", "clicks", "click_through_rate", "average_click_position"]


def table(*queries: QueryCount) -> list[list[str]]:
    analytics = replace(count([], {1}, 7, date(2026, 3, 10)), top_queries=queries, no_click_queries=queries[:1])
    return list(csv.reader(io.StringIO(encode_csv(analytics), newline="")))


def test_csv_has_one_line_per_query_and_list() -> None:
    lines = table(QueryCount('a, "b"', 4, 3, 1, 2, 5, 4), QueryCount("c", 2))

    assert lines == [
        HEADER,
        ["top_queries", 'a, "b"', "4", "3", "0.25", "2.5"],
        ["top_queries", "c", "2", "0", "", ""],
        ["no_click_queries", 'a, "b"', "4", "3", "0.25", "2.5"],
    ]


def test_csv_lines_end_with_crlf() -> None:
    assert encode_csv(count([], {1}, 7, date(2026, 3, 10))) == ",".join(HEADER) + "\r\n"


@pytest.mark.parametrize("query", ["=1+1", "+1", "-1", "@sum(a1)", "=cmd|' /c calc'!a0", "\uff1d1", "\uff0d1"])
def test_formula_like_queries_are_prefixed_with_an_apostrophe(query: str) -> None:
    assert table(QueryCount(query, 1))[1][1] == "'" + query


@pytest.mark.parametrize(
    ("query", "cell"),
    [("a;=1+1", "a;'=1+1"), ("a; =1", "a;' =1"), ("a;b;-1", "a;b;'-1"), ("a\n=1", "a\n'=1"), (" =1", "' =1")],
)
def test_formulas_after_a_semicolon_or_line_break_are_prefixed_too(query: str, cell: str) -> None:
    assert table(QueryCount(query, 1))[1][1] == cell


def test_long_runs_of_separators_and_blanks_are_exported_in_linear_time() -> None:
    query = ";\n" * 100_000 + " " * 200_000
    begun = time.process_time()
    assert table(QueryCount(query, 1))[1][1] == query
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("query", ["a;b", "a=b", "c++", "1-2", "me@example.com", "日本"])
def test_other_queries_are_exported_unchanged(query: str) -> None:
    assert table(QueryCount(query, 1))[1][1] == query
