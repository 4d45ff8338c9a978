"""What every engine with a filter syntax of its own promises about it; inherited beside the contract."""

from __future__ import annotations

from typing import ClassVar

import pytest

from backends.errors import BackendRejected
from backends.filters import parse_filter
from tests.backends.contract import SHOP, Case


class NativeFilters:
    """Given by an engine's tests: expressions in its syntax over the little shop, and malformed ones."""

    ANN: ClassVar[str]
    BAD: ClassVar[tuple[str, ...]]
    UNKNOWN: ClassVar[tuple[str, int]]

    def test_a_filter_tree_and_a_filter_text_are_both_held(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", filters="").total == 5
        both = self.native(case, self.ANN, filter=parse_filter("price > 100"))
        assert both == ["shelf"]

    def test_a_bad_filter_is_rejected_with_the_place(self, case: Case) -> None:
        case.add(*SHOP)
        for expression in self.BAD:
            with pytest.raises(BackendRejected) as caught:
                self.native(case, expression)
            assert caught.value.part == "filters"
        expression, position = self.UNKNOWN
        with pytest.raises(BackendRejected) as caught:
            self.native(case, expression)
        assert (caught.value.part, caught.value.position) == ("filters", position)

    def native(self, case: Case, filters: str, **options: object) -> list[str]:
        """Ids found by an expression in the engine's own syntax."""
        from backends.query import SearchQuery

        query = SearchQuery("reading", filters=filters, kinds=case.kinds, **options)
        return sorted(hit.id for hit in case.backend.search(case.index, query).hits)

    def test_a_search_in_fields_that_hold_no_text_finds_nothing(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.ids("reading", fields=("content",)) != []
        assert case.ids("reading", fields=("url",)) == []
