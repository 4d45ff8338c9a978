"""CSV in bulk requests and files."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import pytest

from app.importers.csv import MAX_COLUMNS, read_csv
from app.importers.records import MAX_RECORD_BYTES, BadLine, Record, UnreadableFile
from schemas.validation.problems import Problem


def read(text: str | bytes) -> list[Record | BadLine]:
    return list(read_csv(BytesIO(text.encode() if isinstance(text, str) else text)))


def documents(text: str | bytes) -> list[Any]:
    return [found.value for found in read(text) if isinstance(found, Record)]


def bad_lines(text: str | bytes) -> dict[int, str]:
    return {found.line: str(found.problem) for found in read(text) if isinstance(found, BadLine)}


def test_first_line_names_the_fields() -> None:
    text = '\ufeffid,title\r\n1,"Hello, ""you"""\r\n\r\n2,"Two\r\nlines"\r\n3,End'

    assert read(text) == [
        Record(2, {"id": "1", "title": 'Hello, "you"'}),
        Record(4, {"id": "2", "title": "Two\r\nlines"}),
        Record(6, {"id": "3", "title": "End"}),
    ]


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("id;title;url\r\n1;One, two;/a\r\n", {"id": "1", "title": "One, two", "url": "/a"}),
        ('\ufeff"id";"title";"price"\n"1";"One; two";"2,5"\n', {"id": "1", "title": "One; two", "price": "2,5"}),
        ("id\ttitle\n1\tOne, two; three\n", {"id": "1", "title": "One, two; three"}),
        ("id|title\n1|One\n", {"id": "1", "title": "One"}),
        ("sep=;\r\nid;title\r\n1;One\r\n", {"id": "1", "title": "One"}),
        ("sep=,\nid,a;b;c\n1,2\n", {"id": "1", "a;b;c": 2}),
        ('id;"price, net, of one";title\n1;2;One\n', {"id": "1", "price, net, of one": 2, "title": "One"}),
        ("id,title,a;b;c;d\n1,One,2\n", {"id": "1", "title": "One", "a;b;c;d": 2}),
        ("Name, first;Name, last\nAnn;Bee\n", {"Name, first": "Ann", "Name, last": "Bee"}),
        ('id;title;"two\nlines"\n1;One;2\n', {"id": "1", "title": "One", "two\nlines": 2}),
        ("id\n1;2\n", {"id": "1;2"}),
    ],
)
def test_delimiter_is_detected_in_the_first_line(text: str, document: dict[str, Any]) -> None:
    assert documents(text) == [document]


def test_lines_are_numbered_from_the_line_that_states_the_delimiter() -> None:
    assert list(bad_lines("sep=;\nid;title\n1;2;3\n")) == [3]


def test_empty_cell_omits_its_field_except_title_and_content() -> None:
    assert documents("id,title,content,excerpt,section\n1,,,,\n,,,,\n") == [{"id": "1", "title": "", "content": ""}]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("12", 12), ("-0.5", -0.5), ("1e3", 1000.0), ("true", True), ("false", False),
        ("012", "012"), ("1,5", "1,5"), ("+1", "+1"), ("1.", "1."), ("True", "True"), ("NaN", "NaN"), (" 1", " 1"),
        ("null", "null"), ("١", "١"), ("12345678901234567890", "12345678901234567890"), ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_json_numbers_and_booleans_in_custom_fields_are_converted(cell: str, value: Any) -> None:
    (document,) = documents(f'id,field\n7,"{cell}"\n')

    assert document == {"id": "7", "field": value}
    assert type(document["field"]) is type(value)


def test_standard_fields_always_stay_text() -> None:
    assert documents("id,title,date,author\n1,2,3,true\n") == [{"id": "1", "title": "2", "date": "3", "author": "true"}]


def test_row_with_a_wrong_cell_count_is_reported_and_the_others_are_read() -> None:
    text = "id,title\n1,One\n2\n3,Three,3\n4,Four\n"

    assert [document["id"] for document in documents(text)] == ["1", "4"]
    assert bad_lines(text) == {
        3: "has 1 cell, but the first line has 2 columns",
        4: "has 3 cells, but the first line has 2 columns",
    }


def test_unclosed_quotation_mark_invalidates_only_its_own_line() -> None:
    text = 'id,title\n1,One\n2,"Two\n3,Three\n4,Four\n'

    assert [document["id"] for document in documents(text)] == ["1", "3", "4"]
    assert bad_lines(text) == {3: "has a quotation mark that is never closed"}


def test_text_after_a_closing_quotation_mark_is_reported() -> None:
    text = 'id,title\n1,"One" and\n2,Two\n'

    assert [document["id"] for document in documents(text)] == ["2"]
    assert list(bad_lines(text)) == [2]


def test_line_in_another_encoding_is_reported() -> None:
    text = "id,title\n1,Müller\n".encode() + "2,Müller\n".encode("latin-1") + b"3,Three\n"

    assert [document["id"] for document in documents(text)] == ["1", "3"]
    assert bad_lines(text) == {3: "is not valid UTF-8"}


def test_oversized_line_is_reported_and_skipped() -> None:
    text = b"id,title\n1," + b"x" * (2 * MAX_RECORD_BYTES) + b"\n2,Two\n"

    assert [document["id"] for document in documents(text)] == ["2"]
    assert list(bad_lines(text)) == [2]


def test_cell_may_contain_500000_characters() -> None:
    (document,) = documents("id,content\n1," + "long " * 100_000 + "\n")

    assert len(document["content"]) == 500_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; its first line must name the columns"),
        ("\n1,2\n", "has a first line without column names"),
        ("id,title,id\n", "has the column 'id' twice"),
        ('id,"title\n1,2\n', "has a first line that has a quotation mark that is never closed"),
        ("id,größe\n".encode("latin-1"), "has a first line that is not valid UTF-8"),
    ],
)
def test_invalid_first_line_is_rejected(text: str | bytes, problem: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(text)

    assert str(caught.value.problem) == problem


def test_columns_can_be_mapped_to_other_fields() -> None:
    rows = read_csv(BytesIO(b"Nr,Text,Price\n1,Hello,5\n"), lambda names: [("id", "title"), (), ("price", "date")])

    assert [row.value for row in rows if isinstance(row, Record)] == [
        {"id": "1", "title": "1", "price": 5, "date": "5"},
    ]


def test_first_line_with_the_most_columns_is_read_in_linear_time() -> None:
    columns = ",".join(f"c{number}" for number in range(MAX_COLUMNS))
    begun = time.process_time()
    assert read(f"{columns}\n1") == [
        BadLine(2, Problem("has 1 cell, but the first line has 16,384 columns", "column_count"))
    ]
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("name", ["", "c"])
def test_file_with_too_many_columns_is_rejected_before_they_take_memory(name: str) -> None:
    text = ",".join(["id", *(name and f"{name}{number}" for number in range(MAX_COLUMNS))])

    with pytest.raises(UnreadableFile, match="has more than 16,384 columns"):
        read(f"{text}\n1")
