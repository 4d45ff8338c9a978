"""Each language has one record with all of its properties."""

from __future__ import annotations

import re

import pytest
import Stemmer

from backends.analysis.languages import detect_language, stem, stop_words
from backends.analysis.normalization import fold
from backends.languages import LANGUAGES

STEMMED = [code for code, language in LANGUAGES.items() if language.stemmer]


def test_every_language_has_letters_or_stop_words_for_detection() -> None:
    assert [code for code, language in LANGUAGES.items() if not (language.letters or language.stop_words)] == []
    assert all(re.fullmatch("[a-z]{2}", code) for code in LANGUAGES)
    assert len({language.name for language in LANGUAGES.values()}) == len(LANGUAGES)


@pytest.mark.parametrize("code", STEMMED)
def test_language_with_a_stemmer_is_detected_by_its_stop_words(code: str) -> None:
    assert LANGUAGES[code].stemmer in Stemmer.algorithms()
    assert len(stop_words(code)) > 25
    assert stem(code, "abc")
    assert detect_language(LANGUAGES[code].stop_words[:600]) == code


@pytest.mark.parametrize("code", [code for code, language in LANGUAGES.items() if language.accents])
def test_accented_letters_follow_the_plain_letter_that_folding_produces(code: str) -> None:
    accents = LANGUAGES[code].accents

    for at, letter in enumerate(accents):
        assert fold(letter) in accents[: at + 1], letter
