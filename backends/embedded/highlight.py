"""Documents with their matches marked."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from backends.base import Highlight
from backends.embedded.planner import Marks
from backends.embedded.spans import Span, find_spans, merge_spans, needles_for

_WORD = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e01-\u0e5b\u1000-\u109f\u1780-\u17dd]{1,2}|[^\\W_]+")
_NEVER_TEXT = frozenset({"id", "url", "date"})
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""

_CHARS_PER_WORD = 40
_USUAL_CHARS_PER_WORD = 6
_LOOKS = (4_096, 16_384)
_EDGE = 200
_MOST_LOOKED_AT = 200
"""Matches of a text that a stretch may begin with."""

_MANY, _PLENTY = 16, 4
"""Of a query of more words than the first, a stretch with as many different ones as the second is good enough."""


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, wish: Highlight, marks: Marks):
        self.wish = wish
        starts = tuple(marks.prefixes)
        terms = {term: number for term, number in marks.terms.items() if not term.startswith(starts)}
        self.needles = needles_for(terms, marks.prefixes)
        self.sequences = marks.sequences
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
        if words is not None:
            return self._cropped(text, words, marked)
        if not marked:
            return self._escaped(text)
        return self._marked(text, find_spans(text, self.needles, self.sequences), 0, len(text))

    def _cropped(self, text: str, words: int, marked: bool) -> str:
        spans, (start, end) = self._best_part(text, words)
        part = self._marked(text, spans, start, end) if marked else self._escaped(text[start:end])
        before = self.wish.crop_marker if start > 0 else ""
        after = self.wish.crop_marker if end < len(text) else ""
        return f"{before}{part}{after}"

    def _best_part(self, text: str, words: int) -> tuple[list[Span], tuple[int, int]]:
        """The part of a text that is shown, and the matches there.

        A long text is looked through only as far as needed to find every word of the query (of very many, some) near
        each other, or, from some length on, to find every word; and not beyond the first matches if no other word is
        there, or if they are as many as a stretch may begin with.
        """
        spans: list[Span] = []
        begin = 0
        for reach in _LOOKS:
            if reach >= len(text):
                break
            spans = self._more_spans(spans, text, begin, reach)
            best = _best_stretch(spans, words)
            begin = 1 + max(text.rfind(space, reach - 2 * _EDGE, reach - _EDGE) for space in " \n")
            if best is None:
                continue
            missing = self._numbers.difference([number for _, _, number in spans])
            if (
                best.different >= self._wanted
                or len(spans) > _MOST_LOOKED_AT
                or (not self._any_occurs(missing, text[begin:]) if missing else reach == _LOOKS[-1])
            ):
                start, end = _around(text, best, words)
                # What is cut off at the edge may have been taken for a whole word, or not been found.
                if end <= reach - _EDGE:
                    return spans, (start, end)
        spans = self._more_spans(spans, text, begin, len(text))
        return spans, crop_window(text, spans, words)

    def _more_spans(self, spans: list[Span], text: str, begin: int, end: int) -> list[Span]:
        """The spans before ``begin``, where a word begins, and those found from there to ``end``."""
        found = find_spans(text[begin:end], self.needles, self.sequences)
        if begin == 0:
            return found
        return [span for span in spans if span[0] < begin] + [(at + begin, to + begin, n) for at, to, n in found]

    def _any_occurs(self, numbers: Set[int], text: str) -> bool:
        """Whether a text has any of these words of the query."""
        needles = [needle for needle in self.needles if needle.number in numbers]
        sequences = {terms: number for terms, number in self.sequences.items() if number in numbers}
        return bool(find_spans(text, needles, sequences))

    @cached_property
    def _numbers(self) -> frozenset[int]:
        """The words of the query that can be marked."""
        return frozenset({needle.number for needle in self.needles}) | frozenset(self.sequences.values())

    @cached_property
    def _wanted(self) -> int:
        """How many different words of the query make a stretch that need not be bettered."""
        return len(self._numbers) if len(self._numbers) <= _MANY else _PLENTY

    def _marked(self, text: str, spans: list[Span], start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for span_start, span_end in merge_spans(spans):
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


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of a text from one match to another, and how many different words of the query match there."""

    start: int
    end: int
    different: int


def crop_window(text: str, spans: list[Span], words: int) -> tuple[int, int]:
    """The part of a text, about ``words`` words long, with the most different matches; the first of equals."""
    return _around(text, _best_stretch(spans, words), words)


def _around(text: str, stretch: _Stretch | None, words: int) -> tuple[int, int]:
    """About ``words`` words around a stretch, or the first ones."""
    words = max(1, words)
    start, anchor, budget_before, inside = 0, 0, 0, 0
    if stretch is not None:
        start, anchor = stretch.start, stretch.end
        inside = _count(text, start, anchor)
        budget_before = max(0, words - inside) // 2
    new_start, used = _back(text, start, budget_before)
    end, used_after = _forward(text, anchor, words - inside - used)
    missing = words - inside - used - used_after
    if missing > 0 and end >= len(text):
        new_start, _ = _back(text, new_start, missing)
    return new_start, end


def _best_stretch(spans: list[Span], words: int) -> _Stretch | None:
    """The stretch as long as ``words`` words mostly are, with the most different matches; then with the most."""
    width = max(1, words) * _USUAL_CHARS_PER_WORD
    best: _Stretch | None = None
    best_worth = (0, 0)
    seen: dict[int, int] = {}
    last, count = -1, len(spans)
    for at, (start, _, number) in enumerate(spans[:_MOST_LOOKED_AT]):
        while last + 1 < count and (last < at or spans[last + 1][1] - start <= width):
            last += 1
            added = spans[last][2]
            seen[added] = seen.get(added, 0) + 1
        worth = (len(seen), last - at)
        if worth > best_worth or best is None:
            best, best_worth = _Stretch(start, spans[last][1], len(seen)), worth
        seen[number] -= 1
        if not seen[number]:
            del seen[number]
    return best


def _count(text: str, start: int, end: int) -> int:
    return len(_WORD.findall(text, start, end))


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
    begin, matches = end, []
    for chars_per_word in (2 * _USUAL_CHARS_PER_WORD, _CHARS_PER_WORD):
        begin = max(0, end - words * chars_per_word)
        matches = list(_WORD.finditer(text, begin, end))
        # The first may be the rest of a word.
        if begin == 0 or len(matches) > words:
            break
    if begin == 0 and len(matches) <= words:
        return 0, len(matches)
    if len(matches) < words:
        return begin, len(matches)
    return matches[-words].start(), words
