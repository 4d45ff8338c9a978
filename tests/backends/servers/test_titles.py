"""Whether a title has the beginnings of words that were typed."""

from __future__ import annotations

import pytest

from backends.servers.backend import has_beginnings, title_query


@pytest.mark.parametrize(("text", "wanted"), [
    ("Opening ho", "opening ho"), ('"Opening" -ho*', "opening ho"), ("L’École", "l ecole"), ("C++", "cplusplus"),
    ("日本 x", "日本 x"), ("  a\tb ", "a b"),
])  # fmt: skip
def test_what_was_typed_is_searched_as_words_without_signs(text: str, wanted: str) -> None:
    query = title_query(text, 8)

    assert query is not None
    assert (query.text, query.limit, query.fields, query.all_words) == (wanted, 8, ("title",), True)


@pytest.mark.parametrize("text", ["", " ", "!?", "-", "*", "\u202e", "😀"])
def test_without_a_word_nothing_is_searched(text: str) -> None:
    assert title_query(text, 8) is None


def test_of_very_many_words_the_first_are_searched() -> None:
    query = title_query("a " * 256, 8)

    assert query is not None
    assert len(query.text.split()) == 24


@pytest.mark.parametrize(("title", "typed", "has"), [
    ("Opening hours", "ope", True), ("Opening hours", "hours open", True), ("Opening hours", "open hours", False),
    ("Opening hours", "opening hoars", False), ("Reopening", "open", False), ("École", "ecol", True),
    ("日本語の文法", "本語", True), ("日本語の文法", "文法 日本", True), ("日本語の文法", "英語", False),
    ("Learn C++", "cplus", True), ("", "a", False),
])  # fmt: skip
def test_all_words_must_be_there_and_the_last_as_a_beginning(title: str, typed: str, has: bool) -> None:
    assert has_beginnings(title, typed.split()) is has
