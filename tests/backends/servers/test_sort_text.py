"""Order-preserving text encodings of values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.servers.documents import facet_text, facet_token, ordered_number, sort_text


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_ordered_numbers_compare_as_the_numbers_do(left: float, right: float) -> None:
    assert (ordered_number(left) < ordered_number(right)) == (left < right)
    assert (ordered_number(left) == ordered_number(right)) == (left == right)


@given(st.text(max_size=60).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
def test_facet_tokens_round_trip_to_their_text(text: str) -> None:
    token = facet_token(text)
    assert facet_text(token) == text
    assert all(len(word) <= 96 and word.isalnum() for word in token.split(" "))


def test_sort_texts_ignore_case_and_are_never_empty() -> None:
    texts = ["", "a", "B", "c", "é"]
    assert sorted(texts, key=sort_text) == texts
    assert sort_text("") != ""
