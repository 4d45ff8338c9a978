"""Text around highlighted matches, independent of the matcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.highlighting import Highlighter
from backends.query import Highlight
from backends.sentences import Span


class Every:
    """Matches every occurrence of a word; the best part is the beginning of the text."""

    def __init__(self, word: str):
        self._word = word

    def in_document(self, document: Mapping[str, Any]) -> Every:
        return self

    def spans(self, text: str) -> list[Span]:
        starts = [at for at in range(len(text)) if text.startswith(self._word, at)]
        return [(at, at + len(self._word)) for at in starts]

    def spans_in(self, texts: Sequence[str]) -> list[list[Span]]:
        return [self.spans(text) for text in texts]

    def best_parts(self, texts: Sequence[str], words: int) -> list[tuple[list[Span], Span]]:
        return [(self.spans(text), (0, min(words, len(text)))) for text in texts]


def test_everything_except_highlight_tags_is_escaped() -> None:
    formatted = Highlighter(Highlight(crop_fields={}), Every("<b>")).format([{"title": "a <b> & c"}])[0]

    assert formatted == {"title": "a <em>&lt;b&gt;</em> &amp; c"}


def test_text_in_lists_is_highlighted_and_other_values_are_unchanged() -> None:
    formatted = Highlighter(Highlight(crop_fields={}), Every("x")).format([{"tags": ["x", "y"], "sizes": [1], "n": 5}])[
        0
    ]

    assert formatted == {"tags": ["<em>x</em>", "y"], "sizes": [1], "n": 5}


def test_ids_urls_and_dates_are_highlighted_only_on_request() -> None:
    document = {"id": "x", "url": "/x", "date": "x", "title": "x"}

    everywhere = Highlighter(Highlight(), Every("x")).format([document])[0]
    named = Highlighter(Highlight(fields=("url",)), Every("x")).format([document])[0]

    assert everywhere == {**document, "title": "<em>x</em>"}
    assert named == {**document, "url": "/<em>x</em>"}


def test_match_across_the_crop_boundary_is_not_highlighted() -> None:
    formatted = Highlighter(Highlight(crop_fields={"content": 4}), Every("ab")).format([{"content": "ab.abab"}])[0]

    assert formatted == {"content": "<em>ab</em>.a…"}


def test_field_without_highlighting_is_still_cropped() -> None:
    wish = Highlight(fields=("title",), crop_fields={"content": 3})

    assert Highlighter(wish, Every("a")).format([{"content": "aaaa"}])[0] == {"content": "aaa…"}
