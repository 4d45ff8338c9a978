"""Totals, facets, pages, and ``matched`` of a search agree, whatever the search uses."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from backends.filters import OneOf
from backends.query import Boost, Effects, Highlight, SearchQuery, SearchSettings, SortKey, WordCounts
from tests.backends.contract.case import SHOP, Case

OPTIONS: dict[str, dict[str, Any]] = {
    **{attribute: {} for attribute in ("text", "limit", "offset", "facets", "kinds")},
    "native_filter": {"filters": "author = Ann"},
    "portable_filter": {"portable_filter": OneOf("author", ("ann",))},
    "sort": {"sort": (SortKey("price"),)},
    "facet_values": {"facet_values": 1000},
    "highlight": {"highlight": Highlight()},
    "settings": {
        "settings": SearchSettings(pinned={"reading": ("chair",)}, boosts=(Boost(3, OneOf("author", ("bob",))),))
    },
    "fields": {"fields": ("content",)},
    "all_words": {"all_words": True},
    "sections": {"sections": 2},
    "distinct": {"distinct": "author"},
    "effects": {"effects": Effects(pinned=("sofa",), hidden=("lamp",))},
    "explain": {"explain": True},
    "answers": {"answers": True},
    "returned_fields": {"returned_fields": frozenset({"id", "title"})},
    "scored": {"scored": True},
    "word_counts": {"word_counts": WordCounts(1000, {"reading": 900, "wood": 5})},
    "max_bytes": {"max_bytes": 1_000_000},
    "is_preview": {"is_preview": True},
}
"""Attribute of a search to a search that uses it."""


class AgreementContract:
    """Contract of the numbers in a result."""

    def test_totals_facets_pages_and_matched_agree(self, case: Case) -> None:
        case.add(*SHOP)
        assert {each.name for each in fields(SearchQuery)} == OPTIONS.keys(), "add the attribute to OPTIONS"
        for attribute, options in OPTIONS.items():
            for text in ("reading", "wood reading", "reeding"):
                pages = [case.search(text, limit=2, offset=at, facets=("id",), **options) for at in range(0, 10, 2)]
                first = pages[0]
                ids = [hit.id for page in pages for hit in page.hits]

                assert len(ids) == len(set(ids)) == first.total, (attribute, text)
                assert {(page.total, page.matched, page.corrected_query) for page in pages} == {
                    (first.total, first.matched, first.corrected_query)
                }, (attribute, text)
                if attribute != "distinct":  # Facets count documents, not groups.
                    assert first.facets["id"] == dict.fromkeys(ids, 1), (attribute, text)
