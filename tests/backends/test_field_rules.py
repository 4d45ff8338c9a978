"""Each field has one rule, and each rejection has one message."""

from __future__ import annotations

import pytest

from backends.errors import BackendRejected
from backends.field_rules import (
    check_filter,
    check_sort,
    facet_fields,
    first_values,
    instant_of,
    number_of,
    searched_fields,
    with_required_fields,
)
from backends.filters import parse_filter
from backends.query import FieldKind, FieldKinds, SearchQuery, SortKey

KINDS: FieldKinds = {
    "price": frozenset({FieldKind.NUMBER}),
    "sizes": frozenset({FieldKind.NUMBER_LIST}),
    "mixed": frozenset({FieldKind.STRING, FieldKind.STRING_LIST}),
}


def test_filter_on_standard_and_existing_fields_is_accepted() -> None:
    check_filter(parse_filter("content = x AND id = 1 OR price > 5 AND NOT sizes EXISTS"), KINDS)


def test_unknown_field_in_a_filter_is_rejected_with_its_position() -> None:
    with pytest.raises(BackendRejected, match=r"^No document has a field 'colour'\.$") as caught:
        check_filter(parse_filter("price > 5 AND (colour = red OR size = 5)"), KINDS)

    assert (caught.value.parameter, caught.value.position) == ("filters", 15)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("content", "Results cannot be sorted by 'content'."),
        ("colour", "No document has a field 'colour'."),
        ("sizes", "Results cannot be sorted by 'sizes': it contains lists."),
    ],
)
def test_sort_on_an_unsortable_field_is_rejected(field: str, message: str) -> None:
    check_sort([SortKey(name) for name in ("id", "title", "excerpt", "url", "author", "date", "price", "mixed")], KINDS)

    with pytest.raises(BackendRejected) as caught:
        check_sort([SortKey("date"), SortKey(field)], KINDS)

    assert (caught.value.parameter, str(caught.value)) == ("sort", message)


def test_star_expands_to_all_facets_without_duplicates() -> None:
    assert facet_fields(("price", "*", "date"), KINDS) == ["price", "id", "author", "date", "mixed", "sizes"]


@pytest.mark.parametrize(
    ("field", "message"),
    [("title", "The values of 'title' cannot be counted."), ("colour", "No document has a field 'colour'.")],
)
def test_facet_on_an_unsupported_field_is_rejected(field: str, message: str) -> None:
    with pytest.raises(BackendRejected) as caught:
        facet_fields(("price", field), KINDS)

    assert (caught.value.parameter, str(caught.value)) == ("facets", message)


def test_facet_values_are_ordered_by_count_then_name() -> None:
    assert list(first_values({"b": 1, "c": 2, "a": 1, "d": 1}, 3).items()) == [("c", 2), ("a", 1), ("b", 1)]


def test_comparison_with_an_invalid_date_or_number_is_rejected() -> None:
    assert (instant_of("1970-01-02", 0), number_of("price", "5", 0)) == (86_400_000_000, 5)

    with pytest.raises(BackendRejected, match="'soon' is not an ISO 8601 date"):
        instant_of("soon", 7)
    with pytest.raises(BackendRejected, match="'price' can only be compared with numbers") as caught:
        number_of("price", "much", 7)
    assert caught.value.position == 7


def test_only_text_fields_are_searched_in_order_of_importance() -> None:
    assert searched_fields(SearchQuery("x")) == ("title", "excerpt", "content")
    assert searched_fields(SearchQuery("x", fields=("content", "author", "title"))) == ("title", "content")
    assert searched_fields(SearchQuery("x", fields=("author",))) == ()


def test_hit_has_the_required_fields_and_custom_fields() -> None:
    document = {"price": 5, "id": "1", "title": "A", "url": "/a", "content": "b"}

    assert with_required_fields(document) == {**document, "excerpt": ""}
