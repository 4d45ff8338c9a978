"""Queries affected by a change of synonyms."""

from __future__ import annotations

import pytest

from backends.query import OneWaySynonyms
from backends.servers.tokenizer import SynonymChange

CAR = ("car", "automobile")
TV = ("tv", "television set")


@pytest.mark.parametrize("query", ["car", "the Car wash", '"automobile club"', "buy -car"])
def test_query_containing_a_changed_synonym_is_affected(query: str) -> None:
    assert SynonymChange((), (CAR,)).concerns(query)
    assert SynonymChange((CAR,), ()).concerns(query)


@pytest.mark.parametrize("query", ["tv", "scar", "", "?!"])
def test_unrelated_query_is_not_affected(query: str) -> None:
    assert not SynonymChange((TV,), (TV, CAR)).concerns(query)
    assert not SynonymChange((TV, CAR), (TV,)).concerns(query)


def test_change_between_both_directions_and_one_affects_the_query() -> None:
    one_way = OneWaySynonyms("car", ("automobile",))
    assert SynonymChange((CAR,), (one_way,)).concerns("car")
    assert SynonymChange((one_way,), (OneWaySynonyms("automobile", ("car",)),)).concerns("car")
    assert not SynonymChange((one_way, TV), (one_way,)).concerns("car")


def test_groups_sharing_a_phrase_with_a_changed_group_are_affected() -> None:
    assert SynonymChange((("tv", "screen"),), (("tv", "screen"), TV)).concerns("screen")


def test_synonym_change_without_effect_affects_no_query() -> None:
    change = SynonymChange((("Car ", "automobile"), ("alone", "Alone")), (("car", "automobile"),))
    assert not change.concerns("car")
    assert not change.concerns("alone")


def test_text_without_spaces_is_affected_by_a_synonym_inside_it() -> None:
    change = SynonymChange((), (("電腦", "計算機"),))
    assert change.concerns("筆記本電腦")
