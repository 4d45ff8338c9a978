"""Matching of titles by word prefixes."""

from __future__ import annotations

import pytest

from backends.servers.backend import has_word_prefixes, title_query


@pytest.mark.parametrize(("text", "wanted"), [
    ("Opening ho", "opening ho"), ('"Opening" -ho*', "opening ho"), ("L’École", "l ecole"), ("C++", "cplusplus"),
    ("日本 x", "日本 x"), ("  a\tb ", "a b"),
])  # fmt: skip
def test_typed_text_is_searched_as_plain_words(text: str, wanted: str) -> None:
    query = title_query(text, 8)

    assert query is not None
    assert (query.text, query.limit, query.fields, query.all_words) == (wanted, 8, ("title",), True)


@pytest.mark.parametrize("text", ["", " ", "!?", "-", "*", "\u202e", "😀"])
def test_text_without_words_yields_no_query(text: str) -> None:
    assert title_query(text, 8) is None


def test_only_the_first_24_words_are_searched() -> None:
    query = title_query("a " * 256, 8)

    assert query is not None
    assert len(query.text.split()) == 24


@pytest.mark.parametrize(("title", "typed", "has"), [
    ("Opening hours", "ope", True), ("Opening hours", "hours open", True), ("Opening hours", "open hours", False),
    ("Opening hours", "opening hoars", False), ("Reopening", "open", False), ("École", "ecol", True),
    ("日本語の文法", "本語", True), ("日本語の文法", "文法 日本", True), ("日本語の文法", "英語", False),
    ("Learn C++", "cplus", True), ("", "a", False),
])  # fmt: skip
def test_title_must_contain_every_word_and_the_last_one_as_a_prefix(title: str, typed: str, has: bool) -> None:
    assert has_word_prefixes(title, typed.split()) is has
