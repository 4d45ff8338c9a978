"""A filter evaluated on documents in Python selects the same documents as every engine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.errors import BackendRejected
from backends.filters import Filter, parse_filter
from backends.matching import compile_matching
from backends.query import FieldKind, SearchQuery
from tests.backends.contract.case import SHOP, kinds_of
from tests.backends.contract.filters import FILTERS
from tests.backends.embedded.index.test_filters import KINDS, conditions, nested, shop


@pytest.mark.parametrize(("expression", "expected"), FILTERS)
def test_document_filter_selects_the_same_documents_as_the_engines(expression: str, expected: set[str]) -> None:
    matches = compile_matching(parse_filter(expression), kinds_of(SHOP))

    assert {document["id"] for document in SHOP if matches(document)} == expected


@pytest.mark.parametrize(("expression", "position"), [
    ("unknown = 1", 0), ("price = 1 AND unknown EXISTS", 14), ("price > cheap", 0), ("price a TO 2", 0),
    ("author = Ann AND date > yesterday", 17), ("date = soon", 0), ("date IN [2024-01-01, soon]", 0),
    ("NOT price <= -9223372036854775809", 4), ("sizes > nan", 0),
])  # fmt: skip
def test_invalid_comparison_is_rejected_with_its_position(expression: str, position: int) -> None:
    with pytest.raises(BackendRejected) as caught:
        compile_matching(parse_filter(expression), kinds_of(SHOP))

    assert (caught.value.parameter, caught.value.position) == ("filters", position)


@pytest.mark.parametrize(("value", "expression", "kept"), [
    (True, "flag = 1", False), (True, "flag = TRUE", True), (1, "flag = true", False), ([1, 2], "flag = 2.0", True),
    (2**53 + 1, f"flag = {2**53}", False), (2**53 + 1, f"flag = {2**53 + 1}", True), (True, "flag > 0", False),
    ("\u00c9t\u00e9 ", "flag = 'e\u0301te\u0301'", True), (-0.0, "flag = 0", True), (0.1, "flag = 1e-1", True),
])  # fmt: skip
def test_values_are_compared_as_documented(value: object, expression: str, kept: bool) -> None:
    matches = compile_matching(parse_filter(expression), {"flag": frozenset({FieldKind.NUMBER})})

    assert matches({"id": "1", "flag": value}) is kept


@pytest.mark.slow
@settings(max_examples=300)
@given(st.recursive(conditions, nested, max_leaves=14))
def test_document_filter_agrees_with_the_embedded_engine(node: Filter) -> None:
    backend, documents = shop()
    matches = compile_matching(node, KINDS)

    found = backend.search("i", SearchQuery("word", limit=100, portable_filter=node, kinds=KINDS))

    assert {document["id"] for document in documents if matches(document)} == {hit.id for hit in found.hits}
