"""Optimized text processing for indexing returns the same results as the plain steps."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backends.analysis import normalization
from backends.analysis.languages import _words, toned_words
from backends.analysis.normalization import (
    ANALYZER,
    UNSEGMENTED_RUN,
    analyze,
    compose,
    expand_symbols,
    fold,
    terms_of,
)
from backends.embedded.index.schema import equality_term
from backends.query import Highlight
from backends.text import beyond_ascii
from backends.values import _COMPOSED, fold_value
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

ODD = (
    "aAzZ09_ +#.\t-éßÉſİıŉƒǆŒ\u0301\u0327\u0345\u00ad\u200b\u200d\u20d7\u2028\u2126\u212a\u212b\u2adcΣςσάЁёй"
    "אִاأَةیکव\u094dก็ไทยကို日本語ガｶﾞ한국각\ufb01\uff21\U0001d400🔬👍🏽\U00011131\u2de0\ud800½⅓↉№"
)
texts = st.one_of(
    st.text(st.sampled_from(ODD), max_size=40),
    st.text(st.characters(), max_size=40),
    st.lists(st.sampled_from(["c++", "C#", ".net", ".NETs", "a.net", "g++4", "++", "#", "é", "日本", " ", "x", "_"]))
    .map("".join),
)  # fmt: skip


def plainly_composed(text: str) -> str:
    text = normalization._WORD_END.sub(" ", text)
    text = normalization._COMPATIBILITY.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    text = normalization._IGNORED_SPACE.sub("", unicodedata.normalize("NFC", text))
    return unicodedata.normalize("NFC", text.translate(normalization._FOLDS))


def plainly_spelt_out(text: str) -> str:
    text = re.sub(r"\b([A-Za-z])\+\+", r"\1plusplus ", text)
    text = re.sub(r"([^\W_]{2})\+\+(?![^\W_])", r"\1 plusplus ", text)
    text = re.sub(r"\b([A-Za-z])#(?!\w)", r"\1sharp ", text)
    return re.sub(r"(?<![\w.])\.(?=net(?![^\W_]))", " dot", text, flags=re.IGNORECASE)


@settings(max_examples=500)
@given(texts)
@example("e\u0301x C++ .NET")
@example("Ω 🔬 a\u20d7b")
def test_optimized_text_preparation_equals_the_plain_steps(text: str) -> None:
    assert compose(text) == plainly_composed(text)
    assert expand_symbols(text) == plainly_spelt_out(text)
    assert analyze(text) == plainly_spelt_out(UNSEGMENTED_RUN.sub(normalization._paired, plainly_composed(text)))


def test_folded_characters_are_not_folded_again() -> None:
    assert not any(ord(char) in normalization._FOLDS for fold in normalization._FOLDS.values() for char in fold or "")


@given(texts)
def test_beyond_ascii_returns_exactly_the_non_ascii_characters(text: str) -> None:
    assert beyond_ascii(text) == "".join(char for char in text if ord(char) > 127)


@pytest.mark.slow
@settings(max_examples=500)
@given(texts.filter(lambda text: "\ud800" not in text and text.isprintable()))
def test_optimized_value_folding_equals_plain_folding(text: str) -> None:
    assert fold_value(text) == unicodedata.normalize("NFC", text.strip().casefold())


def test_characters_treated_as_composed_never_compose() -> None:
    followers = {
        int(parts[1], 16)
        for parts in (unicodedata.decomposition(chr(code)).split() for code in range(sys.maxunicode + 1))
        if len(parts) == 2 and not parts[0].startswith("<")
    } | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # fmt: skip
    for code in range(128, sys.maxunicode + 1):
        char = chr(code)
        if _COMPOSED.fullmatch(char):
            assert unicodedata.normalize("NFC", char) == char
            assert not unicodedata.combining(char)
            assert code not in followers


@pytest.mark.parametrize("length", [0, 31, 32, 33, 34, 3000])
def test_equality_terms_are_equal_only_for_equal_values(length: int) -> None:
    value = "é" + "x" * length
    assert equality_term("f", value) == equality_term("f", f" {value.upper()} ")
    assert (
        len(
            {
                equality_term("f", value),
                equality_term("g", value),
                equality_term("f", value + "y"),
                equality_term("f", "e"),
            }
        )
        == 4
    )
    assert len(equality_term("f", value).encode()) <= 40


@settings(max_examples=500)
@given(texts)
def test_words_are_runs_of_letters(text: str) -> None:
    letters_and_signs = r"(?:[^\W\d_]|[\u0900-\u0963\u0971-\u0dff])+"
    assert _words(text, beyond_ascii(text)) == re.findall(letters_and_signs, text.lower())


def test_excess_combining_marks_do_not_change_a_word() -> None:
    text = "a" + "\u0301" * 100_000 + "\u0323" * 100_000 + "b"
    assert terms_of(text) == ["ab"]
    assert toned_words(text) == toned_words("a" + "\u0301" * 30 + "b")
    assert fold_value(text) == fold_value("a" + "\u0301" * 30 + "b")


@pytest.mark.parametrize("word", ["a", "net", "plusplus", "z" * 158, "z" * 159, "z" * 160, "z" * 161])
def test_plain_word_folds_to_the_term_of_the_analyzer(word: str) -> None:
    assert fold(word) == "".join(ANALYZER.analyze(word))


@pytest.mark.parametrize(("text", "typed", "marked"), [
    ("使用node.js开发", "node.js", "使用<em>node.js</em>开发"), ("版本3.11.7发布", "3.11.7", "版本<em>3.11.7</em>发布"),
    ("使用open source软件", '"open source"', "使用<em>open source</em>软件"),
    ("node.js는 좋다", "node.js", "<em>node.js</em>는 좋다"),
    ("学习C#编程入门", "C#", "学习<em>C#</em>编程入门"), ("学习C++编程", '"C++编程"', "学习<em>C++编程</em>"),
    ("The notepad++ plugin", '"notepad++ plugin"', "The <em>notepad++ plugin</em>"),
    ("ราคา ฿100", "฿100", "ราคา ฿<em>100</em>"), ("កម្ពុជា។សួស្តី", '"កម្ពុជា។សួស្តី"', "<em>កម្ពុជា។សួស្តី</em>"),
    ("ދިވެހި-އިނގިރޭސި", "ދިވެހި-އިނގިރޭސި", "<em>ދިވެހި</em>-<em>އިނގިރޭސި</em>"), ("हिन्दी।भाषा", "भाषा", "हिन्दी।<em>भाषा</em>"),
])  # fmt: skip
def test_words_next_to_any_script_or_symbol_are_found_and_highlighted(text: str, typed: str, marked: str) -> None:
    (hit,) = index_of(page("a", "x", text), page("b", "x", "y")).search(typed, highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == marked
