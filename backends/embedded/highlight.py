"""Documents with their matches marked."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from backends.base import Highlight
from backends.embedded.planner import Marks
from backends.embedded.spans import Span, find_spans, needles_for

_WORD = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e01-\u0e5b\u1000-\u109f\u1780-\u17dd]{1,2}|[^\\W_]+")
_NEVER_TEXT = frozenset({"id", "url", "date"})
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""

_CHARS_PER_WORD = 40


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, wish: Highlight, marks: Marks):
        self.wish = wish
        terms = [term for term in marks.terms if not any(term.startswith(start) for start in marks.prefixes)]
        self.needles = needles_for(sorted(terms), sorted(marks.prefixes))
        self.sequences = list(marks.sequences)
        self.everywhere = "*" in wish.fields

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document's fields with matches marked, everything else escaped if wished, and long ones cropped."""
        return {name: self._value(name, value) for name, value in document.items()}

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
        marked = name in self.wish.fields or (self.everywhere and name not in _NEVER_TEXT)
        if not marked and words is None:
            return self._escaped(text)
        spans = find_spans(text, self.needles, self.sequences)
        start, end = (0, len(text)) if words is None else crop_window(text, spans, words)
        parts = [] if start == 0 else [self.wish.crop_marker]
        at = start
        if marked:
            for span_start, span_end, _ in spans:
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
        if end < len(text):
            parts.append(self.wish.crop_marker)
        return "".join(parts)

    def _escaped(self, text: str) -> str:
        return html.escape(text) if self.wish.escape else text


def crop_window(text: str, spans: list[Span], words: int) -> tuple[int, int]:
    """The part of a text, about ``words`` words long, with the most different matches; the first of equals."""
    words = max(1, words)
    first, last = _best_stretch(spans, words * 6)
    if first < 0:
        start, anchor = 0, 0
        budget_before = 0
    else:
        start, anchor = spans[first][0], spans[last][1]
        budget_before = max(0, words - _count(text, start, anchor)) // 2
    inside = _count(text, start, anchor)
    new_start, used = _back(text, start, budget_before)
    end, used_after = _forward(text, anchor, words - inside - used)
    missing = words - inside - used - used_after
    if missing > 0 and end >= len(text):
        new_start, _ = _back(text, new_start, missing)
    return new_start, end


def _best_stretch(spans: list[Span], width: int) -> tuple[int, int]:
    best = (-1, -1)
    best_worth = 0.0
    for at, (start, _, _) in enumerate(spans[:200]):
        seen: set[str] = set()
        last = at
        for there in range(at, min(len(spans), at + 30)):
            if spans[there][1] - start > width and there > at:
                break
            seen.add(spans[there][2])
            last = there
        worth = len(seen) + (last - at) * 0.01
        if worth > best_worth:
            best, best_worth = (at, last), worth
    return best


def _count(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _WORD.finditer(text, start, end))


def _forward(text: str, start: int, words: int) -> tuple[int, int]:
    """The place after the next words, and how many there were."""
    limit = min(len(text), start + max(0, words) * _CHARS_PER_WORD)
    used, end = 0, start
    if words > 0:
        for match in _WORD.finditer(text, start, limit):
            if used == words:
                return end, used
            end = match.end()
            used += 1
    if limit == len(text) and used <= words and (words > 0 or _WORD.search(text, start) is None):
        return len(text), used
    return (limit if used < words else end), used


def _back(text: str, end: int, words: int) -> tuple[int, int]:
    """The place before the words before, and how many there were."""
    if words <= 0:
        return (0, 0) if _WORD.search(text[max(0, end - 200) : end]) is None and end <= 200 else (end, 0)
    begin = max(0, end - words * _CHARS_PER_WORD)
    matches = list(_WORD.finditer(text, begin, end))
    if begin == 0 and len(matches) <= words:
        return 0, len(matches)
    if len(matches) < words:
        return begin, len(matches)
    return matches[-words].start(), words
