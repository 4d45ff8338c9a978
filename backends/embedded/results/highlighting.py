"""Highlighting in the embedded engine: the terms to mark, locating them in hits, and the turns of threads at it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from operator import methodcaller
from typing import Any

from backends.analysis.normalization import ANALYZER, compose, terms_of
from backends.embedded.results.folding import fold_text
from backends.embedded.results.matches import (
    FoldedText,
    MatchTerms,
    find_matches,
    find_matches_in_each,
    first_matches,
)
from backends.embedded.results.snippets import SnippetGenerator
from backends.highlighting import merge_spans, without_lone_stop_words
from backends.sections import Match
from backends.sentences import MAX_SENTENCES_CHARS, Span
from backends.standard_fields import TEXT_FIELDS
from backends.text import forms_of

MAX_JOINED_CHARS = 4_096
"""Maximum length of a text that is searched together with others."""


@dataclass(frozen=True, slots=True)
class HighlightTerms:
    """Terms that highlighting marks, each with the number of the query's word or phrase that it represents.

    Attributes:
        terms: Folded words that match as a whole.
        prefixes: Prefixes of words.
        sequences: Terms to mark where they are consecutive.
        unlikely: Terms that are unlikely to be meant by a typed word, because their first letter differs (*omit* for
            *comit*); marked only in documents that do not contain the word in another form.
        typed: Terms as typed.
        weights: Weight of each phrase, and of each word other than a stop word, by number.
    """

    terms: Mapping[str, int] = field(default_factory=dict)
    prefixes: Mapping[str, int] = field(default_factory=dict)
    sequences: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    unlikely: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    weights: Mapping[int, float] = field(default_factory=dict)

    @property
    def meaningful(self) -> frozenset[int]:
        """Numbers of phrases, and of words other than stop words."""
        return frozenset(self.weights)

    @classmethod
    def of(
        cls,
        sequences: Iterable[tuple[tuple[str, ...], int]],
        prefixes: Iterable[tuple[str, int]],
        unlikely: Set[tuple[str, int]] = frozenset(),
        *,
        typed: Set[str] = frozenset(),
        weights: Mapping[int, float] | None = None,
    ) -> HighlightTerms:
        """Build from sequences of terms. A sequence that represents several words belongs to the first one.

        Args:
            unlikely: Terms that are unlikely to be meant by the words they represent.
            typed, weights: See the attributes.
        """
        whole: dict[str, int] = {}
        several: dict[tuple[str, ...], int] = {}
        for terms, number in sequences:
            if len(terms) == 1:
                whole.setdefault(terms[0], number)
            else:
                several.setdefault(terms, number)
        beginnings: dict[str, int] = {}
        for prefix, number in prefixes:
            beginnings.setdefault(prefix, number)
        unlikely_terms = frozenset(term for term, number in unlikely if whole[term] == number)
        return cls(whole, beginnings, several, unlikely_terms, frozenset(typed), weights or {})


class TermMatches:
    """Locates the matches of one query's terms; implements :class:`backends.highlighting.MatchLocator`."""

    def __init__(
        self,
        highlight_terms: HighlightTerms,
        match_terms: MatchTerms | None = None,
        words_by_form: Mapping[str, int] | None = None,
    ):
        """Create the matcher.

        Args:
            match_terms: The spellings of the terms, if they were computed already.
            words_by_form: Folded words of documents whose other forms match, with the number of the query's word.
        """
        self._highlight_terms = highlight_terms
        self._words_by_form = words_by_form or {}
        own_terms = match_terms or _match_terms(highlight_terms)
        self._match_terms = own_terms.with_words(words_by_form) if words_by_form else own_terms
        self.meaningful = highlight_terms.meaningful
        self.weights = highlight_terms.weights
        stop_words = self._match_terms.numbers - self.meaningful
        self._stop_words = self._match_terms.only(stop_words) if self.meaningful and stop_words else None
        self._snippets = SnippetGenerator(
            self._match_terms.only(self.meaningful) if self._stop_words else self._match_terms
        )
        self._likelier = _likelier_terms(highlight_terms)
        self._narrowed: dict[frozenset[int], TermMatches] = {}
        terms = highlight_terms
        self._first_terms = (*terms.terms, *terms.prefixes, *(sequence[0] for sequence in terms.sequences))
        self._typed: dict[str, Set[str]] = {}

    def in_document(self, document: Mapping[str, Any]) -> TermMatches:
        """Return a locator without the unlikely typing errors of words that the document contains in another form.

        For *comit*, *omit* is marked only in documents without *commit*.
        """
        if self._likelier is None:
            return self
        likely_numbers: set[int] = set()
        for name in TEXT_FIELDS:
            text = document.get(name)
            if isinstance(text, str) and len(likely_numbers) < len(self._likelier.numbers):
                likely_numbers.update(number for _, _, number in find_matches(text, self._likelier))
        if not likely_numbers:
            return self
        words = frozenset(likely_numbers)
        if words not in self._narrowed:
            likely_terms = _without_unlikely(self._highlight_terms, words)
            self._narrowed[words] = TermMatches(likely_terms, words_by_form=self._words_by_form)
        return self._narrowed[words]

    def with_forms(self, words: bytes) -> TermMatches:
        """Return a locator that also marks words of documents whose other forms match: ``U-Bahn`` for ``ubahn``.

        Args:
            words: Words that are indexed in other forms, separated by line breaks.
        """
        # Every form is in here: it differs from the word in separators only.
        letters = _letters_of(words)
        first_terms = [term for term in self._first_terms if term in letters]
        if not first_terms:
            return self
        written = words.decode("utf-8", "surrogatepass").split("\n")
        numbers: dict[str, int] = {}
        for index in sorted(_lines_with(first_terms, letters)):
            number = self._number_of(_terms_of_forms(written[index]))
            if number is not None:
                numbers[fold_text(written[index])[0]] = number
        starts = tuple(self._highlight_terms.prefixes)
        words_by_form = {
            word: number
            for word, number in numbers.items()
            if not (word in self._highlight_terms.terms or (word.isalnum() and word.startswith(starts)))
        }
        if not words_by_form:
            return self
        return TermMatches(self._highlight_terms, self._match_terms, words_by_form)

    def _number_of(self, forms: Iterable[tuple[str, ...]]) -> int | None:
        """Return the number of the query's word that one of the forms matches; ``None`` if no word matches."""
        terms, prefixes = self._highlight_terms.terms, self._highlight_terms.prefixes
        for form in forms:
            for term in form:
                if term in terms:
                    return terms[term]
                for prefix, number in prefixes.items():
                    if term.startswith(prefix):
                        return number
            for sequence, number in self._highlight_terms.sequences.items():
                if any(
                    form[offset : offset + len(sequence)] == sequence for offset in range(len(form) - len(sequence) + 1)
                ):
                    return number
        return None

    def spans_in(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the matches to mark in each of several texts."""
        return [
            merge_spans(
                matches if self._stop_words is None else without_lone_stop_words(text, matches, self.meaningful)
            )
            if matches
            else []
            for text, matches in zip(texts, self._find_in_each(texts), strict=True)
        ]

    def _find_in_each(self, texts: Sequence[str]) -> list[list[Match]]:
        if max(map(len, texts), default=0) <= MAX_JOINED_CHARS:
            return find_matches_in_each(texts, self._match_terms)
        short_texts = [text for text in texts if len(text) <= MAX_JOINED_CHARS]
        in_short = iter(find_matches_in_each(short_texts, self._match_terms))
        return [
            next(in_short) if len(text) <= MAX_JOINED_CHARS else find_matches(text, self._match_terms) for text in texts
        ]

    def matches_in(self, text: str, numbers: frozenset[int] | None = None) -> list[Match]:
        """Return the matches in a text, in order: of the query words with these numbers, or of all."""
        return find_matches(text, self._match_terms if numbers is None else self._match_terms.only(numbers))

    def first_matches_in(self, text: str, starts: Sequence[int], numbers: frozenset[int]) -> list[Match]:
        """Return at least the first match of the query words with these numbers in each part of a text.

        Args:
            starts: Offsets where the parts begin, in order, from 0 on.
        """
        only = self._match_terms.only(numbers)
        return first_matches(text, only, starts, self._highlight_terms.typed)

    def typed_as(self, number: int) -> Set[str]:
        """Return the parts of one word of the query, by number, as typed: ``{"media", "url"}`` for ``MEDIA_URL``."""
        typed, terms = self._highlight_terms.typed, self._highlight_terms.terms
        return frozenset(term for term in typed if terms.get(term) == number)

    def typed_in(self, matched: str) -> Set[str]:
        """``"Media URL"`` -> ``{"media", "url"}`` for the query ``media url``; empty if the text has another word."""
        typed = self._typed.get(matched)
        if typed is None:
            terms = frozenset(terms_of(matched))
            typed = self._typed[matched] = terms if terms <= self._highlight_terms.typed else frozenset()
        return typed

    def best_parts(self, texts: Sequence[str], words: int) -> list[tuple[list[Span], Span]]:
        """Return the best part of each text, with the spans to mark in it and near it.

        Args:
            words: Approximate length of a part, in words. The best part has the most different words of the query.

        Returns:
            For each text, the spans and the part.
        """
        parts: list[tuple[list[Span], Span]] = []
        for text, (matches, part) in zip(texts, self._snippets.best_parts(texts, words), strict=True):
            low, high = part[0] - MAX_SENTENCES_CHARS, part[1] + MAX_SENTENCES_CHARS
            near: Sequence[Match] = [match for match in matches if low <= match[0] < high]
            has_more = self._stop_words is not None and near
            parts.append((merge_spans(self._with_stop_words(text, near, part) if has_more else near), part))
        return parts

    def _with_stop_words(self, text: str, matches: Sequence[Match], part: Span) -> Sequence[Match]:
        """Add the stop words beside the matches in a part of a text."""
        assert self._stop_words is not None
        first, last = max(0, part[0] - MAX_SENTENCES_CHARS), min(len(text), part[1] + MAX_SENTENCES_CHARS)
        near = FoldedText(text, first, last)
        stop_words = near.in_text(near.find(self._stop_words))
        # The first and the last word may be cut.
        stop_words = [match for match in stop_words if (not first or match[0] > first) and match[1] < last]
        return without_lone_stop_words(text, sorted([*matches, *stop_words]), self.meaningful)


_ALPHANUMERIC = "".join(filter(str.isalnum, map(chr, range(128)))).encode()
_SEPARATORS = bytes(set(range(128)) - {*_ALPHANUMERIC, ord("\n")})
_LOWER = bytes(range(128)).lower() + bytes(range(128, 256))


def _letters_of(words: bytes) -> str:
    """``"U-Bahn\\nÉté"`` (in UTF-8) -> ``"ubahn\\nete"``."""
    letters = words.translate(_LOWER, _SEPARATORS).decode("utf-8", "surrogatepass")
    if letters.isascii():
        return letters
    lines = zip(letters.split("\n"), words.decode("utf-8", "surrogatepass").split("\n"), strict=True)
    return "\n".join([line if line.isascii() else _letters_of_word(word) for line, word in lines])


@lru_cache(maxsize=16384)
def _letters_of_word(word: str) -> str:
    return "".join(ANALYZER.analyze(compose(word)))


@lru_cache(maxsize=16384)
def _terms_of_forms(word: str) -> tuple[tuple[str, ...], ...]:
    """``"U-Bahn"`` -> ``(("ubahn",),)``: for each other form of a word, the terms that the word itself lacks."""
    word_terms = terms_of(word)
    return tuple(tuple(term for term in terms_of(form) if term not in word_terms) for form in forms_of(word))


def _lines_with(terms: Iterable[str], text: str) -> set[int]:
    """``["b", "c"], "a\\nb\\nc"`` -> ``{1, 2}``."""
    lines: set[int] = set()
    for term in terms:
        lines.update(accumulate(map(_count_line_breaks, text.split(term)[:-1])))
    return lines


_count_line_breaks = methodcaller("count", "\n")


def _match_terms(highlight_terms: HighlightTerms) -> MatchTerms:
    starts = tuple(highlight_terms.prefixes)
    terms = {term: number for term, number in highlight_terms.terms.items() if not term.startswith(starts)}
    return MatchTerms.of(terms, highlight_terms.prefixes, highlight_terms.sequences)


def _likelier_terms(highlight_terms: HighlightTerms) -> MatchTerms | None:
    """Return the other terms of words that have unlikely terms; ``None`` if no word has both."""
    words = frozenset(highlight_terms.terms[term] for term in highlight_terms.unlikely)
    likelier = _match_terms(_without_unlikely(highlight_terms, words)).only(words) if words else None
    return likelier if likelier is not None and likelier.numbers else None


def _without_unlikely(highlight_terms: HighlightTerms, words: frozenset[int]) -> HighlightTerms:
    """Return the terms without the unlikely ones of some query words."""
    excluded = {term for term in highlight_terms.unlikely if highlight_terms.terms[term] in words}
    terms = {term: number for term, number in highlight_terms.terms.items() if term not in excluded}
    return replace(highlight_terms, terms=terms, unlikely=highlight_terms.unlikely - excluded)


TURN_SECONDS = 0.05
"""Seconds that a thread waits for its turn before it continues without: a disk may be slow, or a page large."""

_turn_lock = threading.Lock()


@contextmanager
def turn() -> Iterator[None]:
    """Let one thread of the process at a time build hits.

    Reading a document releases the interpreter for a moment. If other threads take it each time, a page of hits causes
    twenty thread switches, which cost more than the reading.
    """
    has_turn = _turn_lock.acquire(timeout=TURN_SECONDS)
    try:
        yield
    finally:
        if has_turn:
            _turn_lock.release()
