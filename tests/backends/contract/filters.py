"""Filters, passed as expression trees."""

from __future__ import annotations

from random import Random

import pytest

from backends.errors import BackendRejected
from backends.filters import parse_filter
from backends.query import MATCH_ALL, SortKey
from tests.backends.contract.case import SHOP, Case, has_native_filters, page

FILTERS: tuple[tuple[str, set[str]], ...] = (
    ("price = 5", {"chair", "stool"}),
    ('price = "5"', {"chair", "stool"}),
    ("price = 5.0", {"stool"}),
    ("price > 5", {"lamp", "sofa", "shelf"}),
    ("price >= 5 AND price < 300", {"lamp", "shelf", "stool"}),
    ("price <= 20", {"lamp", "stool"}),
    ("price 20 TO 120", {"lamp", "shelf"}),
    ("price 5 TO 5", {"stool"}),
    ("price = 300.5", {"sofa"}),
    ("brand = acme", {"lamp", "sofa"}),
    ("brand = 'ACME CO'", {"stool"}),
    ("brand = börde", {"shelf"}),
    ("brand != acme", {"shelf", "chair", "stool"}),
    ("author != Ann", {"sofa", "chair", "stool"}),
    ("author = ann", {"lamp", "shelf"}),
    ("NOT author = Ann", {"sofa", "chair", "stool"}),
    ("author IN [ann, bob]", {"lamp", "sofa", "shelf"}),
    ("author NOT IN [Ann]", {"sofa", "chair", "stool"}),
    ("author IN []", set()),
    ("tags = home", {"lamp", "sofa"}),
    ("tags = home AND tags = seat", {"sofa"}),
    ("tags != home", {"shelf", "chair", "stool"}),
    ("sizes = 2", {"lamp"}),
    ("sizes > 5", {"shelf"}),
    ("sizes 2 TO 9", {"lamp"}),
    ("stock = true", {"lamp", "shelf"}),
    ("stock = false", {"sofa"}),
    ("stock != true", {"sofa", "chair", "stool"}),
    ("tags EXISTS", {"lamp", "sofa", "shelf"}),
    ("tags NOT EXISTS", {"chair", "stool"}),
    ("tags IS EMPTY", {"shelf"}),
    ("note IS EMPTY", {"sofa"}),
    ('note = ""', {"sofa"}),
    ('note != ""', {"lamp", "shelf", "chair", "stool"}),
    ('tags = ""', set()),
    ('note IN ["", other]', {"sofa"}),
    ('brand IN [zebra, ""]', {"chair"}),
    ("tags IS NOT EMPTY", {"lamp", "sofa", "chair", "stool"}),
    ("tags IS NULL", set()),
    ("tags IS NOT NULL", {"lamp", "sofa", "shelf", "chair", "stool"}),
    ("content EXISTS", {"lamp", "sofa", "shelf", "chair", "stool"}),
    ("author EXISTS", {"lamp", "sofa", "shelf"}),
    ("date EXISTS", {"lamp", "sofa", "shelf", "stool"}),
    ("date NOT EXISTS", {"chair"}),
    ("id = lamp", {"lamp"}),
    ("id IN [lamp, sofa, none]", {"lamp", "sofa"}),
    ("title = 'desk lamp'", {"lamp"}),
    ("date = 2024-03-01", {"lamp"}),
    ("date = '2024-03-01T10:00:00Z'", {"sofa"}),
    ("date > 2024-03-01", {"sofa", "stool"}),
    ("date >= 2024-03-01", {"lamp", "sofa", "stool"}),
    ("date < 2024-03-01", {"shelf"}),
    ("date 2023-12-31 TO 2024-03-01", {"lamp", "shelf"}),
    ("date != 2024-03-01", {"sofa", "shelf", "chair", "stool"}),
    ("date > '2024-12-31T23:59:59.999Z'", {"stool"}),
    ("author = Ann OR brand = Zebra", {"lamp", "shelf", "chair"}),
    ("(author = Ann OR brand = Zebra) AND NOT price = 20", {"shelf", "chair"}),
    ("author = Ann AND (price > 100 OR (stock = true AND tags = light))", {"lamp", "shelf"}),
    ("NOT (author = Ann OR author = Bob)", {"chair", "stool"}),
    ("NOT NOT author = Ann", {"lamp", "shelf"}),
    ("author NOT EXISTS AND NOT price > 100", {"chair", "stool"}),
    ("code = 7 OR price = 20", {"lamp", "stool"}),
)


class FilterContract:
    @pytest.mark.parametrize(("expression", "expected"), FILTERS)
    def test_filters_keep_exactly_the_matching_documents(self, case: Case, expression: str, expected: set[str]) -> None:
        case.add(*SHOP)
        for text in (MATCH_ALL, "reading"):
            result = case.search(text, expression)
            assert {hit.id for hit in result.hits} == expected
            assert result.total == len(expected)

    def test_filter_text_is_combined_with_a_filter_tree(self, case: Case) -> None:
        if has_native_filters(case.backend):
            pytest.skip("the text is in the engine's own syntax")
        case.add(*SHOP)
        assert case.ids("reading", "author = Ann", portable_filter=parse_filter("price > 100")) == ["shelf"]

    @pytest.mark.parametrize(("expression", "position"), [
        ("price >", 7), ("(price = 1", 10), ("price = 1)", 9), ("= 1", 0), ("price = 'x", 8),
        ("price = 1 brand = 2", 10), ("unknown = 1", 0), ("price = 1 AND unknown EXISTS", 14),
        ("NOT " * 60 + "price = 1", 200), ("(" * 60, 50),
    ])  # fmt: skip
    def test_invalid_filter_is_rejected_with_its_position(self, case: Case, expression: str, position: int) -> None:
        if has_native_filters(case.backend):
            pytest.skip("the text is in the engine's own syntax")
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    def test_unknown_field_in_a_filter_tree_is_rejected(self, case: Case) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", portable_filter=parse_filter("price = 1 OR unknown = 2"))
        assert caught.value.parameter == "filters"

    @pytest.mark.parametrize("expression", [
        "price > cheap", "date > yesterday", "price a TO 2", "date 1 TO soon", "price > 9223372036854775808",
        "NOT price <= -9223372036854775809", f"sizes 1 TO {'9' * 400}", f"date > {'9' * 30}", "price > 1e400",
        "price > nan",
    ])  # fmt: skip
    def test_incomparable_filter_value_is_rejected(self, case: Case, expression: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", portable_filter=parse_filter(expression))
        assert caught.value.parameter == "filters"

    @pytest.mark.parametrize(("expression", "expected"), [
        ("price < 1e39", {"lamp", "sofa", "shelf", "stool"}), ("sizes >= -1e308", {"lamp", "shelf"}),
        ("price -1e39 TO 1e-7", set()), ("price > 9223372036854775807", set()), (f"brand = {'9' * 30}", set()),
        ("date < 1e11", {"lamp", "sofa", "shelf", "stool"}),
    ])  # fmt: skip
    def test_filters_compare_very_large_and_very_small_numbers(
        self, case: Case, expression: str, expected: set[str]
    ) -> None:
        case.add(*SHOP)
        assert set(case.ids(MATCH_ALL, expression)) == expected

    def test_filter_on_standard_fields_of_an_empty_index_returns_no_hits(self, case: Case) -> None:
        assert case.ids(MATCH_ALL, "author = Ann OR date > 2024-01-01") == []

    def test_document_with_several_numbers_in_a_range_is_counted_once(self, case: Case) -> None:
        case.add(*(page(str(number), "word", sizes=[1, 2, 3, number], tags=["a", "b"]) for number in range(4, 9)))
        for text in (MATCH_ALL, "word"):
            for expression in ("sizes 1 TO 3", "sizes 1 TO 3 AND sizes 2 TO 9", "sizes 1 TO 3 OR sizes 30 TO 40"):
                result = case.search(text, expression, facets=("tags",))
                assert (result.total, len(result.hits)) == (5, 5)
                assert result.facets["tags"] == {"a": 5, "b": 5}

    @pytest.mark.parametrize(("expression", "expected"), [
        ("price < 0", False), ("price >= 0", True), ("price > -0.0", False), ("price <= -0.0", True),
        ("price 0 TO -0.0", True), ("price = 0", True), ("price != 0", False),
    ])  # fmt: skip
    def test_negative_zero_equals_zero(self, case: Case, expression: str, expected: bool) -> None:
        case.add(page("one", price=-0.0), page("list", price=[-0.0]), page("zero", price=0))
        assert set(case.ids(MATCH_ALL, expression)) == ({"one", "list", "zero"} if expected else set())

    def test_fraction_with_seventeen_digits_equals_itself(self, case: Case) -> None:
        random = Random(3)
        numbers = [random.uniform(-1e6, 1e6) for _ in range(60)] + [random.random() for _ in range(60)]
        case.add(*(page(str(at), price=number, sizes=[number, 7]) for at, number in enumerate(numbers)))
        for at, number in enumerate(numbers):
            for expression in (f"price = {number!r}", f"sizes = {number!r}", f"price {number!r} TO {number!r}"):
                assert case.ids(MATCH_ALL, expression) == [str(at)]

    @pytest.mark.parametrize("date", ["2024-05-01t10:20:30z", "2024-05-01T10:20:30z", "2024-05-01 10:20:30"])
    def test_every_accepted_form_of_a_date_is_compared_sorted_and_counted(self, case: Case, date: str) -> None:
        case.add(page("old", date="2020-01-01"), page("new", date=date), page("none"))
        assert case.ids(MATCH_ALL, "date > 2024-05-01") == case.ids(MATCH_ALL, f"date = '{date}'") == ["new"]
        assert case.ids(MATCH_ALL, sort=(SortKey("date", True),)) == ["new", "old", "none"]
        result = case.search(MATCH_ALL, facets=("date",))
        assert (sum(result.facets["date"].values()), result.facet_stats["date"].max) == (2, 1714558830)
