"""Filters with any nesting select the same documents as a reference model."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Document, SearchBackend
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.query import FieldKind, SearchQuery
from backends.registry import create_backend
from backends.values import parse_number

KINDS = {"size": frozenset({FieldKind.NUMBER}), "color": frozenset({FieldKind.STRING, FieldKind.STRING_LIST})}
COLORS = ("red", "green", "blue", "none")


@cache
def shop() -> tuple[SearchBackend, list[dict[str, Any]]]:
    chance = random.Random(17)
    documents: list[dict[str, Any]] = []
    for number in range(60):
        fields: dict[str, Any] = {"id": str(number), "title": "word", "content": "", "url": "/"}
        if chance.random() < 0.8:
            fields["size"] = chance.randrange(5)
        if chance.random() < 0.8:
            fields["color"] = chance.choice(["", "red", "green", [], ["red", "blue"], ["green"]])
        documents.append(fields)
    backend = create_backend("memory://")
    backend.create_index("i")
    for start in (0, 40):
        batch = documents[start : start + 40]
        backend.upsert("i", [Document(d["id"], d, int(d["id"])) for d in batch[: 60 - start]], KINDS)
    return backend, documents


def keeps(node: Filter, document: dict[str, Any]) -> bool:
    """Whether the reference model selects the document."""
    if isinstance(node, Not):
        return not keeps(node.operand, document)
    if isinstance(node, And):
        return all(keeps(operand, document) for operand in node.operands)
    if isinstance(node, Or):
        return any(keeps(operand, document) for operand in node.operands)
    value = document.get(node.field)
    if isinstance(node, Presence):
        return (value is not None) if node.test == "exists" else node.test == "empty" and value in ("", [])
    values = value if isinstance(value, list) else [] if value is None else [value]
    if isinstance(node, OneOf):
        return any(str(item) in node.values for item in values)
    if isinstance(node, Between):
        return any(float(node.low) <= item <= float(node.high) for item in values)
    if node.operator in ("=", "!="):
        return any(str(item) == node.value for item in values) == (node.operator == "=")
    limit = parse_number(node.value)
    assert limit is not None
    compare = {">": limit.__lt__, ">=": limit.__le__, "<": limit.__gt__, "<=": limit.__ge__}[node.operator]
    return any(compare(item) is True for item in values)


sizes = st.integers(-1, 5).map(str)
conditions: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Comparison, st.just("size"), st.sampled_from(["=", "!=", ">", ">=", "<", "<="]), sizes),
    st.builds(Comparison, st.just("color"), st.sampled_from(["=", "!="]), st.sampled_from(COLORS)),
    st.builds(Between, st.just("size"), sizes, sizes),
    st.builds(OneOf, st.just("color"), st.lists(st.sampled_from(COLORS), max_size=4).map(tuple)),
    st.builds(Presence, st.sampled_from(["size", "color"]), st.sampled_from(["exists", "null", "empty"])),
)


def nested(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(And, several), st.builds(Or, several))


@pytest.mark.slow
@settings(max_examples=500)
@given(st.recursive(conditions, nested, max_leaves=14))
def test_filter_agrees_with_a_reference_model(node: Filter) -> None:
    backend, documents = shop()

    found = backend.search("i", SearchQuery("word", limit=100, portable_filter=node, kinds=KINDS))

    assert {hit.id for hit in found.hits} == {document["id"] for document in documents if keeps(node, document)}
