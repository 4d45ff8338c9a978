"""Scores, by which the hits of several indexes are merged."""

from __future__ import annotations

import pytest

from backends.base import Level
from backends.filters import OneOf
from backends.query import Boost, SearchSettings, SortKey
from tests.backends.contract.case import SHOP, Case, page


class ScoreContract:
    """Contract of ``scored`` searches."""

    def test_document_with_every_word_scores_higher_and_pins_come_first(self, case: Case) -> None:
        case.add(page("some", "Copper", "kettle"), page("all", "Kettle", "copper and brass"), page("pin", "Tin"))
        settings = SearchSettings(pinned={"copper brass": ("pin",)})
        hits = case.search("copper brass", scored=True, settings=settings).hits

        scores = {hit.id: hit.score for hit in hits}
        assert hits[0].id == "pin"
        assert scores["pin"] is not None
        assert scores["pin"].level is Level.PINNED
        assert scores["all"] is not None
        assert scores["some"] is not None
        assert scores["all"].share > scores["some"].share > 0

    def test_scores_never_increase_from_hit_to_hit(self, case: Case) -> None:
        case.add(*SHOP)
        boosts = SearchSettings(boosts=(Boost(5, OneOf("author", ("bob",))),))
        for options in ({}, {"settings": boosts}, {"distinct": "author"}, {"sort": (SortKey("price"),)}):
            for text in ("reading", "reading wood", "reeding"):
                scores = [hit.score for hit in case.search(text, scored=True, **options).hits]
                assert None not in scores, (options, text)
                assert scores == sorted(scores, reverse=True), (options, text)

    def test_hits_without_fields_are_counted_and_scored(self, case: Case) -> None:
        case.add(*SHOP)
        whole = case.search("reading", scored=True)
        bare = case.search("reading", scored=True, returned_fields=frozenset())
        shares = [[hit.score.share for hit in result.hits if hit.score] for result in (bare, whole)]
        assert shares[0] == pytest.approx(shares[1])  # Recency changes from moment to moment.
        assert bare.total == whole.total
        assert {bytes(hit.json) for hit in bare.hits} == {b"{}"}

    def test_hits_of_unscored_search_have_no_score(self, case: Case) -> None:
        case.add(*SHOP)
        assert {hit.score for hit in case.search("reading").hits} == {None}
