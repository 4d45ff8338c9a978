"""Which words of a text are marked, where the engine says what matched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.servers.highlighter import Matcher
from backends.servers.tokenizer import query_parts


@given(
    st.lists(st.text("abc", min_size=1, max_size=5).map("wxyz".__add__), max_size=12),
    st.lists(st.text("wxyzabc", min_size=1, max_size=9), max_size=12),
)
def test_a_word_matches_if_it_begins_with_any_word_that_matched(matched: list[str], words: list[str]) -> None:
    matcher = Matcher.of(query_parts("q"), matched)
    text = " ".join([*words, *(word + "c" for word in matched)])
    marked = {text[start:end] for start, end in matcher.spans(text)}
    assert {word for part in marked for word in part.split()} == {
        word for word in text.split() if word.startswith(tuple(matched))
    }
    firsts = matcher.beginnings
    assert not any(other.startswith(first) for first in firsts for other in firsts if other != first)
