"""Inflected forms of synonyms, and queries affected by a change of synonyms."""

from __future__ import annotations

import pytest

from backends.query import OneWaySynonyms, SearchSettings, Synonyms
from backends.servers.synonyms import SynonymChange, SynonymIndex, inflected_forms

CAR = ("car", "automobile")
TV = ("tv", "television set")


def change_of(before: Synonyms, after: Synonyms) -> SynonymChange:
    return SynonymChange(SearchSettings(synonyms=before), SearchSettings(synonyms=after))


@pytest.mark.parametrize("query", ["car", "the Car wash", '"automobile club"', "buy -car"])
def test_query_containing_a_changed_synonym_is_affected(query: str) -> None:
    assert change_of((), (CAR,)).concerns(query)
    assert change_of((CAR,), ()).concerns(query)


@pytest.mark.parametrize("query", ["tv", "scar", "", "?!"])
def test_unrelated_query_is_not_affected(query: str) -> None:
    assert not change_of((TV,), (TV, CAR)).concerns(query)
    assert not change_of((TV, CAR), (TV,)).concerns(query)


def test_change_between_both_directions_and_one_affects_the_query() -> None:
    one_way = OneWaySynonyms("car", ("automobile",))
    assert change_of((CAR,), (one_way,)).concerns("car")
    assert change_of((one_way,), (OneWaySynonyms("automobile", ("car",)),)).concerns("car")
    assert not change_of((one_way, TV), (one_way,)).concerns("car")


def test_groups_sharing_a_phrase_with_a_changed_group_are_affected() -> None:
    assert change_of((("tv", "screen"),), (("tv", "screen"), TV)).concerns("screen")


def test_synonym_change_without_effect_affects_no_query() -> None:
    change = change_of((("Car ", "automobile"), ("alone", "Alone")), (("car", "automobile"),))
    assert not change.concerns("car")
    assert not change.concerns("alone")


def test_text_without_spaces_is_affected_by_a_synonym_inside_it() -> None:
    change = change_of((), (("電腦", "計算機"),))
    assert change.concerns("筆記本電腦")


def test_change_of_language_affects_queries_with_unchanged_synonyms() -> None:
    before = SearchSettings("en", synonyms=(CAR,))
    assert SynonymChange(before, SearchSettings("de", synonyms=(CAR,))).concerns("car")
    assert not SynonymChange(before, SearchSettings("en", synonyms=(CAR,))).concerns("car")


def test_inflected_query_is_affected() -> None:
    assert change_of((), (CAR,)).concerns("cheap cars")


@pytest.mark.parametrize(("language", "word", "form"), [
    ("en", "couch", "couches"), ("en", "couches", "couch"), ("en", "battery", "batteries"), ("en", "cities", "city"),
    ("de", "lampe", "lampen"), ("de", "bild", "bilder"), ("fr", "bateau", "bateaux"),
    ("es", "ordenador", "ordenadores"), ("it", "libro", "libri"), ("nl", "stoel", "stoelen"),
    ("sv", "lampa", "lampor"), ("da", "stol", "stole"),
])  # fmt: skip
def test_word_is_accompanied_by_its_inflected_forms(language: str, word: str, form: str) -> None:
    assert form in inflected_forms(language, word)


@pytest.mark.parametrize(("language", "word"), [("en", "3d"), ("en", "x"), ("ja", "\u732b"), ("en", "sheep7")])
def test_word_without_inflected_forms_stands_alone(language: str, word: str) -> None:
    assert inflected_forms(language, word) == []


def test_last_word_of_a_phrase_gets_inflected_forms_in_addition_to_synonyms() -> None:
    ((searched, others),) = SynonymIndex.of(
        SearchSettings(synonyms=(OneWaySynonyms("tablet", ("galaxy tab",)),))
    ).entries
    assert ("tablets",) in searched
    assert ("galaxy", "tabs") in others
    assert ("galaxies", "tab") not in others
    large = tuple(f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(60))
    ((searched, _),) = SynonymIndex.of(SearchSettings(synonyms=(large,))).entries
    assert searched == tuple((word,) for word in large)
