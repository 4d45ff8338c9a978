"""Conversion of records from other systems to documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importers.fields import ColumnMap, field_name, fields_of_columns, finish, flatten, to_document
from app.importers.records import UnreadableFile
from schemas.validation.documents import read_document

PAGE = {"id": "1", "title": "Title", "content": "Text", "url": "/"}


def convert(record: dict[str, Any], **columns: str) -> dict[str, Any]:
    return to_document(record, ColumnMap(columns), {})


def test_nested_values_are_flattened_by_path_and_nulls_are_omitted() -> None:
    record = {
        **PAGE,
        "author": None,
        "price": {"value": 5, "currency": {"code": "EUR", "sign": None}},
        "editions": [{"year": 2001, "by": ["A", "B"]}, {"year": 2002, "by": ["C"]}, None],
        "_geoloc": {"lat": 1.5, "lng": 2},
        "_tags": ["x"],
        "_highlightResult": {"title": {"value": "<em>"}},
        "empty": [],
        "nothing": {},
    }

    assert convert(record) == {
        **PAGE,
        "price_value": 5,
        "price_currency_code": "EUR",
        "editions_year": [2001, 2002],
        "editions_by": ["A", "B", "C"],
        "geoloc_lat": 1.5,
        "geoloc_lng": 2,
        "tags": ["x"],
    }


def test_list_of_mixed_types_becomes_a_list_of_strings() -> None:
    assert flatten({"a": ["x", 1, True, None, [2.5]]}) == {"a": ["x", "1", "true", "2.5"]}
    assert flatten({"a": [True, False], "b": [1, 2.5]}) == {"a": ["true", "false"], "b": [1, 2.5]}


def test_list_in_a_text_field_is_joined_and_a_number_becomes_text() -> None:
    record = {"title": 1984, "content": ["One.", "Two."], "author": ["Ann", "Ben"], "id": 7, "url": "/"}

    assert convert(record) == {"title": "1984", "content": "One.\nTwo.", "author": "Ann, Ben", "id": 7, "url": "/"}


def test_mapped_columns_fill_their_fields_by_path() -> None:
    record = {"key": "1", "title": "old", "page": {"head": "Title", "body": "Text"}, "link": "/", "note": "x"}

    document = to_document(
        record,
        ColumnMap({"id": "key", "title": "page.head", "content": "page.body", "url": "link"}, frozenset(["note"])),
        {},
    )

    assert document == PAGE


def test_column_can_fill_two_fields_and_a_missing_column_fills_no_field() -> None:
    assert convert({"a": "x"}, title="a", excerpt="a", content="b") == {"title": "x", "excerpt": "x"}


def test_alias_fills_a_field_unless_the_map_does() -> None:
    aliases = {"id": ("objectID", "id")}
    record = {"objectID": "o", "id": "i", "sku": "s"}

    assert to_document(record, ColumnMap(), aliases) == {"id": "o", "sku": "s"}
    assert to_document(record, ColumnMap({"id": "sku"}), aliases) == {"id": "s", "objectID": "o"}
    assert to_document({"id": "i"}, ColumnMap(), aliases) == {"id": "i"}


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("Post Date", "Post_Date"), ("author.name", "author_name"), ("größe", "groe"), ("été", "ete"),
        ("2nd", "nd"), ("a.", "a"), ("a_", "a_"),
        ("_x", "x"), ("price (€)", "price"), ("a" * 99, "a" * 64), ("値段", "値段"), ("", ""),
    ],
)  # fmt: skip
def test_field_names_are_normalized(column: str, name: str) -> None:
    assert field_name(column) == name


@pytest.mark.parametrize(
    ("value", "date"),
    [
        (1700000000, "2023-11-14T22:13:20Z"), ("1700000000", "2023-11-14T22:13:20Z"),
        (-500000000, "1954-02-26T23:06:40Z"),
        (1700000000123, "2023-11-14T22:13:20.123000Z"), (1700000000.5, "2023-11-14T22:13:20.500000Z"),
        ("2024-05-01", "2024-05-01"), (20240501, 20240501), ("20240501", "20240501"), (2024, 2024), (True, True),
        (1e300, 1e300), ("soon", "soon"),
    ],
)  # fmt: skip
def test_unix_times_become_dates_and_other_values_stay_unchanged(value: Any, date: Any) -> None:
    assert finish({"date": value}) == {"date": date}


DOCSEARCH = {"lvl0": "Guide", "lvl1": "Install", "lvl2": "On Linux", "lvl3": None}


@pytest.mark.parametrize(
    "record",
    [
        {"hierarchy": DOCSEARCH, "content": None},
        {f"hierarchy.{level}": text for level, text in DOCSEARCH.items()},
        {f"hierarchy_{level}": text for level, text in DOCSEARCH.items()},
    ],
)
def test_docsearch_hierarchy_becomes_the_title(record: dict[str, Any]) -> None:
    document = convert(record)

    assert document["title"] == "Install › On Linux"
    assert document["content"] == ""
    assert document["hierarchy_lvl0"] == "Guide"
    assert convert({"hierarchy": {"lvl0": "Guide", "lvl1": None}, "content": "x"})["title"] == "Guide"
    assert convert({"hierarchy": DOCSEARCH, "title": "Own"})["title"] == "Own"


def test_record_nested_5000_levels_deep_is_read() -> None:
    value: Any = "x"
    for _ in range(5000):
        value = {"a": [value]}

    assert list(flatten({"deep": value}).values()) == [["x"]]


VALID_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,9}", fullmatch=True).filter(lambda n: n not in {"date", "url"})
SCALARS = st.text(max_size=9) | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.booleans()
VALUES = SCALARS | st.lists(st.text(max_size=9), min_size=1) | st.lists(st.integers(0, 99), min_size=1)


@given(st.dictionaries(VALID_NAMES, VALUES, max_size=8))
def test_valid_bulk_document_is_imported_unchanged(further: dict[str, Any]) -> None:
    document = {**further, **PAGE, "excerpt": "x", "author": "y"}

    assert convert(document) == document


NESTED = st.recursive(
    st.none() | SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3)
)


@given(st.dictionaries(st.text(max_size=8), NESTED, max_size=8))
def test_flattened_values_always_have_a_supported_type(record: dict[str, Any]) -> None:
    for value in flatten(record).values():
        members = value if isinstance(value, list) else [value]
        assert all(isinstance(member, str | int | float) for member in members)
        assert value != []


def test_columns_are_matched_by_case_insensitive_names_and_by_the_map() -> None:
    names = ["ID", "Title", "title", "URL", "Text", "Post Date", "post-date", "Post.Date", "_row", "", "Junk"]

    fields = fields_of_columns(names, ColumnMap({"content": "Text", "body": "Text"}, frozenset(["Junk"])))

    assert dict(zip(names, fields, strict=True)) == {
        "ID": ["id"], "Title": ["Title"], "title": ["title"], "URL": ["url"], "Text": ["content", "body"],
        "Post Date": ["Post_Date"], "post-date": ["post-date"], "Post.Date": [], "_row": [], "": [], "Junk": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "columns", "field", "problem"),
    [
        (["id", "title"], {}, "file",
         "is missing columns for content, url; map a column to each of them: id, title"),
        (["id", "name"], {"title": "Name"}, "map", "contains the unknown column 'Name'; the columns are: id, name"),
    ],
)  # fmt: skip
def test_missing_columns_are_rejected_immediately(
    names: list[str], columns: dict[str, str], field: str, problem: str
) -> None:
    with pytest.raises(UnreadableFile) as caught:
        fields_of_columns(names, ColumnMap(columns))

    assert (caught.value.field, str(caught.value.problem)) == (field, problem)


def test_converted_record_is_a_valid_document() -> None:
    assert read_document(convert({**PAGE, "date": 1700000000, "x": {"y": [1]}})).fields["x_y"] == [1]


def test_long_name_above_many_values_is_not_repeated_for_each_value() -> None:
    record = {"x": {"long" * 100_000: {f"value {number}": number for number in range(10_000)}}, "y": 1}

    values = flatten(record)

    assert sum(map(len, values)) < 10_000
    assert values["y"] == 1
