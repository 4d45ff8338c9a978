"""Weights of words that several indexes share."""

from __future__ import annotations

import pytest

from backends.base import Level
from backends.query import SearchQuery, WordCounts
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


def test_words_are_counted_with_the_number_of_documents() -> None:
    case = index_of(page("a", "Copper kettle"), page("b", "Copper pan"), page("c", "Tin pan"))
    counts = case.backend.count_words(case.index, SearchQuery("copper kettle zinc"))
    assert counts == WordCounts(3, {"copper": 2, "kettle": 1, "zinc": 0})
    assert counts + counts == WordCounts(6, {"copper": 4, "kettle": 2, "zinc": 0})
    assert case.backend.count_words(case.index, SearchQuery("*")) == WordCounts(3)


def test_word_that_is_rare_in_all_indexes_weighs_more_than_in_its_own() -> None:
    pages = [page(str(number), "Copper") for number in range(9)]
    case = index_of(*pages, page("both", "Kettle"))
    own = [hit.id for hit in case.search("copper kettle").hits]
    shared = WordCounts(1000, {"copper": 9, "kettle": 900})
    merged = [hit.id for hit in case.search("copper kettle", word_counts=shared).hits]
    assert own[0] == "both"
    assert merged[-1] == "both"


def test_name_of_several_words_keeps_about_the_share_that_it_has_in_its_index() -> None:
    case = index_of(page("a", "std::swap"), page("b", "std::move"), page("c", "std::copy"), page("d", "Other"))
    own, shared = (
        case.search("std::swap", scored=True, word_counts=counts).hits[0].score
        for counts in (None, WordCounts(1000, {"std": 990, "swap": 5}))
    )
    assert own is not None
    assert shared is not None
    assert shared.share == pytest.approx(own.share, rel=0.3)


def test_hit_of_a_part_of_a_word_comes_after_all_hits_of_words() -> None:
    query = "std::shared_lock"
    parts = index_of(page("a", "A lock"), page("b", "Tin")).search(query, scored=True).hits
    words = index_of(page("c", "std::shared_lock"), page("d", "Tin")).search(query, scored=True).hits
    assert [hit.score.level for hit in (*parts, *words) if hit.score] == [Level.PARTS, Level.WORDS]
