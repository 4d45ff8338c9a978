"""Facets: counts and ranges of the values of all matches."""

from __future__ import annotations

from typing import Any

import pytest

from backends.errors import BackendRejected
from backends.query import MATCH_ALL, SortKey
from tests.backends.contract.case import SHOP, Case, page


class FacetContract:
    def test_facets_count_the_values_of_all_matches(self, case: Case) -> None:
        case.add(*SHOP)
        result = case.search("reading", facets=("author", "tags", "stock", "sizes"), limit=1)
        assert dict(result.facets["author"]) == {"Ann": 2, "Bob": 1}
        assert dict(result.facets["tags"]) == {"home": 2, "light": 1, "seat": 1}
        assert list(result.facets["tags"]) == ["home", "light", "seat"]
        assert dict(result.facets["stock"]) == {"true": 2, "false": 1}
        assert dict(result.facets["sizes"]) == {"1": 1, "10": 1, "2": 1}
        assert dict(case.search("reading", "author = Ann", facets=("tags",)).facets["tags"]) == {"home": 1, "light": 1}

    def test_number_and_date_facets_report_minimum_and_maximum(self, case: Case) -> None:
        case.add(*SHOP)
        stats = case.search("reading", facets=("price", "date", "author")).facet_stats
        assert (stats["price"].min, stats["price"].max) == (5, 300.5)
        assert (stats["date"].min, stats["date"].max) == (1703980800, 1735689600)
        assert "author" not in stats

    def test_maximum_of_negative_numbers_and_early_dates_is_exact(self, case: Case) -> None:
        case.add(
            page("1", "word", price=-5, sizes=[-7.5, -3], date="1950-01-01", depth=-1),
            page("2", "word", price=-2.25, sizes=[-4], date="1960-01-01", depth=[-2, -0.125]),
            page("3", "word"),
        )
        for text in (MATCH_ALL, "word"):
            stats = case.search(text, facets=("price", "sizes", "date", "depth")).facet_stats
            bounds = {name: (each.min, each.max) for name, each in stats.items()}
            assert bounds == {
                "price": (-5, -2.25), "sizes": (-7.5, -3), "date": (-631152000, -315619200), "depth": (-2, -0.125),
            }  # fmt: skip
        assert case.search("word", "price < -2.25", facets=("price",)).facet_stats["price"].max == -5

    def test_facet_values_option_can_exceed_one_hundred(self, case: Case) -> None:
        case.add(*(page(str(number), "word", color=f"c{number:03}") for number in range(320)))
        every = [f"c{number:03}" for number in range(320)]
        assert list(case.search("word", facets=("color",), facet_values=1000).facets["color"]) == every
        assert list(case.search("word", facets=("color",), facet_values=300).facets["color"]) == every[:300]
        assert list(case.search("word", facets=("color",)).facets["color"]) == every[:100]

    def test_star_counts_every_field_that_can_be_a_facet(self, case: Case) -> None:
        case.add(*SHOP)
        facets = case.search("reading", facets=("*",)).facets
        assert {"author", "date", "price", "brand", "tags", "stock", "sizes", "note", "code"} <= set(facets)
        assert not {"content", "excerpt", "title", "url"} & set(facets)

    def test_facets_return_at_most_100_values_by_count_then_value(self, case: Case) -> None:
        case.add(*(page(str(number), "word", color=f"c{number % 150:03}") for number in range(310)))
        values = case.search("word", facets=("color",)).facets["color"]
        assert list(values.items()) == [(f"c{n:03}", 3) for n in range(10)] + [(f"c{n:03}", 2) for n in range(10, 100)]

    @pytest.mark.parametrize("field", ["content", "excerpt", "title", "url", "unknown"])
    def test_facet_on_an_unsupported_field_is_rejected(self, case: Case, field: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", facets=(field,))
        assert caught.value.parameter == "facets"

    def test_facets_of_an_empty_result_are_empty(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", "author = nobody", facets=("author",)).facets == {"author": {}}

    @pytest.mark.parametrize(
        "asked",
        [{"filters": "colour = red"}, {"sort": (SortKey("colour"),)}, {"facets": ("colour",)}],
        ids=["filter", "sort", "facet"],
    )
    def test_filter_sort_and_facet_reject_an_unknown_field_with_the_same_message(
        self, case: Case, asked: dict[str, Any]
    ) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match=r"^No document has a field 'colour'\.$"):
            case.search("reading", **asked)
