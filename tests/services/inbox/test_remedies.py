"""Remedies add a synonym or a pinned page to the search settings."""

from __future__ import annotations

from typing import Any

import pytest

from app.services.inbox import add_synonyms, pin_document
from app.services.search_settings import settings_with_defaults


def settings(**given: Any) -> dict[str, Any]:
    return settings_with_defaults(given)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [["bike", "bicycle", "cycle"]]),
        ([["tv", "television"]], [["tv", "television"], ["bike", "bicycle", "cycle"]]),
        ([["velo", "Bike"]], [["velo", "Bike", "bicycle", "cycle"]]),
        ([["bike", "Bicycle"]], [["bike", "Bicycle", "cycle"]]),
    ],
    ids=["none so far", "other links stay", "synonyms join the word's group", "no duplicates"],
)
def test_synonyms_are_added_without_changing_other_groups_or_settings(
    before: list[list[str]], after: list[list[str]]
) -> None:
    old = settings(synonyms=before, language="en")

    new = add_synonyms(old, "bike", ["bicycle", "cycle"])

    assert new == settings(synonyms=after, language="en")
    assert old == settings(synonyms=before, language="en")


def test_newly_pinned_page_is_placed_before_already_pinned_pages() -> None:
    old = settings(pinned=[{"query": "hours", "ids": ["1", "2"]}, {"query": "map", "ids": ["3"]}])

    assert pin_document(old, " Hours ", "2")["pinned"][0] == {"query": "hours", "ids": ["2", "1"]}
    assert pin_document(old, "way", "9")["pinned"][2] == {"query": "way", "ids": ["9"]}
    assert old["pinned"][0]["ids"] == ["1", "2"]


def test_last_of_several_pinned_entries_for_a_query_is_extended() -> None:
    old = settings(
        pinned=[{"query": "hours", "ids": ["1"]}, {"query": "map", "ids": ["3"]}, {"query": "hours", "ids": ["2"]}]
    )

    assert pin_document(old, "hours", "9")["pinned"] == [
        {"query": "hours", "ids": ["9", "2"]},
        {"query": "map", "ids": ["3"]},
    ]


def test_pinning_a_page_removes_it_from_the_hidden_pages() -> None:
    old = settings(hidden=[{"query": "hours", "ids": ["1", "2"]}, {"query": "jobs", "ids": ["1"]}])

    once = pin_document(old, "hours", "1")
    twice = pin_document(once, "hours", "2")

    assert once["hidden"] == [{"query": "hours", "ids": ["2"]}, {"query": "jobs", "ids": ["1"]}]
    assert twice["hidden"] == [{"query": "jobs", "ids": ["1"]}]
