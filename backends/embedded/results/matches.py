"""Locating matches in a text.

A text is folded letter by letter, so that positions in the folded text are positions in the text. It is then searched
for each matching term with ``str.find``, which is far faster than splitting every text into words.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from os.path import commonprefix
from typing import Self

from backends.analysis.normalization import UNSEGMENTED_RUN, terms_of
from backends.embedded.results.folding import OffsetMap, fold_char, fold_text
from backends.sections import Match

MAX_MATCHES = 400
"""Maximum number of matches per term in one text."""

MAX_SEARCHED_CHARS = 200_000
"""Number of characters of a text that are searched for matches."""

_FAMILY_PREFIX = 3
"""Minimum length of the common prefix by which several forms of a word are searched for at once."""

MAX_GAP = 16
"""Maximum number of characters between the words of a phrase: brackets, quotes, dots."""

_BETWEEN_CHARS = MAX_GAP + 1
_BETWEEN_TEXTS = "\0" * _BETWEEN_CHARS
"""Separator between texts that are searched together: longer than the gap between the words of a phrase."""

_SPELLED_OUT = re.compile("([a-z])(plusplus|sharp)")


class _WordCharacters(dict[str, bool]):
    """Cache: whether a character belongs to a word in a script with spaces."""

    def __missing__(self, char: str) -> bool:
        is_word_character = (
            char.isalnum() if char.isascii() else UNSEGMENTED_RUN.match(char) is None and bool(fold_char(char))
        )
        if char < "\U00010000":
            self[char] = is_word_character
        return is_word_character


_IS_WORD_CHARACTER = _WordCharacters()

_LONELY_LETTER = re.compile("(?<![a-z0-9])[a-z0-9](?![a-z0-9])")
_MIN_JOINT_LETTERS = 5
"""Minimum number of one-letter words for which one scan of a text for all of them is faster than one for each."""


@dataclass(frozen=True, slots=True)
class MatchTerm:
    """A spelling to search for.

    Attributes:
        text: The spelling, folded.
        number: Number of the query's word that it represents.
        whole: Whether it must begin and end at word boundaries.
        is_prefix: Whether the word may continue.
        words: Words that it may continue to; any word if empty.
    """

    text: str
    number: int
    whole: bool
    is_prefix: bool
    words: frozenset[str] = frozenset()


class MatchTerms:
    """Spellings and sequences by which the words of a query match in texts.

    Args:
        match_terms: The matching spellings.
        sequences: Folded words that match when they are consecutive, with the number of the query's word.

    Attributes:
        numbers: Numbers of the query's words that can match.
    """

    def __init__(self, match_terms: Sequence[MatchTerm], sequences: Mapping[tuple[str, ...], int]):
        letters = {match_term.text: match_term.number for match_term in match_terms if _is_letter(match_term)}
        self.letters = letters if len(letters) >= _MIN_JOINT_LETTERS else {}
        self.words = [match_term for match_term in match_terms if not (self.letters and _is_letter(match_term))]
        self.sequences = sequences
        self.numbers = frozenset({match_term.number for match_term in match_terms}) | frozenset(sequences.values())
        self._all_match_terms = match_terms
        self._parts: dict[frozenset[int], MatchTerms] = {}

    @classmethod
    def of(
        cls, terms: Mapping[str, int], prefixes: Mapping[str, int], sequences: Mapping[tuple[str, ...], int]
    ) -> Self:
        """Build from words and prefixes.

        Args:
            terms: Folded words (or pairs of characters, in unspaced scripts) that match as a whole, with the number of
                the query's word that each represents.
            prefixes: Folded prefixes of words, with the same numbers.
            sequences: Folded words that match when they are consecutive, with the same numbers.
        """
        return cls(_match_terms_for(terms, prefixes), sequences)

    def with_words(self, words: Mapping[str, int]) -> MatchTerms:
        """Return a copy with additional words that match as they are written.

        Args:
            words: Folded words, which may contain separators, with the number of the query's word.
        """
        additional = [MatchTerm(word, number, True, False) for word, number in words.items()]
        return MatchTerms([*self._all_match_terms, *additional], self.sequences)

    def only(self, numbers: frozenset[int]) -> MatchTerms:
        """Restrict the terms to the query words with these numbers."""
        if numbers == self.numbers:
            return self
        part = self._parts.get(numbers)
        if part is None:
            sequences = {terms: number for terms, number in self.sequences.items() if number in numbers}
            part = MatchTerms(
                [match_term for match_term in self._all_match_terms if match_term.number in numbers], sequences
            )
            self._parts[numbers] = part
        return part


def _match_terms_for(terms: Mapping[str, int], prefixes: Mapping[str, int]) -> list[MatchTerm]:
    match_terms: list[MatchTerm] = []
    families: dict[tuple[int, str], list[str]] = {}
    for term, number in terms.items():
        if UNSEGMENTED_RUN.match(term):
            match_terms.append(MatchTerm(term, number, False, False))
        else:
            for spelling in _spellings(term):
                families.setdefault((number, spelling[:_FAMILY_PREFIX]), []).append(spelling)
    for (number, _), words in families.items():
        # Most forms of a word share a prefix: searching for the prefix scans a text once instead of ten times.
        start = commonprefix(words)  # noqa: RUF071 - of characters, as wanted
        if len(words) > 1 and len(start) >= _FAMILY_PREFIX and all(map(str.isalnum, words)):
            match_terms.append(MatchTerm(start, number, True, True, frozenset(words)))
        else:
            match_terms += [MatchTerm(word, number, True, False) for word in words]
    for prefix, number in prefixes.items():
        match_terms += [MatchTerm(spelling, number, True, True) for spelling in _spellings(prefix)]
    return match_terms


def find_matches(text: str, match_terms: MatchTerms) -> list[Match]:
    """Return all matches, in order; they may overlap."""
    return _find_everywhere(*fold_text(text[:MAX_SEARCHED_CHARS]), match_terms)


def find_matches_in_each(texts: Sequence[str], match_terms: MatchTerms) -> list[list[Match]]:
    """Return the matches in each of several texts, in order; they may overlap.

    The texts are searched together: the number of steps depends on the matches, not on the texts.
    """
    folded, sizes = _BETWEEN_TEXTS.join(texts), list(map(len, texts))
    offset_maps: list[OffsetMap | None] = []
    if folded.isascii():
        folded = folded.lower()
    else:
        # A text with letters that fold to several makes its own positions move, but no others.
        folded_texts, offset_maps = map(list, zip(*map(fold_text, texts), strict=True))
        folded, sizes = _BETWEEN_TEXTS.join(folded_texts), list(map(len, folded_texts))
    matches_by_text: list[list[Match]] = [[] for _ in texts]
    index, start, end = -1, 0, -_BETWEEN_CHARS
    for first, last, number in _find_all(folded, match_terms, 0, len(folded), MAX_MATCHES * len(texts)):
        while first >= end:
            index += 1
            start = end + _BETWEEN_CHARS
            end = start + sizes[index]
        matches_by_text[index].append((first - start, last - start, number))
    for index, offsets in enumerate(offset_maps):
        if offsets is not None:
            matches_by_text[index] = offsets.to_original(matches_by_text[index])
    return matches_by_text


def _find_everywhere(folded: str, offsets: OffsetMap | None, match_terms: MatchTerms) -> list[Match]:
    matches = _find_all(folded, match_terms, 0, len(folded), MAX_MATCHES)
    return matches if offsets is None else offsets.to_original(matches)


def first_matches(text: str, match_terms: MatchTerms, starts: Sequence[int], typed: Set[str]) -> list[Match]:
    """Return some matches in each part of a text, in no particular order.

    They include the first match of each spelling and, if a word occurs as typed, a match as typed.

    Args:
        text: Only its first :data:`MAX_SEARCHED_CHARS` characters are searched.
        starts: Offsets where the parts begin, in order, from 0 on.
        typed: Folded words as they were typed.
    """
    folded, offsets = fold_text(text[:MAX_SEARCHED_CHARS])
    if offsets is not None or match_terms.letters:
        return _find_everywhere(folded, offsets, match_terms)
    matches: list[Match] = []
    ends = [*starts[1:], len(folded)]
    for match_term in match_terms.words:
        # A prefix may match a longer word before the typed word; a whole word is always, or never, as typed.
        prefers_typed = match_term.is_prefix and not typed.isdisjoint(match_term.words or (match_term.text,))
        offset = folded.find(match_term.text)
        while offset >= 0:
            end = ends[bisect_right(starts, offset) - 1]
            _find_first(folded, match_term, offset, end, typed if prefers_typed else None, matches)
            offset = folded.find(match_term.text, end)
    for sequence, number in match_terms.sequences.items():
        matches += _find_sequence(folded, sequence, number, 0, len(folded), MAX_MATCHES)
    return matches


def _find_first(
    folded: str, match_term: MatchTerm, offset: int, stop: int, typed: Set[str] | None, matches: list[Match]
) -> None:
    """Add the first match that begins before ``stop``, and if requested, the first one among ``typed``."""
    first = len(matches)
    while offset >= 0:
        count_before = len(matches)
        _find(folded, match_term, offset, stop, matches, 1)
        if len(matches) == count_before or typed is None:
            return
        start, end, _ = matches[-1]
        is_typed = folded[start:end] in typed
        if count_before > first and not is_typed:
            matches.pop()
        if is_typed:
            return
        offset = folded.find(match_term.text, end, stop)


class FoldedText:
    """A folded part of a text; positions refer to the folded text.

    Args:
        text: Only its first :data:`MAX_SEARCHED_CHARS` characters are searched.
        start, end: The part.
    """

    def __init__(self, text: str, start: int = 0, end: int = MAX_SEARCHED_CHARS):
        self._start = start
        self._text, self._offsets = fold_text(text[start : min(end, MAX_SEARCHED_CHARS)])

    def find(self, match_terms: MatchTerms, start: int = 0, end: int = sys.maxsize) -> list[Match]:
        """Return all matches between two positions, in order; they may overlap."""
        return _find_all(self._text, match_terms, start, min(end, len(self._text)), MAX_MATCHES)

    def in_text(self, found_matches: Iterable[Match]) -> list[Match]:
        """Convert matches to positions in the original text."""
        start = self._start
        matches = list(found_matches) if self._offsets is None else self._offsets.to_original(found_matches)
        return [(start + first, start + last, number) for first, last, number in matches] if start else matches


@lru_cache(maxsize=4096)
def _spellings(term: str) -> tuple[str, ...]:
    """``"cplusplus"`` -> ``"cplusplus", "c++"``: names such as ``C++`` are spelled out only in the index."""
    spellings = {term}
    spelled_out = _SPELLED_OUT.fullmatch(term)
    if spelled_out is not None:
        spellings.add(spelled_out[1] + ("++" if spelled_out[2] == "plusplus" else "#"))
    elif term in ("plusplus", "dotnet"):
        spellings.add("++" if term == "plusplus" else ".net")
    return tuple(spellings)


def _find_all(folded: str, match_terms: MatchTerms, start: int, stop: int, max_matches: int) -> list[Match]:
    """Return all matches that begin between two positions, in order; they may overlap.

    Args:
        max_matches: Maximum number of matches of each term.
    """
    matches: list[Match] = []
    if match_terms.letters:
        matches += _find_letters(folded, match_terms.letters, start, stop, max_matches)
    for match_term in match_terms.words:
        first = folded.find(match_term.text, start, stop)
        if first >= 0:
            _find(folded, match_term, first, stop, matches, max_matches)
    for sequence, number in match_terms.sequences.items():
        matches += _find_sequence(folded, sequence, number, start, stop, max_matches)
    matches.sort()
    return matches


def _find(folded: str, match_term: MatchTerm, start: int, stop: int, matches: list[Match], limit: int) -> None:
    """Add the first matches of one spelling; ``start`` is its first occurrence, and all must begin before ``stop``."""
    text, number, is_prefix, words = (
        match_term.text,
        match_term.number,
        match_term.is_prefix,
        match_term.words,
    )
    size, length = len(text), len(folded)
    left_edge = match_term.whole and _IS_WORD_CHARACTER[text[0]]
    right_edge = match_term.whole and _IS_WORD_CHARACTER[text[-1]]
    count = 0
    while start >= 0 and count < limit:
        end = start + size
        is_match = not (left_edge and start and _IS_WORD_CHARACTER[folded[start - 1]])
        if is_match:
            if is_prefix:
                while end < length and _IS_WORD_CHARACTER[folded[end]]:
                    end += 1
                is_match = not words or folded[start:end] in words
            else:
                is_match = not (right_edge and end < length and _IS_WORD_CHARACTER[folded[end]])
        if is_match:
            matches.append((start, end, number))
            count += 1
        start = folded.find(text, end if is_match else start + 1, stop)


def _is_letter(match_term: MatchTerm) -> bool:
    return len(match_term.text) == 1 and match_term.text.isascii() and match_term.whole and not match_term.is_prefix


def _find_letters(folded: str, numbers: Mapping[str, int], first: int, last: int, max_matches: int) -> list[Match]:
    """Find one-letter words by their boundaries, because they are far rarer than the letter itself."""
    matches: list[Match] = []
    remaining = dict.fromkeys(numbers, max_matches)
    for match in _LONELY_LETTER.finditer(folded, first, last):
        letter, (start, end) = match.group(), match.span()
        if not remaining.get(letter):
            continue
        if (start and _IS_WORD_CHARACTER[folded[start - 1]]) or (end < len(folded) and _IS_WORD_CHARACTER[folded[end]]):
            continue
        remaining[letter] -= 1
        matches.append((start, end, numbers[letter]))
    return matches


def _find_sequence(
    folded: str, sequence: tuple[str, ...], number: int, start: int, stop: int, max_matches: int
) -> list[Match]:
    matches: list[Match] = []
    if not any(spelling in folded for spelling in _spellings(sequence[-1])):
        return matches
    search = _sequence_pattern(sequence).search
    match = search(folded, start, stop)
    while match is not None and len(matches) < max_matches:
        first, end = match.span()
        whole = not _is_inside(folded, first) and not _is_inside(folded, end) and _are_words(match.group(), sequence)
        if whole:
            matches.append((first, end, number))
        match = search(folded, end if whole else first + 1, stop)
    return matches


def _is_inside(folded: str, offset: int) -> bool:
    """Whether a position is inside a word of a script with spaces."""
    return 0 < offset < len(folded) and _IS_WORD_CHARACTER[folded[offset - 1]] and _IS_WORD_CHARACTER[folded[offset]]


def _are_words(text: str, sequence: tuple[str, ...]) -> bool:
    """Whether a match consists of these words; not if ``\\W`` has split a word at a vowel sign of an Indian script."""
    return text.isascii() or any(map(UNSEGMENTED_RUN.match, sequence)) or tuple(terms_of(text)) == sequence


@lru_cache(maxsize=1024)
def _sequence_pattern(sequence: tuple[str, ...]) -> re.Pattern[str]:
    parts: list[str] = []
    for before, term in pairwise((None, *sequence)):
        spellings = _spellings(term or "")
        word = f"(?:{'|'.join(map(re.escape, spellings))})" if len(spellings) > 1 else re.escape(spellings[0])
        if before is not None:
            has_sign = any(not spelling[0].isalnum() for spelling in spellings)
            min_gap = 0 if has_sign or UNSEGMENTED_RUN.match(term or "") or UNSEGMENTED_RUN.match(before) else 1
            # The gap ends where the word can begin; otherwise the number of ways to match a sign would explode.
            gap = f"(?:(?!{word})[\\W_])" if has_sign else r"[\W_]"
            parts.append(f"{gap}{{{min_gap},{MAX_GAP}}}+")
        parts.append(word)
    return re.compile("".join(parts))
