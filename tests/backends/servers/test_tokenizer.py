"""Queries are tokenized for server engines as for the embedded engine."""

from __future__ import annotations

import unicodedata

import pytest

from backends.analysis.normalization import EMOJI, terms_of
from backends.query import SearchSettings
from backends.servers.tokenizer import (
    folded_words,
    meilisearch_separators,
    plain_punctuation,
    query_parts,
    query_stop_words,
    without_stop_words,
)
from backends.text import WORD, word_boundaries
from backends.typesense.schema import collection_schema


def test_gershayim_and_curly_quotes_form_phrases() -> None:
    def together(text: str) -> list[tuple[str, ...]]:
        return [part.words for part in query_parts(text) if part.phrase]

    assert together('צה"ל וארה״ב') == [("צה", "ל"), ("וארה", "ב")]
    assert together('"צה"ל בארה״ב" חוק') == [("צה", "ל", "בארה", "ב")]
    assert together("“opening hours” now") == [("opening", "hours")]


def test_word_boundaries_match_the_embedded_engine() -> None:
    blocks = ((0, 0x2800), (0x2900, 0x2E80), (0x3000, 0x3400), (0xA000, 0xAC00), (0xF900, 0x10000), (0x1F000, 0x1FB00))
    for char in (chr(code) for first, end in blocks for code in range(first, end)):
        kind = unicodedata.category(char)
        if kind in ("Cn", "Co", "Cs") or kind[0] in "LNM" or EMOJI.match(char):
            continue  # The embedded engine reads emoji as words.
        # The embedded engine reads the numero sign as a word between two others.
        terms = ["first", "no", "second"] if char == "№" else ["first", "second"]
        splits = terms_of(f"first{char}second") == terms and WORD.match(char) is None
        if kind == "Cf" and not splits:
            continue  # The embedded engine ignores invisible characters; servers may end words at them.
        assert (char in word_boundaries()) == splits, f"U+{ord(char):04X}"


def test_typesense_text_contains_only_boundaries_that_it_can_split_at() -> None:
    known = {*collection_schema("site_1")["token_separators"], " ", "\n"}
    for char in word_boundaries():
        plain = plain_punctuation(f"first{char}second")
        assert (len(plain), plain[5] in known) == (len("first second"), True), f"U+{ord(char):04X}"
    assert plain_punctuation("don\u2019t \u201cgo\u201d\u2026") == 'don\'t "go".'


def test_meilisearch_gets_frequent_separators_and_folded_words_for_the_others() -> None:
    assert {*"$<=>^|~\u00a0\u202f°€£©®™→"} <= {*meilisearch_separators()} <= {*word_boundaries()}
    # Meilisearch compares every word of every text with each separator.
    assert len(meilisearch_separators()) < 700
    assert folded_words("first😀second") == "first second"
    assert folded_words("first 😀 second, €5") == ""


@pytest.mark.parametrize(("text", "settings", "searched"), [
    ("When are tickets refunded?", SearchSettings(), ["tickets", "refunded"]),
    ("how to get a boat", SearchSettings(), ["boat"]),
    ("le bateau de la mer", SearchSettings(), ["bateau", "mer"]),
    ("war museum", SearchSettings(), ["war", "museum"]),
    ("die hard", SearchSettings(), ["die", "hard"]),
    ("die Fähre", SearchSettings(language="de"), ["fahre"]),
    ("the ferry", SearchSettings(language="en"), ["ferry"]),
    ("the ferry", SearchSettings(language="tlh"), ["the", "ferry"]),
    ("to be or not to be", SearchSettings(), ["to", "be", "or", "not", "to", "be"]),
    ("how to get a boat", SearchSettings(stop_words=frozenset()), ["how", "to", "get", "a", "boat"]),
    ("how to get a boat", SearchSettings(stop_words=frozenset({"Boat"})), ["how", "to", "get", "a"]),
])  # fmt: skip
def test_stop_words_of_the_site_or_query_language_are_not_searched(
    text: str, settings: SearchSettings, searched: list[str]
) -> None:
    parts = query_parts(text)
    kept = without_stop_words(parts, query_stop_words(parts, settings))
    assert [word for part in kept for word in part.words] == searched


def test_stop_words_in_phrases_and_exclusions_are_searched() -> None:
    parts = query_parts('"to be" or not -the question')
    kept = without_stop_words(parts, query_stop_words(parts, SearchSettings()))
    assert [(part.words, part.excluded) for part in kept] == [
        (("to", "be"), False), (("the",), True), (("question",), False)
    ]  # fmt: skip
