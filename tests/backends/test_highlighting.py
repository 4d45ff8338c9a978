"""What stands around the marks, whatever finds the matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.highlighting import Highlighter, Span
from backends.query import Highlight


class Every:
    """Matches a word wherever it is; the best part is the first of so many characters."""

    def __init__(self, word: str):
        self._word = word

    def in_document(self, document: Mapping[str, Any]) -> Every:
        return self

    def spans(self, text: str) -> list[Span]:
        places = [at for at in range(len(text)) if text.startswith(self._word, at)]
        return [(at, at + len(self._word)) for at in places]

    def best_part(self, text: str, words: int) -> tuple[list[Span], Span]:
        return self.spans(text), (0, min(words, len(text)))


def test_all_but_the_tags_is_escaped() -> None:
    formatted = Highlighter(Highlight(crop_fields={}), Every("<b>")).format({"title": "a <b> & c"})

    assert formatted == {"title": "a <em>&lt;b&gt;</em> &amp; c"}


def test_texts_in_lists_are_marked_and_other_values_are_kept() -> None:
    formatted = Highlighter(Highlight(crop_fields={}), Every("x")).format({"tags": ["x", "y"], "sizes": [1], "n": 5})

    assert formatted == {"tags": ["<em>x</em>", "y"], "sizes": [1], "n": 5}


def test_ids_addresses_and_dates_are_marked_only_if_they_are_named() -> None:
    document = {"id": "x", "url": "/x", "date": "x", "title": "x"}

    everywhere = Highlighter(Highlight(), Every("x")).format(document)
    named = Highlighter(Highlight(fields=("url",)), Every("x")).format(document)

    assert everywhere == {**document, "title": "<em>x</em>"}
    assert named == {**document, "url": "/<em>x</em>"}


def test_a_match_across_the_edge_of_what_is_shown_is_not_marked() -> None:
    formatted = Highlighter(Highlight(crop_fields={"content": 4}), Every("ab")).format({"content": "ab.abab"})

    assert formatted == {"content": "<em>ab</em>.a…"}


def test_a_field_that_is_not_marked_is_cropped_all_the_same() -> None:
    wish = Highlight(fields=("title",), crop_fields={"content": 3})

    assert Highlighter(wish, Every("a")).format({"content": "aaaa"}) == {"content": "aaa…"}
