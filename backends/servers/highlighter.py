"""Locating matches in hits, for engines whose own highlighting is unsafe to display.

Neither Typesense nor Meilisearch escapes HTML in a document, and a document can contain the tags that a query asks
for. So the engine supplies only the words that matched, and this module locates them in the document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import orjson
from rapidfuzz.distance import OSA

from backends.base import Hit
from backends.field_rules import ONE_ERROR_FROM
from backends.highlighting import (
    Highlighter,
    find_sections,
    is_unlikely_typo,
    merge_spans,
    without_lone_stop_words,
)
from backends.languages import LANGUAGES
from backends.passages import find_passage
from backends.query import SearchQuery
from backends.sections import Match, unpack
from backends.sentences import Span
from backends.servers.matched_words import QueryWord
from backends.servers.tokenizer import (
    SIGNED,
    Fold,
    QueryPart,
    fold_word,
    folded_forms,
    has_signs,
    spell_signs,
    split_words,
    stop_words,
)
from backends.standard_fields import TEXT_FIELDS
from backends.text import UNSPACED_RUN, WORD, words_with_forms

_UNIT = re.compile(UNSPACED_RUN.pattern[:-1] + "|[^" + UNSPACED_RUN.pattern[1:-2] + r"\s]+")
_ASCII_UNIT = re.compile(r"\S+")
_MAX_EXCERPT_SOURCE_CHARS = 100_000
"""Number of characters of a long text from which an excerpt is chosen."""

_MIN_PREFIX_LETTERS = 4
"""Minimum length, in letters, of a matched word that also marks longer words."""
_JOINT = re.compile(r"[^\w\s<>&]?")


@dataclass(frozen=True, slots=True)
class Matcher:
    """The words of a text that matched a query.

    Attributes:
        words: Folded words that match as a whole.
        beginnings: Folded prefixes of matching words, in order; none of them begins with another.
        runs: Runs of unspaced scripts, which match inside a longer run.
        fold: Folds a word.
        typed: The query's words, in order.
        stops: The query's stop words.
    """

    words: frozenset[str]
    beginnings: tuple[str, ...]
    runs: tuple[str, ...]
    fold: Fold = fold_word
    typed: tuple[str, ...] = ()
    stops: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, parts: Sequence[QueryPart], matched: Iterable[str], fold: Fold = fold_word, language: str | None = None
    ) -> Matcher:
        """Build the matcher for a query and the words that matched in one hit, including typing errors.

        Args:
            language: Language of the site, for its stop words; ``None`` for the stop words of all languages.
        """
        query_words = [word for part in parts if not part.excluded for word in part.words]
        plain = [word for word in query_words if not UNSPACED_RUN.match(word)]
        hit_words = {word for text in matched for word in (fold(match[0]) for match in WORD.finditer(text))}
        is_open = bool(plain) and query_words[-1] == plain[-1]
        likely_words = hit_words - _unlikely(plain, is_open, hit_words)
        beginnings = [word for word in likely_words - set(plain) if len(word) >= _MIN_PREFIX_LETTERS]
        if is_open:
            beginnings.append(plain[-1])
        runs = [word for word in query_words if UNSPACED_RUN.match(word)]
        return cls(
            words=frozenset(plain) | likely_words,
            beginnings=_shortest(beginnings),
            runs=tuple(sorted(runs, key=len, reverse=True)),
            fold=fold,
            typed=tuple(dict.fromkeys(query_words)),
            stops=_stop_words(language).intersection(query_words),
        )

    @property
    def meaningful(self) -> frozenset[int]:
        """Numbers of the query's words other than stop words; of all words if it has no others."""
        numbers = frozenset(number for number, word in enumerate(self.typed) if word not in self.stops)
        return numbers or frozenset(range(len(self.typed)))

    @property
    def weights(self) -> Mapping[int, float]:
        """Weight 1 for each meaningful word, by number, because servers do not report how rare a word is."""
        return dict.fromkeys(self.meaningful, 1.0)

    def matches_in(self, text: str, numbers: frozenset[int] | None = None) -> list[Match]:
        """Return the matches in a text, in order, each with the number of the most similar query word.

        Args:
            numbers: Numbers of the query words whose matches to return; ``None`` for all.
        """
        numbers_by_word: dict[str, int] = {}
        matches: list[Match] = []
        for start, end in self._all_spans(text):
            for word in split_words(spell_signs(text[start:end]), self.fold):
                if word not in numbers_by_word:
                    numbers_by_word[word] = self._number(word)
                if numbers is None or numbers_by_word[word] in numbers:
                    matches.append((start, end, numbers_by_word[word]))
        return matches

    def first_matches_in(self, text: str, starts: Sequence[int], numbers: frozenset[int]) -> list[Match]:
        """Return all matches of the query words with these numbers; see :class:`backends.sections.WordLocator`."""
        return self.matches_in(text, numbers)

    def typed_as(self, number: int) -> Set[str]:
        """Return one word of the query, by number, as a set: servers do not treat several typed words as one."""
        return frozenset((self.typed[number],))

    def typed_in(self, matched: str) -> Set[str]:
        """``"Media URL"`` -> ``{"media", "url"}`` for the query ``media url``; empty if the text has another word."""
        words = frozenset(split_words(spell_signs(matched), self.fold))
        return words if words.issubset(self.typed) else frozenset()

    def _number(self, word: str) -> int:
        if word in self.typed:
            return self.typed.index(word)

        def dissimilarity(number: int) -> tuple[bool, int]:
            typed = self.typed[number]
            return not (word.startswith(typed) or typed in word), OSA.distance(typed, word)

        return min(range(len(self.typed)), key=dissimilarity)

    def in_document(self, document: Mapping[str, Any]) -> Matcher:
        """Return a matcher that also marks words whose other forms match, if the document lacks a word as typed."""
        texts = [text for name in TEXT_FIELDS if isinstance(text := document.get(name), str)]
        parted = [
            word
            for text in texts
            for word in words_with_forms(text)
            if any(form.startswith(self.typed) for form in folded_forms(word))
        ]
        # Splitting the texts takes longer, and few documents have such words.
        if not parted:
            return self
        in_texts = {word for text in texts for word in split_words(text[:_MAX_EXCERPT_SOURCE_CHARS], self.fold)}
        missing = tuple(word for word in self.typed if word not in in_texts)
        words = {
            part
            for word in parted
            if any(form.startswith(missing) for form in folded_forms(word))
            for part in split_words(word, self.fold)
        }
        return replace(self, words=self.words | words) if words else self

    def spans_in(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the matches to mark in each of several texts, in order."""
        return [self.spans(text) for text in texts]

    def spans(self, text: str) -> list[Span]:
        """Return the matches to mark in a text, in order."""
        if not self.stops:
            return self._all_spans(text)
        return merge_spans(without_lone_stop_words(text, self.matches_in(text), self.meaningful))

    def _all_spans(self, text: str) -> list[Span]:
        if text.isascii() and not has_signs(text):
            pattern = _ascii_pattern(self.words, self.beginnings)
            return _joined(text, [match.span() for match in pattern.finditer(text.lower())])
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

    def best_parts(self, texts: Sequence[str], words: int) -> list[tuple[list[Span], Span]]:
        """Return for each text the spans to mark, and the part of ``words`` words with the most matches."""
        return [(spans, crop_window(text, spans, words)) for text in texts for spans in (self.spans(text),)]

    def _begins(self, word: str) -> bool:
        # No prefix begins with another one, so only the last prefix that sorts before the word can match it.
        index = bisect_right(self.beginnings, word)
        return index > 0 and word.startswith(self.beginnings[index - 1])

    def _inside(self, run: str, start: int) -> list[Span]:
        if not self.runs:
            return []
        return [(start + m.start(), start + m.end()) for m in re.finditer("|".join(map(re.escape, self.runs)), run)]


def matched_hit(
    id: str, source: str, packed: str | None, query: SearchQuery, find_matcher: Callable[[Mapping[str, Any]], Matcher]
) -> Hit:
    """Build a hit with the highlighting and sections that its search requests.

    Args:
        source: The document as JSON.
        packed: Its sections, serialized by :func:`backends.sections.pack`; ``None`` if it has none.
        find_matcher: Returns the matcher for the document.
    """
    document = orjson.loads(source)
    matcher = find_matcher(document)
    formatted = None if query.highlight is None else Highlighter(query.highlight, matcher).format([document])[0]
    all_sections = unpack(packed) if packed else ()
    sections = find_sections(query, document, all_sections, matcher) if query.sections else None
    passage = partial(find_passage, document, all_sections, matcher) if query.answers else None
    return Hit(id, source.encode(), formatted, sections, find_passage=passage)


def _unlikely(words: Sequence[str], is_open: bool, hit_words: Set[str]) -> set[str]:
    """``["comit"], False, {"omit", "commit"}`` -> ``{"omit"}``, but nothing for ``{"omit"}`` alone."""
    unlikely: set[str] = set()
    likely: set[str] = set()
    for index, word in enumerate(words, 1):
        query_word = QueryWord(word, False, is_open and index == len(words), len(word) >= ONE_ERROR_FROM)
        near = {
            candidate
            for candidate in hit_words
            if query_word.matches(candidate) or query_word.errors_to(candidate) <= query_word.max_errors
        }
        far = {candidate for candidate in near if is_unlikely_typo(word, candidate)}
        likely |= near - far
        if near != far:
            unlikely |= far
    return unlikely - likely


@lru_cache(maxsize=512)
def _ascii_pattern(words: frozenset[str], beginnings: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for matches in a lower-case ASCII text; twenty times as fast as comparing words."""
    finished = "|".join(word for word in words if word.isascii())
    begun = "|".join(f"{word}[a-z0-9]*" for word in beginnings if word.isascii())
    either = "|".join(filter(None, (begun, finished))) or "(?!)"
    return re.compile(f"(?<![a-z0-9])(?:{either})(?![a-z0-9])")


@cache
def _stop_words(language: str | None) -> frozenset[str]:
    """Return the folded stop words of a language, or of all languages."""
    return frozenset().union(*map(stop_words, LANGUAGES if language is None else (language,)))


def _shortest(beginnings: Iterable[str]) -> tuple[str, ...]:
    """``["boats", "boa", "cat"]`` -> ``("boa", "cat")``."""
    shortest: list[str] = []
    for beginning in sorted(beginnings):
        if not (shortest and beginning.startswith(shortest[-1])):
            shortest.append(beginning)
    return tuple(shortest)


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """``"node.js"``, ``[(0, 4), (5, 7)]`` -> ``[(0, 7)]``: merge matches with at most one punctuation mark between."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and _JOINT.fullmatch(text, joined[-1][1], start):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def crop_window(text: str, spans: list[Span], words: int) -> Span:
    """Return the part of ``words`` words of a text with the most matches; a third of it precedes the first match.

    In a long text, only :data:`_MAX_EXCERPT_SOURCE_CHARS` characters around its first match are considered.
    """
    low, high = 0, len(text)
    if len(text) > _MAX_EXCERPT_SOURCE_CHARS:
        before = spans[0][0] - _MAX_EXCERPT_SOURCE_CHARS // 10 if spans else 0
        low = max(0, text.find(" ", before, spans[0][0])) if before > 0 else 0
        high = low + _MAX_EXCERPT_SOURCE_CHARS
    unit = _ASCII_UNIT if text.isascii() else _UNIT
    units = [match.span() for match in unit.finditer(text, low, high)]
    if len(units) <= words or words <= 0:
        return 0, len(text)
    best = _best_unit(units, [span for span in spans if span[1] <= high], words)
    first = max(0, min(best - words // 3, len(units) - words))
    start = 0 if first == 0 and low == 0 else units[first][0]
    end = len(text) if first + words >= len(units) and high >= len(text) else units[first + words - 1][1]
    return start, end


def _best_unit(units: list[Span], spans: list[Span], words: int) -> int:
    if not spans:
        return 0
    first_units, index = [], 0
    for first, _last in spans:
        while index + 1 < len(units) and units[index + 1][0] <= first:
            index += 1
        first_units.append(index)
    reach = words - words // 3
    best, best_count, end = 0, 0, 0
    for begin, unit in enumerate(first_units):
        end = max(end, begin)
        while end < len(first_units) and first_units[end] < unit + reach:
            end += 1
        if end - begin > best_count:
            best, best_count = begin, end - begin
    return first_units[best]
