"""Tests for engines with a native filter syntax, inherited in addition to the contract."""

from __future__ import annotations

from typing import ClassVar

import pytest

from backends.errors import BackendRejected
from backends.filters import parse_filter
from tests.backends.contract import SHOP, Case


class NativeFilters:
    """Tests of native filters. An engine's subclass defines expressions for the documents of SHOP in its own syntax."""

    ANN: ClassVar[str]
    BAD: ClassVar[tuple[str, ...]]
    UNKNOWN: ClassVar[tuple[str, int]]

    def test_filter_text_is_combined_with_a_filter_tree(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", filters="").total == 5
        both = self.native(case, self.ANN, portable_filter=parse_filter("price > 100"))
        assert both == ["shelf"]

    def test_invalid_filter_is_rejected_with_its_position(self, case: Case) -> None:
        case.add(*SHOP)
        for expression in self.BAD:
            with pytest.raises(BackendRejected) as caught:
                self.native(case, expression)
            assert caught.value.parameter == "filters"
        expression, position = self.UNKNOWN
        with pytest.raises(BackendRejected) as caught:
            self.native(case, expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    def native(self, case: Case, filters: str, **options: object) -> list[str]:
        """Return the IDs that match an expression in the engine's native syntax."""
        from backends.query import SearchQuery

        query = SearchQuery("reading", native_filter=filters, kinds=case.kinds, **options)
        return sorted(hit.id for hit in case.backend.search(case.index, query).hits)

    def test_search_in_a_non_text_field_returns_no_hits(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.ids("reading", fields=("content",)) != []
        assert case.ids("reading", fields=("url",)) == []
