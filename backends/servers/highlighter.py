"""Marking matches in the text of hits, for engines whose own highlighting is not safe to show.

Neither Typesense nor Meilisearch escapes HTML in a document, and a document can hold the tags a query asks for. So
only the words that matched are taken from the engine; marking, cropping and escaping is done here, on the document.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.base import REQUIRED_HIT_FIELDS, Highlight
from backends.servers.tokenizer import SIGNED, Fold, QueryPart, fold_word, spell_signs
from backends.text import UNSPACED_RUN, WORD

_UNIT = re.compile(UNSPACED_RUN.pattern[:-1] + "|[^" + UNSPACED_RUN.pattern[1:-2] + r"\s]+")
_SHORTEST_PREFIX = 4
_JOINT = re.compile(r"[^\w\s<>&]?")


@dataclass(frozen=True, slots=True)
class Matcher:
    """Which words of a text matched a query.

    Attributes:
        words: Folded words that match as a whole.
        beginnings: Folded beginnings of words that match, in order; none of them begins with another.
        runs: Runs of letters without spaces, which match inside a run.
        fold: How words are folded.
    """

    words: frozenset[str]
    beginnings: tuple[str, ...]
    runs: tuple[str, ...]
    fold: Fold = fold_word

    @classmethod
    def of(cls, parts: Sequence[QueryPart], matched: Iterable[str], fold: Fold = fold_word) -> Matcher:
        """A matcher for a query and the words of one hit that the engine says matched it, typing errors included."""
        wanted = [word for part in parts if not part.excluded for word in part.words]
        plain = [word for word in wanted if not UNSPACED_RUN.match(word)]
        found = {word for text in matched for word in (fold(match[0]) for match in WORD.finditer(text))}
        beginnings = [word for word in found - set(plain) if len(word) >= _SHORTEST_PREFIX]
        if plain and wanted[-1] == plain[-1]:
            beginnings.append(plain[-1])
        runs = [word for word in wanted if UNSPACED_RUN.match(word)]
        return cls(frozenset(plain) | found, _shortest(beginnings), tuple(sorted(runs, key=len, reverse=True)), fold)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where matches are in ``text``, in order."""
        spans: list[tuple[int, int]] = []
        for match in WORD.finditer(text):
            if UNSPACED_RUN.match(match[0]):
                spans += self._inside(match[0], match.start())
                continue
            start, end = match.span()
            if (signed := SIGNED.match(text, start)) is not None:
                end = signed.end()
            word = self.fold(spell_signs(text[start:end]))
            if word in self.words or self._begins(word):
                spans.append((start, end))
        return _joined(text, spans)

    def _begins(self, word: str) -> bool:
        # Of beginnings that do not begin with each other, a word can only have the last one that is not after it.
        at = bisect_right(self.beginnings, word)
        return at > 0 and word.startswith(self.beginnings[at - 1])

    def _inside(self, run: str, start: int) -> list[tuple[int, int]]:
        if not self.runs:
            return []
        return [(start + m.start(), start + m.end()) for m in re.finditer("|".join(map(re.escape, self.runs)), run)]


def _shortest(beginnings: Iterable[str]) -> tuple[str, ...]:
    """Beginnings in order, without those that begin with another."""
    kept: list[str] = []
    for beginning in sorted(beginnings):
        if not (kept and beginning.startswith(kept[-1])):
            kept.append(beginning)
    return tuple(kept)


def _joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Matches with nothing but a sign between them, such as the two of node.js, are one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and _JOINT.fullmatch(text, joined[-1][1], start):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def mark(document: Mapping[str, Any], matcher: Matcher, wish: Highlight) -> dict[str, Any]:
    """A document's fields with matches marked, as :attr:`backends.base.Hit.formatted` has them."""
    every = "*" in wish.fields
    shown = {**dict.fromkeys(REQUIRED_HIT_FIELDS, ""), **document}
    return {
        name: _value(name, value, matcher, wish, every or name in wish.fields)
        for name, value in wish.chosen(shown).items()
    }


def _value(name: str, value: Any, matcher: Matcher, wish: Highlight, marked: bool) -> Any:
    if isinstance(value, list | tuple):
        return [_value(name, item, matcher, wish, marked) for item in value]
    if not isinstance(value, str):
        return value
    spans = matcher.spans(value) if marked and name not in ("id", "url", "date") else []
    start, end = crop_window(value, spans, wish.crop_fields[name]) if name in wish.crop_fields else (0, len(value))
    escape = html.escape if wish.escape else str
    pieces = [wish.crop_marker] if start else []
    at = start
    for first, last in spans:
        if at <= first and last <= end:
            pieces += [escape(value[at:first]), wish.pre_tag, escape(value[first:last]), wish.post_tag]
            at = last
    pieces.append(escape(value[at:end]))
    if end < len(value):
        pieces.append(wish.crop_marker)
    return "".join(pieces)


def crop_window(text: str, spans: list[tuple[int, int]], words: int) -> tuple[int, int]:
    """The part of a text, in words, that has the most matches; a third of it comes before the first of them."""
    units = [match.span() for match in _UNIT.finditer(text)]
    if len(units) <= words or words <= 0:
        return 0, len(text)
    best = _best_unit(units, spans, words)
    first = max(0, min(best - words // 3, len(units) - words))
    start = 0 if first == 0 else units[first][0]
    end = len(text) if first + words >= len(units) else units[first + words - 1][1]
    return start, end


def _best_unit(units: list[tuple[int, int]], spans: list[tuple[int, int]], words: int) -> int:
    if not spans:
        return 0
    places, at = [], 0
    for first, _last in spans:
        while at + 1 < len(units) and units[at + 1][0] <= first:
            at += 1
        places.append(at)
    reach = words - words // 3
    best, most, end = 0, 0, 0
    for begin, place in enumerate(places):
        end = max(end, begin)
        while end < len(places) and places[end] < place + reach:
            end += 1
        if end - begin > most:
            best, most = begin, end - begin
    return places[best]
