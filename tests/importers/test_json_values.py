"""JSON files with any supported layout."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importers import json_values
from app.importers.json_values import read_json
from app.importers.records import MAX_RECORD_BYTES, BadLine, Read, Record

LISTS = ("hits", "results")
DOCUMENTS = [{"id": "a", "title": 'A "quoted\\" [title]'}, {"id": "b", "sub": {"list": [1, [2, {"c": "}"}]]}}]


def read(text: str | bytes) -> list[Read]:
    return list(read_json(BytesIO(text.encode() if isinstance(text, str) else text), LISTS, ("id", "objectID")))


def values(text: str | bytes) -> list[Any]:
    return [found.value for found in read(text) if isinstance(found, Record)]


def problems(text: str | bytes) -> dict[int, str]:
    return {found.line: str(found.problem) for found in read(text) if isinstance(found, BadLine)}


@pytest.mark.parametrize("indent", [None, 2])
def test_every_supported_layout_of_documents_is_read(indent: int | None) -> None:
    def dump(value: Any) -> str:
        return json.dumps(value, indent=indent)

    page = {"meta": {"page": {"total": 2}, "list": [1]}, "results": DOCUMENTS, "offset": 0, "tail": [{"x": [1]}]}
    forms = [
        dump(DOCUMENTS),
        "\n".join(dump(document) for document in DOCUMENTS),
        dump({"hits": DOCUMENTS, "nbHits": 2}),
        dump(page),
        "\ufeff \n" + dump(DOCUMENTS),
    ]

    assert [values(form) for form in forms] == [DOCUMENTS] * len(forms)
    assert [problems(form) for form in forms] == [{}] * len(forms)
    assert values(dump(page) + "\n" + dump(page)) == DOCUMENTS * 2
    assert values("[]") == values(dump({"results": []})) == values("") == values(" \n") == []


def test_document_field_named_like_a_result_list_is_kept() -> None:
    named = [{"id": "a", "results": ["x"]}, {"objectID": "b", "hits": [{"x": 1}]}]

    assert values("\n".join(json.dumps(document) for document in named)) == named


def test_line_of_a_record_is_where_its_value_begins() -> None:
    text = '\n[\n  {"id":\n "a"},\n\n  7\n  , {"id": "b"}]'

    assert [found.line for found in read(text)] == [3, 6, 7]


def test_invalid_array_member_is_reported_and_the_others_are_read() -> None:
    text = '[{"id": "a"},\n{"id": nothing},\n{"id": "b"} {"id": "c"},\n"text",\n,{"id": "d"},\n]'

    assert values(text) == [{"id": "a"}, "text", {"id": "d"}]
    assert list(problems(text)) == [2, 3]


def test_truncated_or_unbalanced_value_is_reported_and_earlier_values_are_read() -> None:
    assert values('[{"id": "a"},\n{"id": "b"') == [{"id": "a"}]
    assert problems('[{"id": "a"},\n{"id": "b"') == {2: "is not valid JSON: the file ends within it"}
    assert problems("[1, 2") == {1: "is not valid JSON: the file ends within it"}
    assert values('[{"id": "a"},\n{"id": [}\n, {"id": "b"}]') == [{"id": "a"}]
    assert list(problems('[{"id": "a"},\n{"id": [}\n, {"id": "b"}]')) == [2]
    assert values('[{"id": "a"}]]') == [{"id": "a"}]
    assert list(problems('[{"id": "a"}]]')) == [1]


def test_oversized_value_is_reported_and_skipped() -> None:
    text = b'[{"id": "a"},\n{"id": "' + b"x" * (2 * MAX_RECORD_BYTES) + b'"},\n{"id": "b"}]'

    assert values(text) == [{"id": "a"}, {"id": "b"}]
    assert list(problems(text)) == [2]


def test_deeply_nested_brackets_are_reported_as_one_invalid_value() -> None:
    assert list(problems("[{" + '"a":[' * 100_000)) == [1]
    assert len(problems("[" + "[" * 5000 + "]" * 5000 + ", 1]")) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(members=st.lists(JSON, max_size=6), indent=st.sampled_from([None, 1]), chunk=st.integers(1, 40))
def test_array_members_are_read_regardless_of_chunk_boundaries(
    members: list[Any], indent: int | None, chunk: int
) -> None:
    text = json.dumps(members, indent=indent, ensure_ascii=False).encode()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_values, "CHUNK_BYTES", chunk)
        assert values(text) == members


@pytest.mark.slow
@given(members=st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=6))
def test_documents_of_any_response_object_are_read(members: list[Any]) -> None:
    answer = {"offset": 0, "hits": members, "rest": members}

    assert values(json.dumps(answer)) == members


@pytest.mark.parametrize("between", [",", ",\n", " ,\n\n "])
def test_array_members_are_numbered_even_on_one_line(between: str) -> None:
    members = ['{"id": "a"}', "{nothing}", '{"id": "b"}', "7", '{"id": "c"}']

    for text in (f"[{between.join(members)}]", '{"hits": [' + between.join(members) + '], "nbHits": 5}'):
        found = read(text)
        assert [each.number for each in found] == [1, 2, 3, 4, 5]
        assert [type(each) for each in found] == [Record, BadLine, Record, Record, Record]


def test_oversized_and_truncated_members_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MAX_RECORD_BYTES", 20)

    found = read('[{"id": "a"}, {"id": "%s"}, {"id": "b"}, {"id": ' % ("x" * 50))

    assert [(each.number, type(each)) for each in found] == [(1, Record), (2, BadLine), (3, Record), (4, BadLine)]


def test_json_lines_records_have_no_number() -> None:
    assert [each.number for each in read('{"id": "a"}\n{broken\n')] == [None, None]
