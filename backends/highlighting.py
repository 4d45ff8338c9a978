"""Documents with their matches marked: the same text around the marks, whatever finds the matches."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from backends.base import Highlight

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

_NEVER_TEXT = frozenset({"id", "url", "date"})
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""

_OPEN, _CLOSE = "\0(", "\0)"
"""Stand for the tags while the text is escaped, all at once; no document has NUL."""


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
        self._escape: Callable[[str], str] = html.escape if wish.escape else str
        self._ways: dict[str, tuple[int | None, bool]] = {}

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields shown, with matches marked, everything else escaped if wished, and long ones cropped."""
        return {
            name: self._text(name, value) if isinstance(value, str) else self._value(name, value)
            for name, value in self.wish.chosen(document).items()
        }

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._text(name, item) if isinstance(item, str) else item for item in value]
        return value

    def _text(self, name: str, text: str) -> str:
        if not text:
            return text
        words, is_marked = self._ways.get(name) or self._way(name)
        if words is not None:
            return self._cropped(text, words, is_marked)
        spans = self._matches.spans(text) if is_marked else ()
        return self._marked(text, spans, 0, len(text))

    def _way(self, name: str) -> tuple[int | None, bool]:
        """To how many words a field is cropped, and whether its matches are marked."""
        is_marked = name in self.wish.fields or ("*" in self.wish.fields and name not in _NEVER_TEXT)
        way = self._ways[name] = (self.wish.crop_fields.get(name), is_marked)
        return way

    def _cropped(self, text: str, words: int, is_marked: bool) -> str:
        spans, (start, end) = self._matches.best_part(text, words)
        part = self._marked(text, spans if is_marked else (), start, end)
        before = self.wish.crop_marker if start > 0 else ""
        after = self.wish.crop_marker if end < len(text) else ""
        return f"{before}{part}{after}"

    def _marked(self, text: str, spans: Sequence[Span], start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for span_start, span_end in spans:
            if span_end > end:
                break
            if span_start >= at:
                parts += (text[at:span_start], _OPEN, text[span_start:span_end], _CLOSE)
                at = span_end
        parts.append(text[at:end])
        escaped = self._escape("".join(parts))
        if at == start:
            return escaped
        return escaped.replace(_OPEN, self.wish.pre_tag).replace(_CLOSE, self.wish.post_tag)
