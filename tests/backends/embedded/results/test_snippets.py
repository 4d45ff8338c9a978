"""The snippet of a long text contains the most distinct matches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.embedded.results.matches import MatchTerms, find_matches
from backends.embedded.results.snippets import SnippetGenerator, crop_window
from backends.query import Highlight
from tests.backends.embedded.results.highlighted import highlighter_of, marks_for, texts


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(texts, max_size=30), texts, st.integers(1, 12))
def test_crop_is_a_part_of_the_text_around_a_match(parts: list[str], word: str, size: int) -> None:
    text = " ".join(parts)
    marks = marks_for([word, *parts[:1]], [], [])
    spans = find_matches(text, MatchTerms.of(marks.terms, marks.prefixes, marks.sequences))
    start, end = crop_window(text, spans, size)
    assert 0 <= start <= end <= len(text)
    if spans:
        assert any(start <= span[0] and span[1] <= end for span in spans)
    elif text:
        assert start == 0


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["a", "word", "two_parts", "x1", "...", "-", "averylongword" * 5]), max_size=60),
    st.integers(0, 60),
    st.integers(0, 12),
)
def test_ascii_text_is_cropped_like_unicode_text(words: list[str], at: int, size: int) -> None:
    text = " ".join(words)
    start = len(" ".join(words[:at]))
    found = [(start, min(len(text), start + 4), 0)] if start < len(text) else []
    beyond_ascii = text.replace(" ", "\N{EM SPACE}")
    assert crop_window(text, found, size) == crop_window(beyond_ascii, found, size)


def test_crop_contains_the_most_distinct_matches() -> None:
    text = "alpha " + "x " * 100 + "alpha beta " + "y " * 100 + "alpha"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 6})
    formatted = highlighter_of(wish, marks_for(["alpha", "beta"], [], [])).format([{"content": text}])[0]["content"]
    assert formatted == "…x x [alpha] [beta] y y…"


@pytest.mark.parametrize("before", [3_900, 4_080, 4_090, 5_000, 16_300, 16_380, 20_000, 100_000])
def test_adjacent_words_are_found_at_any_position(before: int) -> None:
    filler = "filler " * (before // 7)
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 4})
    highlighter = highlighter_of(wish, marks_for(["alpha", "beta"], [], []))
    formatted = highlighter.format([{"content": f"alpha {filler}alpha beta {filler}beta"}])[0]["content"]
    assert formatted == "…filler [alpha] [beta] filler…"


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(["alpha", "alphabet", "beta", "gamma ray", "x", "y\n", "é"]), max_size=4),
    st.integers(0, 40),
)
def test_best_part_has_as_many_distinct_words_as_any_other_part(words: list[str], shift: int) -> None:
    text = " ".join([*words, "f" * shift] + ["filler"] * 580 + words + ["filler"] * 1800 + words + ["filler"] * 300)
    marks = marks_for(["alpha", "beta", "delta"], ["gam"], [("gamma", "ray")])
    needles = MatchTerms.of(marks.terms, marks.prefixes, marks.sequences)
    text += " delta"
    ((spans, (start, end)),) = SnippetGenerator(needles).best_parts([text], 30)
    every = find_matches(text, needles)

    def different(first: int, last: int) -> int:
        return len({number for at, to, number in every if first <= at and to <= last})

    assert different(start, end) >= max(different(at, at + 180) for at, _, _ in every)
    assert [span for span in spans if start <= span[0] and span[1] <= end] == [
        span for span in every if start <= span[0] and span[1] <= end
    ]


@pytest.mark.parametrize(("late", "shown"), [("beta", "[alpha] [beta]"), ("other", "[alpha] first")])
def test_text_is_scanned_only_until_all_words_are_found(late: str, shown: str) -> None:
    text = "alpha first " + "filler " * 1_000 + f"alpha {late}"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 2})
    assert shown in highlighter_of(wish, marks_for(["alpha", "beta"], [], [])).format([{"content": text}])[0]["content"]


@pytest.mark.parametrize(("count", "shown"), [(16, "[word5]"), (17, "[word3] x")])
def test_with_more_than_16_words_an_early_part_with_some_of_them_is_enough(count: int, shown: str) -> None:
    words = [f"word{number}" for number in range(count)]
    text = " ".join([*words[:4], "x", *["filler"] * 700, *words, "y"])
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 30})
    assert shown in highlighter_of(wish, marks_for(words, [], [])).format([{"content": text}])[0]["content"]


def test_scan_stops_after_the_maximum_number_of_matches() -> None:
    text = "alpha " * 300 + "filler " * 700 + "alpha beta"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 2})
    formatted = highlighter_of(wish, marks_for(["alpha", "beta"], [], [])).format([{"content": text}])[0]["content"]
    assert formatted.startswith("[alpha] [alpha]")


def test_word_truncated_by_the_first_scan_is_not_a_match() -> None:
    text = "filler " * 584 + "alphabets " + "filler " * 10
    assert text[:4_096].endswith(" alphabet")
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 4})
    formatted = highlighter_of(wish, marks_for(["alphabet"], [], [])).format([{"content": text}])[0]["content"]
    assert "[" not in formatted


def test_repeated_matches_of_one_word_do_not_outweigh_another_word() -> None:
    text = "walk walks walking walked " + "x " * 60 + "walk dog"
    wish = Highlight(pre_tag="[", post_tag="]", crop_fields={"content": 6})
    marks = marks_for(["walk walks walking walked", "dog"], [], [])
    assert highlighter_of(wish, marks).format([{"content": text}])[0]["content"].endswith("[walk] [dog]")
