"""Parsing of column maps, which assign columns to fields."""

from __future__ import annotations

import time

import pytest

from app.importers.fields import ColumnMap, fields_of_columns, read_column_map
from app.importers.records import UnreadableFile
from backends.standard_fields import REQUIRED_FIELDS


@pytest.mark.parametrize(
    "text",
    [
        "title=Headline,url=Link, to here,=Notes",
        "title = Headline\nurl = Link, to here\n\n= Notes\n",
        " title=Headline , url=Link, to here , =Notes ",
    ],
)
def test_pairs_are_separated_by_commas_or_lines_and_columns_may_contain_commas(text: str) -> None:
    assert read_column_map(text) == ColumnMap({"title": "Headline", "url": "Link, to here"}, frozenset({"Notes"}))


def test_column_name_may_contain_equals_signs_and_fill_two_fields() -> None:
    assert read_column_map("a=x=y,b=x=y").columns == {"a": "x=y", "b": "x=y"}


def test_empty_text_yields_an_empty_map() -> None:
    assert read_column_map("") == read_column_map(" \n") == ColumnMap()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Headline", "must consist of field=column, not 'Headline'"),
        ("title=", "must consist of field=column, not 'title='"),
        ("1st=x", "contains '1st', which is not a valid field name"),
        ("title=a,title=b", "fills the field 'title' twice"),
    ],
)
def test_invalid_pair_is_rejected_with_its_problem(text: str, problem: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_column_map(text)

    assert (caught.value.field, str(caught.value.problem)) == ("map", problem)


def test_long_runs_of_blanks_and_many_entries_take_linear_time() -> None:
    columns = [f"c{number}" for number in range(20_000)]
    entries = ",".join(f"f{column}={column}" for column in columns)
    required = [*REQUIRED_FIELDS, *columns]
    begun = time.process_time()
    fields = fields_of_columns(required, read_column_map(entries))
    assert read_column_map("title=Headline," + " " * 100_000).columns == {"title": "Headline,"}
    assert time.process_time() - begun < 2
    assert fields == [[name] for name in REQUIRED_FIELDS] + [[f"f{column}"] for column in columns]
