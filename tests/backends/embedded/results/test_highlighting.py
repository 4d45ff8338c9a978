"""Highlighting never changes the text and marks exactly the matches."""

from __future__ import annotations

import html
import time
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.analysis.normalization import terms_of
from backends.embedded.results.highlighting import HighlightTerms, TermMatches
from backends.embedded.results.matches import MatchTerms, find_matches
from backends.query import Highlight
from tests.backends.embedded.results.highlighted import highlighter_of, marks_for, texts

PRE, POST = "\ue000", "\ue001"


@pytest.mark.slow
@settings(max_examples=300)
@given(texts, st.lists(texts, max_size=3), st.lists(texts, max_size=2), st.booleans())
def test_removing_highlight_tags_restores_the_text(
    text: str, words: list[str], prefixes: list[str], escape: bool
) -> None:
    text = text.replace(PRE, "").replace(POST, "")
    wish = Highlight(pre_tag=PRE, post_tag=POST, escape=escape, crop_fields={})
    marks = marks_for([*words, text[:9]], [*prefixes, text[3:7]], [tuple(text.split())])
    formatted = highlighter_of(wish, marks).format([{"title": text, "tags": [text, 1], "price": 5}])[0]
    plain = formatted["title"].replace(PRE, "").replace(POST, "")
    assert (html.unescape(plain) if escape else plain) == text or (escape and plain == html.escape(text))
    assert formatted["tags"] == [formatted["title"], 1]
    assert formatted["price"] == 5
    opened = [char for char in formatted["title"] if char in PRE + POST]
    assert opened == [PRE, POST] * (len(opened) // 2)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(texts, min_size=1, max_size=5), st.lists(texts, max_size=3), st.lists(texts, max_size=2), st.booleans())
def test_several_texts_get_the_same_spans_as_each_text_alone(
    several: list[str], words: list[str], prefixes: list[str], has_stop_word: bool
) -> None:
    marks = marks_for([*words, several[0][:5]], [*prefixes, several[-1][:3]], [tuple(" ".join(several[-2:]).split())])
    weights = dict.fromkeys(range(1 if has_stop_word else 0, len(words) + 1), 1.0)
    matches = TermMatches(replace(marks, weights=weights))

    assert matches.spans_in(several) == [spans for text in several for spans in matches.spans_in((text,))]


def test_phrases_and_stop_words_do_not_reach_from_one_field_into_the_next() -> None:
    terms = HighlightTerms({"the": 0, "sea": 1}, sequences={("blue", "whale"): 2}, weights={1: 1.0, 2: 1.0})
    document = {"title": "All is blue", "author": "Whale", "section": "By the sea", "excerpt": "The"}

    formatted = highlighter_of(Highlight(pre_tag="[", post_tag="]", crop_fields={}), terms).format([document])[0]

    assert formatted == {**document, "section": "By [the] [sea]"}


@pytest.mark.parametrize(("document", "marked"), [
    ({"title": "Commit", "content": "No commit omits."}, {"title": "[Commit]", "content": "No [commit] omits."}),
    ({"title": "Omit", "content": "Commits."}, {"title": "[Omit]", "content": "Commits."}),
    ({"title": "Omit", "excerpt": "A comet."}, {"title": "Omit", "excerpt": "A [comet]."}),
    ({"title": "Omit", "tags": ["commit"]}, {"title": "[Omit]", "tags": ["[commit]"]}),
    ({"title": "Massage", "content": "Omit"}, {"title": "Massage", "content": "[Omit]"}),
    ({"title": "Massage, message", "content": "omit, commit"},
     {"title": "Massage, [message]", "content": "omit, [commit]"}),
])  # fmt: skip
def test_unlikely_word_is_highlighted_only_if_the_document_has_no_better_form(
    document: dict[str, Any], marked: dict[str, Any]
) -> None:
    terms = HighlightTerms({"commit": 0, "comet": 0, "omit": 0, "message": 1}, unlikely=frozenset({"omit"}))
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={})

    assert highlighter_of(wish, terms).format([document])[0] == marked


@pytest.mark.parametrize(("text", "words", "prefixes", "marked"), [
    ("The houses", ["houses"], [], "The [houses]"),
    ("The Houses of housing", [], ["hous"], "The [Houses] of [housing]"),
    ("warehouse house", ["house"], [], "warehouse [house]"),
    ("Straße und STRASSE", ["strasse"], [], "[Straße] und [STRASSE]"),
    ("cafe\u0301 café CAFE", ["cafe"], [], "[cafe\u0301] [café] [CAFE]"),
    ("Œuvre ﬁle", ["oeuvre", "file"], [], "[Œuvre] [ﬁle]"),
    ("İstanbul", ["istanbul"], [], "[İstanbul]"),
    ("東京都と京都", ["京都"], [], "東[京都]と[京都]"),
    ("ＦＵＬＬ width", ["full"], [], "[ＦＵＬＬ] width"),
    ("مُحَمَّد كتب", ["محمد"], [], "[مُحَمَّد] كتب"),
    ("C++ and C# or .NET, c", ["c++", "c#", ".net"], [], "[C++] and [C#] or [.NET], c"),
    ("Ёлка", ["елка"], [], "[Ёлка]"),
    ("snake_case x", ["case"], [], "snake_[case] x"),
    ("قال محـمد هنا", ["محمد"], [], "قال [محـمد] هنا"),
    ("בית־ספר גדול", ["ספר"], [], "בית־[ספר] גדול"),
    ("ꙋⷩ Йод", ["ꙋⷩ"], [], "[ꙋⷩ] Йод"),
    ("И\u0306од и", ["йод"], [], "[И\u0306од] и"),
    ("か\u3099く", ["がく"], [], "[か\u3099く]"),
    ("ｶﾞｽ x", ["ガス"], [], "[ｶﾞｽ] x"),
    (unicodedata.normalize("NFD", "한국어 말"), ["국어"], [], unicodedata.normalize("NFD", "한[국어] 말")),
    ("Ⓐ ⑩", ["10"], [], "Ⓐ [⑩]"),
    ("घरों घर", ["घर"], [], "घरों [घर]"),
    ("one\u200btwo", ["onetwo"], [], "[one\u200btwo]"),
])  # fmt: skip
def test_matches_are_highlighted_as_written(text: str, words: list[str], prefixes: list[str], marked: str) -> None:
    wish = Highlight(pre_tag="[", post_tag="]", escape=False, crop_fields={})
    assert highlighter_of(wish, marks_for(words, prefixes, [])).format([{"x": text}])[0]["x"] == marked


@pytest.mark.slow
def test_highlighted_words_agree_with_indexed_terms_for_every_character() -> None:
    bracketed = range(0x2474, 0x249C)  # Indexed with brackets and dots; words between them are highlighted.
    ranges = (range(0x80, 0x3100), range(0xA640, 0xAC00), range(0xFB00, 0xFFF0), range(0x11000, 0x11200))
    for code in set().union(*ranges).difference(bracketed):
        text = f"ab{chr(code)}cd"
        terms = terms_of(text)
        for word in {"ab", "cd", *terms}:
            found = bool(find_matches(text, MatchTerms.of({word: 0}, {}, {})))
            assert found == (word in terms), f"U+{code:04X}: {word!r} in {terms}"


def test_phrase_is_highlighted_only_where_all_of_its_words_are_complete() -> None:
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={})
    highlighter = highlighter_of(wish, marks_for([], [], [("राम", "घर")]))
    text = "राम घर, राम घरों, आराम घर, रामों घर"
    assert highlighter.format([{"x": text}])[0]["x"] == text.replace("राम घर,", "[राम घर],", 1)


def test_unrequested_fields_are_not_highlighted() -> None:
    wish = Highlight(pre_tag="[", post_tag="]", fields=("title",), crop_fields={})
    formatted = highlighter_of(wish, marks_for(["a"], [], [])).format([{"title": "a", "content": "a & b"}])[0]
    assert formatted == {"title": "[a]", "content": "a &amp; b"}


def test_hostile_text_is_highlighted_in_bounded_time() -> None:
    sequences = [("a", "b"), ("a", "a"), ("c++",) * 40, ("++",) * 40, ("ิ",) * 40]
    marks = marks_for(["a", "aa", "b"], ["a"], sequences)
    for text in (
        "a " * 100_000, "a" * 200_000, "a-" * 100_000, "é" * 200_000, "e\u0301 " * 60_000, "日" * 200_000,
        "+" * 200_000, "c++ " * 50_000, " ิ" * 100_000, "ิ" * 200_000, "a" + "\u0301" * 99_999 + "\u0323" * 99_999,
    ):  # fmt: skip
        started = time.process_time()
        highlighter_of(Highlight(), marks).format([{"content": text}])[0]
        assert time.process_time() - started < 1.0
