"""Which queries a change of synonyms concerns."""

from __future__ import annotations

import pytest

from backends.servers.tokenizer import SynonymChange

CAR = ("car", "automobile")
TV = ("tv", "television set")


@pytest.mark.parametrize("query", ["car", "the Car wash", '"automobile club"', "buy -car"])
def test_a_query_with_a_word_of_a_changed_group_is_concerned(query: str) -> None:
    assert SynonymChange((), (CAR,)).concerns(query)
    assert SynonymChange((CAR,), ()).concerns(query)


@pytest.mark.parametrize("query", ["tv", "scar", "", "?!"])
def test_any_other_query_is_not(query: str) -> None:
    assert not SynonymChange((TV,), (TV, CAR)).concerns(query)
    assert not SynonymChange((TV, CAR), (TV,)).concerns(query)


def test_groups_that_share_a_phrase_with_a_changed_one_are_concerned_with_it() -> None:
    assert SynonymChange((("tv", "screen"),), (("tv", "screen"), TV)).concerns("screen")


def test_what_is_written_otherwise_but_means_the_same_is_no_change() -> None:
    change = SynonymChange((("Car ", "automobile"), ("alone", "Alone")), (("car", "automobile"),))
    assert not change.concerns("car")
    assert not change.concerns("alone")


def test_a_run_without_spaces_is_concerned_by_what_is_in_it() -> None:
    change = SynonymChange((), (("電腦", "計算機"),))
    assert change.concerns("筆記本電腦")
