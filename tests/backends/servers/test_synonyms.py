"""Which queries a change of synonyms concerns, and in which other words they are searched."""

from __future__ import annotations

import pytest

from backends.servers.synonyms import SynonymChange

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
    assert "筆記本 計算機" in list(change.rewordings("筆記本電腦"))


def test_words_are_replaced_by_new_synonyms_and_left_out_from_the_ends() -> None:
    found = list(SynonymChange((), (TV,)).rewordings("cheap TV"))
    assert found[0] == "cheap television set"
    assert {"cheap tv", "cheap", "TV", "television set"} <= set(found)


def test_words_with_old_synonyms_are_searched_literally_too() -> None:
    found = list(SynonymChange((CAR,), ()).rewordings("car"))
    assert set(found) == {"automobile", '"automobile"', "car", '"car"'}


def test_quoted_and_excluded_words_stay() -> None:
    found = list(SynonymChange((), (CAR,)).rewordings('car "car" -car'))
    assert found[0] == 'automobile "car" -"car"'
    assert not any('"automobile"' in text for text in found)
