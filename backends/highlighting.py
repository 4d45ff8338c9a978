"""Documents with their matches marked: the same text around the marks, whatever finds the matches."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backends.base import Highlight

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

_NEVER_TEXT = frozenset({"id", "url", "date"})
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""


class Matches(Protocol):
    """Where the matches of a query are in a text. Spans are in order and do not overlap."""

    def spans(self, text: str) -> Sequence[Span]:
        """All matches in a text."""
        ...

    def best_part(self, text: str, words: int) -> tuple[Sequence[Span], Span]:
        """The part of a text, about ``words`` words long, that shows the query best, and the matches in it."""
        ...


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, wish: Highlight, matches: Matches):
        self.wish = wish
        self._matches = matches
        self._everywhere = "*" in wish.fields

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields shown, with matches marked, everything else escaped if wished, and long ones cropped."""
        return {name: self._value(name, value) for name, value in self.wish.chosen(document).items()}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(name, value)
        if isinstance(value, list):
            return [self._text(name, item) if isinstance(item, str) else item for item in value]
        return value

    def _text(self, name: str, text: str) -> str:
        if not text:
            return text
        words = self.wish.crop_fields.get(name)
        marked = name in self.wish.fields or (self._everywhere and name not in _NEVER_TEXT)
        if words is not None:
            return self._cropped(text, words, marked)
        if not marked:
            return self._escaped(text)
        return self._marked(text, self._matches.spans(text), 0, len(text))

    def _cropped(self, text: str, words: int, marked: bool) -> str:
        spans, (start, end) = self._matches.best_part(text, words)
        part = self._marked(text, spans, start, end) if marked else self._escaped(text[start:end])
        before = self.wish.crop_marker if start > 0 else ""
        after = self.wish.crop_marker if end < len(text) else ""
        return f"{before}{part}{after}"

    def _marked(self, text: str, spans: Sequence[Span], start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for span_start, span_end in spans:
            if span_end > end:
                break
            if span_start < at:
                continue
            parts += (
                self._escaped(text[at:span_start]), self.wish.pre_tag, self._escaped(text[span_start:span_end]),
                self.wish.post_tag,
            )  # fmt: skip
            at = span_end
        parts.append(self._escaped(text[at:end]))
        return "".join(parts)

    def _escaped(self, text: str) -> str:
        return html.escape(text) if self.wish.escape else text
