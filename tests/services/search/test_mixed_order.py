"""The order of hits by words and meaning."""

from __future__ import annotations

from typing import cast

import pytest

from app.services.search.mixed_order import MEANING_WEIGHT, MIXED_HITS, MixedOrder, mixed
from backends.base import Hit, SearchBackend, SearchResult
from backends.errors import ResponseTooLarge
from backends.query import SearchQuery
from tests.services.embedding.stub_embedder import StubEmbedder


def test_mixed_order_combines_positions_and_cosine_similarities() -> None:
    assert (MEANING_WEIGHT, MIXED_HITS) == (0.8, 100)
    # The first place is worth .1 more than the second; an eighth of the cosine's range makes up for it.
    assert list(mixed(["a", "b"], {"a": 0.2, "b": 0.3})) == ["a", "b"]
    assert mixed(["a", "b"], {"a": 0.2, "b": 0.35}) == pytest.approx({"b": 0.38, "a": 0.36})
    assert list(mixed(["a", "b"], {"a": 0.2, "b": 0.35})) == ["b", "a"]
    # Far down the list, places count for little.
    assert list(mixed(list("abcde"), {"a": 0.9, "b": 0.1, "c": 0.1, "d": 0.1, "e": 0.3})) == list("aebcd")


def test_document_without_a_vector_is_ranked_among_the_others() -> None:
    assert list(mixed(["a", "b", "c"], {"a": 0.1, "c": 0.9})) == ["c", "b", "a"]


class EngineOfLargeHits:
    """An engine that cannot return more than twenty hits at once."""

    def search(self, index: str, query: SearchQuery) -> SearchResult:
        if query.limit > 20:
            raise ResponseTooLarge
        return SearchResult((Hit("large", b"{}"),), 1)


def test_hits_too_large_to_read_at_once_are_ordered_by_words() -> None:
    order = MixedOrder(StubEmbedder(), lambda site_id, ids, dimension: {})
    query = SearchQuery("how do I get a refund", limit=20)

    result = order.search(cast(SearchBackend, EngineOfLargeHits()), "site_1", 1, query)

    assert ([hit.id for hit in result.hits], result.mixed) == (["large"], False)
