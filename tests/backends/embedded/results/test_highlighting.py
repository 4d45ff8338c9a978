"""Marking never changes the text, whatever the text; and what matched is what is marked."""

from __future__ import annotations

import html
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Highlight
from backends.embedded.analysis.normalization import fold, terms_of
from backends.embedded.results.highlight_terms import HighlightTerms
from backends.embedded.results.highlighting import Highlighter
from backends.embedded.results.matches import MatchTerms, find_matches, fold_text
from backends.embedded.results.snippets import SnippetGenerator, crop_window

TRICKY = (
    "aAeÉéß İıſﬁæœøñ\u0301\u0308\u00ad\u200d\u200b<>&\"'-_.,+#@ \n\t"
    "日本語のテスト한국어กรุงเทพ مُحَمَّد שָׁלוֹם־ـहिन्दी Ёёй\u0306 Ωώς ½²ⷠⒶ⑩ｶ😀c++c#.net"
)
texts = st.text(alphabet=TRICKY, max_size=80) | st.text(max_size=60)
PRE, POST = "\ue000", "\ue001"


def marks_for(words: list[str], prefixes: list[str], sequences: list[tuple[str, ...]]) -> HighlightTerms:
    return HighlightTerms(
        {term: number for number, word in enumerate(words) for term in terms_of(word)},
        {folded: 100 for prefix in prefixes if (folded := fold(prefix)) and " " not in folded},
        {terms: 200 for words in sequences if len(terms := tuple(fold(word) for word in words if fold(word))) > 1},
    )


@settings(max_examples=300)
@given(texts, st.lists(texts, max_size=3), st.lists(texts, max_size=2), st.booleans())
def test_without_its_marks_a_highlight_is_the_text(
    text: str, words: list[str], prefixes: list[str], escape: bool
) -> None:
    text = text.replace(PRE, "").replace(POST, "")
    wish = Highlight(pre_tag=PRE, post_tag=POST, escape=escape, crop_fields={})
    marks = marks_for([*words, text[:9]], [*prefixes, text[3:7]], [tuple(text.split())])
    formatted = Highlighter(wish, marks).format({"title": text, "tags": [text, 1], "price": 5})
    plain = formatted["title"].replace(PRE, "").replace(POST, "")
    assert (html.unescape(plain) if escape else plain) == text or (escape and plain == html.escape(text))
    assert formatted["tags"] == [formatted["title"], 1]
    assert formatted["price"] == 5
    opened = [char for char in formatted["title"] if char in PRE + POST]
    assert opened == [PRE, POST] * (len(opened) // 2)


@settings(max_examples=300)
@given(st.lists(texts, max_size=30), texts, st.integers(1, 12))
def test_a_crop_is_a_part_of_the_text_around_a_match(parts: list[str], word: str, size: int) -> None:
    text = " ".join(parts)
    marks = marks_for([word, *parts[:1]], [], [])
    spans = find_matches(text, MatchTerms.of(marks.terms, marks.prefixes, marks.sequences))
    start, end = crop_window(text, spans, size)
    assert 0 <= start <= end <= len(text)
    if spans:
        assert any(start <= span[0] and span[1] <= end for span in spans)
    elif text:
        assert start == 0


@settings(max_examples=200)
@given(texts)
def test_every_word_of_a_text_is_found_in_it(text: str) -> None:
    for word in text.split():
        terms = terms_of(word)
        if len(terms) == 1 and any(char.isalpha() for char in word):
            assert find_matches(text, MatchTerms.of(dict.fromkeys(terms, 0), {}, {}))


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
    ("one\u200btwo", ["two"], [], "one\u200b[two]"),
])  # fmt: skip
def test_matches_are_marked_as_written(text: str, words: list[str], prefixes: list[str], marked: str) -> None:
    wish = Highlight(pre_tag="[", post_tag="]", escape=False, crop_fields={})
    assert Highlighter(wish, marks_for(words, prefixes, [])).format({"x": text})["x"] == marked


def test_every_character_is_marked_as_it_is_indexed() -> None:
    bracketed = range(0x2474, 0x249C)  # Indexed with their brackets and dots, between which any word is marked.
    ranges = (range(0x80, 0x3100), range(0xA640, 0xAC00), range(0xFB00, 0xFFF0), range(0x11000, 0x11200))
    for code in set().union(*ranges).difference(bracketed):
        text = f"ab{chr(code)}cd"
        terms = terms_of(text)
        for word in {"ab", "cd", *terms}:
            found = bool(find_matches(text, MatchTerms.of({word: 0}, {}, {})))
            assert found == (word in terms), f"U+{code:04X}: {word!r} in {terms}"


def test_a_phrase_is_marked_only_where_all_of_its_words_are_whole() -> None:
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={})
    highlighter = Highlighter(wish, marks_for([], [], [("राम", "घर")]))
    text = "राम घर, राम घरों, आराम घर, रामों घर"
    assert highlighter.format({"x": text})["x"] == text.replace("राम घर,", "[राम घर],", 1)


def test_the_crop_holds_the_most_different_matches() -> None:
    text = "alpha " + "x " * 100 + "alpha beta " + "y " * 100 + "alpha"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 6})
    formatted = Highlighter(wish, marks_for(["alpha", "beta"], [], [])).format({"content": text})["content"]
    assert formatted == "…x x [alpha] [beta] y y…"


@pytest.mark.parametrize("before", [3_900, 4_080, 4_090, 5_000, 16_300, 16_380, 20_000, 100_000])
def test_words_near_each_other_are_found_however_late_they_come(before: int) -> None:
    filler = "filler " * (before // 7)
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 4})
    highlighter = Highlighter(wish, marks_for(["alpha", "beta"], [], []))
    formatted = highlighter.format({"content": f"alpha {filler}alpha beta {filler}beta"})["content"]
    assert formatted == "…filler [alpha] [beta] filler…"


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(["alpha", "alphabet", "beta", "gamma ray", "x", "y\n", "é"]), max_size=4),
    st.integers(0, 40),
)
def test_a_part_has_as_many_different_words_as_any_other(words: list[str], shift: int) -> None:
    text = " ".join([*words, "f" * shift] + ["filler"] * 580 + words + ["filler"] * 1800 + words + ["filler"] * 300)
    marks = marks_for(["alpha", "beta", "delta"], ["gam"], [("gamma", "ray")])
    needles = MatchTerms.of(marks.terms, marks.prefixes, marks.sequences)
    text += " delta"
    spans, (start, end) = SnippetGenerator(needles).best_part(text, 30)
    every = find_matches(text, needles)

    def different(first: int, last: int) -> int:
        return len({number for at, to, number in every if first <= at and to <= last})

    assert different(start, end) >= max(different(at, at + 180) for at, _, _ in every)
    assert [span for span in spans if start <= span[0] and span[1] <= end] == [
        span for span in every if start <= span[0] and span[1] <= end
    ]


@pytest.mark.parametrize(("late", "shown"), [("beta", "[alpha] [beta]"), ("other", "[alpha] first")])
def test_a_text_is_looked_through_only_for_words_not_found_yet(late: str, shown: str) -> None:
    text = "alpha first " + "filler " * 1_000 + f"alpha {late}"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 2})
    assert shown in Highlighter(wish, marks_for(["alpha", "beta"], [], [])).format({"content": text})["content"]


@pytest.mark.parametrize(("count", "shown"), [(16, "[word5]"), (17, "[word3] x")])
def test_of_very_many_words_a_few_together_are_enough(count: int, shown: str) -> None:
    words = [f"word{number}" for number in range(count)]
    text = " ".join([*words[:4], "x", *["filler"] * 700, *words, "y"])
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 30})
    assert shown in Highlighter(wish, marks_for(words, [], [])).format({"content": text})["content"]


def test_a_text_is_not_looked_through_after_as_many_matches_as_a_crop_may_begin_with() -> None:
    text = "alpha " * 300 + "filler " * 700 + "alpha beta"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 2})
    formatted = Highlighter(wish, marks_for(["alpha", "beta"], [], [])).format({"content": text})["content"]
    assert formatted.startswith("[alpha] [alpha]")


def test_a_word_cut_by_the_first_look_is_not_a_match() -> None:
    text = "filler " * 584 + "alphabets " + "filler " * 10
    assert text[:4_096].endswith(" alphabet")
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 4})
    formatted = Highlighter(wish, marks_for(["alphabet"], [], [])).format({"content": text})["content"]
    assert "[" not in formatted


def test_matches_of_one_word_do_not_outweigh_another_word() -> None:
    text = "walk walks walking walked " + "x " * 60 + "walk dog"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 6})
    marks = marks_for(["walk walks walking walked", "dog"], [], [])
    assert Highlighter(wish, marks).format({"content": text})["content"].endswith("[walk] [dog]")


@settings(max_examples=300)
@given(texts)
def test_letters_fold_to_the_same_letter_in_every_text(text: str) -> None:
    folded, places = fold_text(text)
    if places is None:
        alone = [fold_text(char)[0] for char in text]
        for char, there, here in zip(text, folded, alone, strict=True):
            assert there == here or not char.isalnum()


def test_fields_that_are_not_wished_for_are_not_marked() -> None:
    wish = Highlight(pre_tag="[", post_tag="]", fields=("title",), crop_fields={})
    formatted = Highlighter(wish, marks_for(["a"], [], [])).format({"title": "a", "content": "a & b"})
    assert formatted == {"title": "[a]", "content": "a &amp; b"}


def test_a_hostile_text_is_marked_in_time() -> None:
    sequences = [("a", "b"), ("a", "a"), ("c++",) * 40, ("++",) * 40, ("ิ",) * 40]
    marks = marks_for(["a", "aa", "b"], ["a"], sequences)
    for text in (
        "a " * 100_000, "a" * 200_000, "a-" * 100_000, "é" * 200_000, "e\u0301 " * 60_000, "日" * 200_000,
        "+" * 200_000, "c++ " * 50_000, " ิ" * 100_000, "ิ" * 200_000, "a" + "\u0301" * 99_999 + "\u0323" * 99_999,
    ):  # fmt: skip
        started = time.process_time()
        Highlighter(Highlight(), marks).format({"content": text})
        assert time.process_time() - started < 1.0
