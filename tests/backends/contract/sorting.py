"""Sorting: by several keys, with missing values last and ties ordered by relevance."""

from __future__ import annotations

import pytest

from backends.errors import BackendRejected
from backends.query import MATCH_ALL, SortKey
from tests.backends.contract.case import SHOP, Case, page


class SortContract:
    @pytest.mark.parametrize(("keys", "expected"), [
        ((SortKey("date"),), ["shelf", "lamp", "sofa", "stool", "chair"]),
        ((SortKey("date", True),), ["stool", "sofa", "lamp", "shelf", "chair"]),
        ((SortKey("title"),), ["shelf", "chair", "lamp", "sofa", "stool"]),
        ((SortKey("title", True),), ["stool", "sofa", "lamp", "chair", "shelf"]),
        ((SortKey("author"), SortKey("date", True)), ["lamp", "shelf", "sofa", "stool", "chair"]),
        ((SortKey("author", True), SortKey("title")), ["sofa", "shelf", "lamp", "chair", "stool"]),
        ((SortKey("code"), SortKey("author", True), SortKey("date")), ["stool", "sofa", "shelf", "lamp", "chair"]),
        ((SortKey("id"),), ["chair", "lamp", "shelf", "sofa", "stool"]),
        ((SortKey("stock", True), SortKey("id")), ["lamp", "shelf", "sofa", "chair", "stool"]),
    ])  # fmt: skip
    def test_sorting_puts_missing_values_last(self, case: Case, keys: tuple[SortKey, ...], expected: list[str]) -> None:
        case.add(*SHOP)
        for text in (MATCH_ALL, "reading"):
            assert case.ids(text, sort=keys) == expected
            assert case.ids(text, sort=keys, limit=2, offset=2) == expected[2:4]

    def test_numbers_sort_numerically(self, case: Case) -> None:
        prices = [5, -3, 20, 100, 3.5, 0, 1e10, -100.25, 7]
        case.add(*(page(str(number), "word", price=price) for number, price in enumerate(prices)), page("none", "word"))
        ascending = [str(prices.index(price)) for price in sorted(prices)]
        assert case.ids("word", sort=(SortKey("price"),)) == [*ascending, "none"]
        assert case.ids("word", sort=(SortKey("price", True),)) == [*reversed(ascending), "none"]

    @pytest.mark.parametrize("key", ["content", "tags", "unknown"])
    def test_sort_by_an_unsupported_field_is_rejected(self, case: Case, key: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", sort=(SortKey(key),))
        assert caught.value.parameter == "sort"

    def test_ties_are_broken_by_relevance_across_pages(self, case: Case) -> None:
        case.add(
            *(
                page(f"{shelf}{number}", "walrus" if number == 3 else "other", "the walrus", shelf=shelf)
                for shelf in "ab"
                for number in range(6)
            )
        )
        ordered: list[str] = []
        for offset in range(0, 12, 5):
            ordered += case.ids("walrus", sort=(SortKey("shelf"),), limit=5, offset=offset)
        assert [id[0] for id in ordered] == ["a"] * 6 + ["b"] * 6
        assert (ordered[0], ordered[6]) == ("a3", "b3")
        assert sorted(ordered) == sorted(set(ordered))

    def test_text_sorts_without_case_and_accents(self, case: Case) -> None:
        if case.backend.name == "meilisearch":
            pytest.skip("Meilisearch sorts by its own rules: see docs/engines.md")
        titles = ["", "Åbo", "abp", "éa", "Eb", "E\u0301c", "ﬁa", "fib", "Zoë", "zoé", "zog"]
        case.add(*(page(f"{at:02}", title, note=title) for at, title in enumerate(titles)))
        assert case.ids(MATCH_ALL, sort=(SortKey("title"), SortKey("id")), limit=100) == [
            f"{at:02}" for at in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
        ]
