"""Highlighting of words that the engine reports as matched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.servers.highlighter import Matcher, crop_window
from backends.servers.tokenizer import query_parts


@given(
    st.lists(st.text("abc", min_size=1, max_size=5).map("wxyz".__add__), max_size=12),
    st.lists(st.text("wxyzabc", min_size=1, max_size=9), max_size=12),
)
def test_words_starting_with_a_matched_word_are_highlighted(matched: list[str], words: list[str]) -> None:
    matcher = Matcher.of(query_parts("q"), matched)
    text = " ".join([*words, *(word + "c" for word in matched)])
    marked = {text[start:end] for start, end in matcher.spans(text)}
    assert {word for part in marked for word in part.split()} == {
        word for word in text.split() if word.startswith(tuple(matched))
    }
    firsts = matcher.beginnings
    assert not any(other.startswith(first) for first in firsts for other in firsts if other != first)


@given(
    st.lists(st.text("abC-+ 1_", min_size=1, max_size=6), max_size=5),
    st.lists(st.text("abcABC-+#_.1", min_size=1, max_size=6), max_size=20),
)
def test_ascii_text_is_highlighted_like_unicode_text(query: list[str], words: list[str]) -> None:
    matcher = Matcher.of(query_parts(" ".join(query)), words[:2])
    text = " ".join(words)
    assert matcher.spans(text) == matcher.spans(f"{text} é")


def test_excerpt_of_a_long_text_surrounds_its_matches() -> None:
    filler = "word " * 60_000
    matcher = Matcher.of(query_parts("needle pin"), ())
    for text in (f"{filler}needle pin tail {filler}", f"needle pin {filler}", f"{filler}needle pin"):
        ((spans, (start, end)),) = matcher.best_parts([text], 30)
        assert len(spans) == 2
        assert "needle pin" in text[start:end]
        assert 20 <= len(text[start:end].split()) <= 30
    assert crop_window(filler, [], 30) == (0, len("word " * 30) - 1)
