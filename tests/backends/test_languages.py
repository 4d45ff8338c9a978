"""Each language has one record, which says all that is known of it."""

from __future__ import annotations

import re

import pytest
import Stemmer

from backends.embedded.analysis.languages import recognise, stem, stop_words
from backends.embedded.analysis.normalization import fold
from backends.languages import LANGUAGES

STEMMED = [code for code, language in LANGUAGES.items() if language.stemmer]


def test_a_language_is_recognised_by_its_letters_or_by_its_stop_words() -> None:
    assert [code for code, language in LANGUAGES.items() if not (language.letters or language.stop_words)] == []
    assert all(re.fullmatch("[a-z]{2}", code) for code in LANGUAGES)
    assert len({language.name for language in LANGUAGES.values()}) == len(LANGUAGES)


@pytest.mark.parametrize("code", STEMMED)
def test_a_language_with_a_stemmer_has_stop_words_by_which_it_is_recognised(code: str) -> None:
    assert LANGUAGES[code].stemmer in Stemmer.algorithms()
    assert len(stop_words(code)) > 25
    assert stem(code, "abc")
    assert recognise(LANGUAGES[code].stop_words[:600]) == code


@pytest.mark.parametrize("code", [code for code, language in LANGUAGES.items() if language.accents])
def test_each_accented_letter_comes_after_the_plain_one_that_folding_makes_of_it(code: str) -> None:
    accents = LANGUAGES[code].accents

    for at, letter in enumerate(accents):
        assert fold(letter) in accents[: at + 1], letter
