"""Finding matches in the text of hits, for engines whose own highlighting is not safe to show.

Neither Typesense nor Meilisearch escapes HTML in a document, and a document can hold the tags a query asks for. So
only the words that matched are taken from the engine; what is marked of a document is found here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backends.highlighting import Span
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

    def spans(self, text: str) -> list[Span]:
        """Where matches are in ``text``, in order."""
        spans: list[Span] = []
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

    def best_part(self, text: str, words: int) -> tuple[list[Span], Span]:
        """The part of a text with the most matches, and the matches."""
        spans = self.spans(text)
        return spans, crop_window(text, spans, words)

    def _begins(self, word: str) -> bool:
        # Of beginnings that do not begin with each other, a word can only have the last one that is not after it.
        at = bisect_right(self.beginnings, word)
        return at > 0 and word.startswith(self.beginnings[at - 1])

    def _inside(self, run: str, start: int) -> list[Span]:
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


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """Matches with nothing but a sign between them, such as the two of node.js, are one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and _JOINT.fullmatch(text, joined[-1][1], start):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def crop_window(text: str, spans: list[Span], words: int) -> Span:
    """The part of a text, in words, that has the most matches; a third of it comes before the first of them."""
    units = [match.span() for match in _UNIT.finditer(text)]
    if len(units) <= words or words <= 0:
        return 0, len(text)
    best = _best_unit(units, spans, words)
    first = max(0, min(best - words // 3, len(units) - words))
    start = 0 if first == 0 else units[first][0]
    end = len(text) if first + words >= len(units) else units[first + words - 1][1]
    return start, end


def _best_unit(units: list[Span], spans: list[Span], words: int) -> int:
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
