"""Turns explanations of hits into sentences."""

from __future__ import annotations

from typing import Any

import pytest

from app.pages.search.hits import show_reasons


@pytest.mark.parametrize(
    ("explanation", "sentences"),
    [
        ({"pinned": True, "score": None}, ["It is pinned for this search."]),
        ({"rank": -2.0, "beyond_ranks": True}, [
            "Its rank is -2.", "It comes after the results that were ordered by rank.",
        ]),
        ({"has_phrase": True}, [
            "It contains the quoted words next to each other, so it comes before all results that don’t.",
        ]),
        ({"has_phrase": False}, [
            "It doesn’t contain the quoted words next to each other, so it comes after all results that do.",
        ]),
        ({"preferred_over": "manual@2"}, [
            "It replaces “manual@2”, which matches better but is not the preferred page.",
        ]),
        ({"meaning": {"place_by_words": 7, "cosine": 0.6234, "score": 0.5112}}, [
            "Ranked by words only, it would be result 7.",
            "Its similarity in meaning to the search is 0.62, where 1 is identical.",
            "Its combined score for words and meaning is 0.511, which determines its position.",
        ]),
        ({"meaning": {"place_by_words": 1, "cosine": None, "score": 0.7}}, [
            "Ranked by words only, it would be result 1.",
            "Its meaning hasn’t been analyzed yet, so it gets the average score of the other results.",
            "Its combined score for words and meaning is 0.700, which determines its position.",
        ]),
        ({"clicks": {"moved_up": 2, "gain": 2.45}}, [
            "Clicks moved it up by 2 positions; clicks on this page are worth 2.5.",
        ]),
        ({"clicks": {"moved_up": -1, "gain": 0.0}}, [
            "Clicks on other results moved it down by 1 position; clicks on this page are worth 0.0.",
        ]),
    ],
)  # fmt: skip
def test_each_reason_for_a_position_has_a_sentence_with_its_figures(
    explanation: dict[str, Any], sentences: list[str]
) -> None:
    reasons = show_reasons(explanation)

    assert reasons is not None
    assert list(reasons.sentences) == sentences


def test_score_is_marked_as_partial_if_meaning_also_orders_results() -> None:
    meaning = {"place_by_words": 1, "cosine": 0.5, "score": 0.7}
    by_words, mixed = show_reasons({"score": 2.0}), show_reasons({"score": 2.0, "meaning": meaning})

    assert by_words is not None
    assert mixed is not None
    assert (by_words.is_whole, mixed.is_whole) == (True, False)
