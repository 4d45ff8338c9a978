"""JSON in whatever form it comes."""

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
def test_every_form_in_which_documents_come_is_read(indent: int | None) -> None:
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


def test_a_document_may_have_a_field_that_is_called_like_a_list_of_answers() -> None:
    named = [{"id": "a", "results": ["x"]}, {"objectID": "b", "hits": [{"x": 1}]}]

    assert values("\n".join(json.dumps(document) for document in named)) == named


def test_lines_are_those_on_which_a_value_begins() -> None:
    text = '\n[\n  {"id":\n "a"},\n\n  7\n  , {"id": "b"}]'

    assert [found.line for found in read(text)] == [3, 6, 7]


def test_a_bad_member_of_an_array_is_named_and_the_rest_goes_on() -> None:
    text = '[{"id": "a"},\n{"id": nothing},\n{"id": "b"} {"id": "c"},\n"text",\n,{"id": "d"},\n]'

    assert values(text) == [{"id": "a"}, "text", {"id": "d"}]
    assert list(problems(text)) == [2, 3]


def test_what_is_cut_off_or_unbalanced_is_named_and_what_came_before_is_read() -> None:
    assert values('[{"id": "a"},\n{"id": "b"') == [{"id": "a"}]
    assert problems('[{"id": "a"},\n{"id": "b"') == {2: "is not valid JSON: the file ends within it"}
    assert problems("[1, 2") == {1: "is not valid JSON: the file ends within it"}
    assert values('[{"id": "a"},\n{"id": [}\n, {"id": "b"}]') == [{"id": "a"}]
    assert list(problems('[{"id": "a"},\n{"id": [}\n, {"id": "b"}]')) == [2]
    assert values('[{"id": "a"}]]') == [{"id": "a"}]
    assert list(problems('[{"id": "a"}]]')) == [1]


def test_a_value_beyond_all_bounds_is_named_and_passed_over() -> None:
    text = b'[{"id": "a"},\n{"id": "' + b"x" * (2 * MAX_RECORD_BYTES) + b'"},\n{"id": "b"}]'

    assert values(text) == [{"id": "a"}, {"id": "b"}]
    assert list(problems(text)) == [2]


def test_a_million_brackets_are_a_bad_value_and_nothing_worse() -> None:
    assert list(problems("[{" + '"a":[' * 100_000)) == [1]
    assert len(problems("[" + "[" * 5000 + "]" * 5000 + ", 1]")) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(members=st.lists(JSON, max_size=6), indent=st.sampled_from([None, 1]), chunk=st.integers(1, 40))
def test_whatever_an_array_holds_and_wherever_chunks_end_its_members_are_read(
    members: list[Any], indent: int | None, chunk: int
) -> None:
    text = json.dumps(members, indent=indent, ensure_ascii=False).encode()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_values, "CHUNK_BYTES", chunk)
        assert values(text) == members


@pytest.mark.slow
@given(members=st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=6))
def test_whatever_an_answer_holds_its_documents_are_read(members: list[Any]) -> None:
    answer = {"offset": 0, "hits": members, "rest": members}

    assert values(json.dumps(answer)) == members


@pytest.mark.parametrize("between", [",", ",\n", " ,\n\n "])
def test_the_members_of_an_array_are_numbered_however_many_stand_on_a_line(between: str) -> None:
    members = ['{"id": "a"}', "{nothing}", '{"id": "b"}', "7", '{"id": "c"}']

    for text in (f"[{between.join(members)}]", '{"hits": [' + between.join(members) + '], "nbHits": 5}'):
        found = read(text)
        assert [each.number for each in found] == [1, 2, 3, 4, 5]
        assert [type(each) for each in found] == [Record, BadLine, Record, Record, Record]


def test_what_is_too_long_or_cut_off_is_numbered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MAX_RECORD_BYTES", 20)

    found = read('[{"id": "a"}, {"id": "%s"}, {"id": "b"}, {"id": ' % ("x" * 50))

    assert [(each.number, type(each)) for each in found] == [(1, Record), (2, BadLine), (3, Record), (4, BadLine)]


def test_lines_that_hold_one_record_each_need_no_number() -> None:
    assert [each.number for each in read('{"id": "a"}\n{broken\n')] == [None, None]
