"""Finding the places of matches in a text.

A text is folded letter by letter, so that places in the folded text are places in the text, and searched for each
matching term with ``str.find``: far faster than cutting every text into words.
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

from backends.embedded.analysis.normalization import SILENT, UNSEGMENTED_RUN, compose, fold, terms_of
from backends.text import without_ascii

MAX_MATCHES = 400
"""Matches looked for in one text."""

LONGEST_SEARCHED = 200_000

Match = tuple[int, int, int]
"""Start, end, and the number of the query's word that matched there."""

_OFTEN_SEVERAL = (
    *range(0xC0, 0x2B0), *range(0xF40, 0xFC0), *range(0x1D00, 0x1F00), *range(0x2460, 0x2500), *range(0x2776, 0x2794),
    *range(0x2C60, 0x2C80), *range(0xA720, 0xA800), *range(0xFB00, 0xFB07),
)  # fmt: skip
_LIGATURES = "".join(char for char in map(chr, _OFTEN_SEVERAL) if len(fold(char) or compose(char)) != 1)
_MARKS = f"{SILENT}\u3099\u309a\uff9e\uff9f"
_JAMO = "\u1100-\u11ff"
_MOVING = "".join(filter("\U00010000".__gt__, _MARKS)) + f"{_LIGATURES}{_JAMO}\uff61-\uff9d\U00010a00-\U0001d7ff"
"""Characters that may not be one letter of the index each, or are one together with those beside them.

What is beyond 16 bits is one range: more of them, and looking for any takes three times as long.
"""
_MOVES = re.compile(f"[{_MOVING}]")
# Begun with one, the place is searched for by that, which is faster.
_MOVING_RUN = re.compile(f"[{_MOVING}][{_MOVING}]*")
_LETTER_WITH_MARKS = re.compile(f"(?:[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|.)[{_MARKS}]{{0,16}}", re.DOTALL)
_PLAIN_BUT_TYPOGRAPHY = re.compile(
    "[\xa0-\xa9\xab\xac\xae-\xb1\xb4\xb6-\xb8\xbb\xbf\u2010-\u2027\u2030-\u205e\u20ac\u2122\u2190-\u21ff]*"
)
_LONG_RUN = 16
"""Letters of a run that is not remembered: they are rarely the same."""

_FEW_LETTERS = 64
_FAMILY_PREFIX = 3
_WIDEST_GAP = 16
"""Characters between the words of a phrase: brackets, quotes, dots."""
_PLAIN_REST = re.compile("[a-z0-9]*")
_SPELLED_OUT = re.compile("([a-z])(plusplus|sharp)")


class _LetterFolds(dict[int, int]):
    """Letter to the one letter it folds to; letters that fold to several stay."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        folded = _fold_char(char)
        result = ord(folded) if len(folded) == 1 else ord(char.lower()) if len(char.lower()) == 1 else code
        self[code] = result
        return result


def _fold_char(char: str) -> str:
    return "" if "\ud800" <= char <= "\udfff" else fold(char)


_LETTER_FOLDS = _LetterFolds()


class _GoesOn(dict[str, bool]):
    """Character to whether a word of a script with spaces goes on with it."""

    def __missing__(self, char: str) -> bool:
        goes_on = char.isalnum() if char.isascii() else UNSEGMENTED_RUN.match(char) is None and bool(_fold_char(char))
        if char < "\U00010000":
            self[char] = goes_on
        return goes_on


_GOES_ON = _GoesOn()

_LONELY_LETTER = re.compile("(?<![a-z0-9])[a-z0-9](?![a-z0-9])")
_MANY_LETTERS = 5
"""Words of one letter from which on one look through a text for all of them is quicker than one for each."""


@dataclass(frozen=True, slots=True)
class MatchTerm:
    """One spelling that is looked for.

    Attributes:
        text: The spelling, folded.
        number: Of the query's word it stands for.
        whole: Whether it must begin where a word begins, and end where one ends.
        last_term_is_prefix: Whether the word may go on.
        words: The words it may go on to; any if empty.
    """

    text: str
    number: int
    whole: bool
    last_term_is_prefix: bool
    words: frozenset[str] = frozenset()


class MatchTerms:
    """Patterns of what the words of a query match in texts.

    Args:
        match_terms: The spellings that match.
        sequences: Folded words that match when they follow each other, with the number of the query's word.

    Attributes:
        numbers: The query's words that can match.
    """

    def __init__(self, match_terms: Sequence[MatchTerm], sequences: Mapping[tuple[str, ...], int]):
        letters = {match_term.text: match_term.number for match_term in match_terms if _is_letter(match_term)}
        self.letters = letters if len(letters) >= _MANY_LETTERS else {}
        self.words = [match_term for match_term in match_terms if not (self.letters and _is_letter(match_term))]
        self.sequences = sequences
        self.numbers = frozenset({match_term.number for match_term in match_terms}) | frozenset(sequences.values())
        self._all_match_terms = match_terms
        self._parts: dict[frozenset[int], MatchTerms] = {}

    @classmethod
    def of(
        cls, terms: Mapping[str, int], prefixes: Mapping[str, int], sequences: Mapping[tuple[str, ...], int]
    ) -> Self:
        """Of words and beginnings of words.

        Args:
            terms: Folded words (or pairs of characters, of scripts without spaces) that match whole, with the number
                of the query's word each stands for.
            prefixes: Folded beginnings of words, with the same.
            sequences: Folded words that match when they follow each other, with the same.
        """
        return cls(_match_terms_for(terms, prefixes), sequences)

    def only(self, numbers: frozenset[int]) -> MatchTerms:
        """The same for some of the query's words."""
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
    found: list[MatchTerm] = []
    families: dict[tuple[int, str], list[str]] = {}
    for term, number in terms.items():
        if UNSEGMENTED_RUN.match(term):
            found.append(MatchTerm(term, number, False, False))
        else:
            for spelling in _spellings(term):
                families.setdefault((number, spelling[:_FAMILY_PREFIX]), []).append(spelling)
    for (number, _), words in families.items():
        # The forms of a word mostly begin alike: looking for their beginning takes one walk through a text, not ten.
        start = commonprefix(words)  # noqa: RUF071 - of characters, as wanted
        if len(words) > 1 and len(start) >= _FAMILY_PREFIX and all(map(str.isalnum, words)):
            found.append(MatchTerm(start, number, True, True, frozenset(words)))
        else:
            found += [MatchTerm(word, number, True, False) for word in words]
    for prefix, number in prefixes.items():
        found += [MatchTerm(spelling, number, True, True) for spelling in _spellings(prefix)]
    return found


def find_matches(text: str, match_terms: MatchTerms) -> list[Match]:
    """The places of all matches, in order; they may overlap."""
    return _find_everywhere(*fold_text(text[:LONGEST_SEARCHED]), match_terms)


def _find_everywhere(folded: str, places: Places | None, match_terms: MatchTerms) -> list[Match]:
    found = _find_all(folded, match_terms, 0, len(folded))
    return found if places is None else [(places[first], places[last], number) for first, last, number in found]


class SearchedText:
    """A text that is searched more than once, and folded as a whole at most once.

    Args:
        text: Nothing after its first :data:`LONGEST_SEARCHED` letters is looked at.
    """

    def __init__(self, text: str):
        self.text = text
        self._whole: tuple[str, Places | None] | None = None

    def part(self, start: int = 0, end: int = LONGEST_SEARCHED) -> FoldedText:
        """A part of it, folded."""
        end = min(end, LONGEST_SEARCHED)
        if self._whole is not None and self._whole[1] is None:
            return FoldedText(self._whole[0][start:end], None, start)
        return FoldedText(*fold_text(self.text[start:end]), start)

    def all_matches(self, match_terms: MatchTerms) -> list[Match]:
        """The places of all matches, in order; they may overlap."""
        return _find_everywhere(*self._fold_whole(), match_terms)

    def first_matches(self, match_terms: MatchTerms, starts: Sequence[int], typed: Set[str]) -> list[Match]:
        """At least the first match of each spelling in each part, in no order, and one as typed if there is one.

        Args:
            starts: Where the parts begin, in order; the first one begins with the text.
            typed: Folded words as they were typed.
        """
        folded, places = self._fold_whole()
        if places is not None or match_terms.letters:
            return self.all_matches(match_terms)
        found: list[Match] = []
        ends = [*starts[1:], len(folded)]
        for match_term in match_terms.words:
            # Of beginnings, a whole word may follow; of words, all are as typed, or none.
            looks_on = match_term.last_term_is_prefix and not typed.isdisjoint(match_term.words or (match_term.text,))
            at = folded.find(match_term.text)
            while at >= 0:
                end = ends[bisect_right(starts, at) - 1]
                _find_first(folded, match_term, at, end, typed if looks_on else None, found)
                at = folded.find(match_term.text, end)
        for sequence, number in match_terms.sequences.items():
            found += _find_sequence(folded, sequence, number, 0, len(folded))
        return found

    def _fold_whole(self) -> tuple[str, Places | None]:
        if self._whole is None:
            self._whole = fold_text(self.text[:LONGEST_SEARCHED])
        return self._whole


def _find_first(
    folded: str, match_term: MatchTerm, at: int, stop: int, typed: Set[str] | None, found: list[Match]
) -> None:
    """Add the first match that begins before ``stop``, and the first of those among ``typed``, if wanted."""
    first = len(found)
    while at >= 0:
        known = len(found)
        _find(folded, match_term, at, stop, found, 1)
        if len(found) == known or typed is None:
            return
        start, end, _ = found[-1]
        is_typed = folded[start:end] in typed
        if known > first and not is_typed:
            found.pop()
        if is_typed:
            return
        at = folded.find(match_term.text, end, stop)


class FoldedText:
    """A folded part of a text; places are those of the folded text.

    Args:
        text: What :func:`fold_text` makes of the part.
        places: The same.
        start: Where the part begins.
    """

    def __init__(self, text: str, places: Places | None, start: int):
        self._text, self._places, self._start = text, places, start

    def find(self, match_terms: MatchTerms, start: int = 0, end: int = sys.maxsize) -> list[Match]:
        """The places of all matches between two places, in order; they may overlap."""
        return _find_all(self._text, match_terms, start, min(end, len(self._text)))

    def in_text(self, found_matches: Iterable[Match]) -> list[Match]:
        """The same spans in the text that was folded."""
        start, places = self._start, self._places
        if places is not None:
            return [(start + places[first], start + places[last], number) for first, last, number in found_matches]
        return (
            [(start + first, start + last, number) for first, last, number in found_matches]
            if start
            else list(found_matches)
        )


class Places:
    """The place where the characters of a folded text stand in the text, if they are not as many."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._parts: list[tuple[int, bool]] = []

    def add(self, start: int, place: int, *, moves: bool) -> None:
        """From ``start`` on, the folded text comes from ``place`` on; all of it from there, unless it ``moves``."""
        self._starts.append(start)
        self._parts.append((place, moves))

    def __getitem__(self, at: int) -> int:
        part = bisect_right(self._starts, at) - 1
        place, moves = self._parts[part]
        return place + at - self._starts[part] if moves else place


def fold_text(text: str) -> tuple[str, Places | None]:
    """The folded text, and the place of each of its characters in the text where they differ."""
    if text.isascii():
        return text.lower(), None
    # In bytes, lower-casing looks at ASCII only, and is many times faster than in a text.
    encoded = text.encode("utf-8", "surrogatepass")
    folded = encoded.lower().decode("utf-8", "surrogatepass")
    beyond = without_ascii(encoded)
    if _PLAIN_BUT_TYPOGRAPHY.fullmatch(beyond) is not None:
        return folded, None
    folded = _fold_letters(folded, set(beyond))
    if _MOVES.search(beyond) is None:
        return folded, None
    parts: list[str] = []
    places = Places()
    at = length = 0
    for match in _MOVING_RUN.finditer(folded):
        place, end = match.span()
        if place > at:
            # A mark may make another letter of the one before it.
            place -= 1
        places.add(length, at, moves=True)
        parts.append(folded[at:place])
        length += place - at
        fold_run = _fold_run if end - place < _LONG_RUN else _fold_run.__wrapped__
        for letters, size in fold_run(text[place:end]):
            places.add(length, place, moves=False)
            parts.append(letters)
            length += len(letters)
            place += size
        at = end
    places.add(length, at, moves=True)
    parts.append(folded[at:])
    return "".join(parts), places


def _fold_letters(text: str, beyond: Set[str]) -> str:
    """A text whose ASCII is folded with every other letter folded that folds to one; all stay where they are.

    Args:
        beyond: The characters it has that are not ASCII.
    """
    letters = map(ord, beyond)
    folded = {letter: _LETTER_FOLDS[letter] for letter in letters if _LETTER_FOLDS[letter] != letter}
    if len(folded) > _FEW_LETTERS:
        return text.translate(_LETTER_FOLDS)
    # Most texts have few of them, and replacing those is many times faster.
    for letter, plain in folded.items():
        text = text.replace(chr(letter), chr(plain))
    return text


@lru_cache(maxsize=8192)
def _fold_run(run: str) -> tuple[tuple[str, int], ...]:
    """Each letter of a run folded with its marks, and how many characters of the run it is."""
    return tuple((fold(letter) or compose(letter), len(letter)) for letter in _LETTER_WITH_MARKS.findall(run))


@lru_cache(maxsize=4096)
def _spellings(term: str) -> tuple[str, ...]:
    """Ways to write a folded term in a folded text: a name such as ``C++`` is spelt only in the index."""
    found = {term}
    spelled_out = _SPELLED_OUT.fullmatch(term)
    if spelled_out is not None:
        found.add(spelled_out[1] + ("++" if spelled_out[2] == "plusplus" else "#"))
    elif term in ("plusplus", "dotnet"):
        found.add("++" if term == "plusplus" else ".net")
    return tuple(found)


def _find_all(folded: str, match_terms: MatchTerms, start: int, stop: int) -> list[Match]:
    """The places of all matches that begin between two places, in order; they may overlap."""
    found: list[Match] = []
    if match_terms.letters:
        found += _find_letters(folded, match_terms.letters, start, stop)
    for match_term in match_terms.words:
        first = folded.find(match_term.text, start, stop)
        if first >= 0:
            _find(folded, match_term, first, stop, found, MAX_MATCHES)
    for sequence, number in match_terms.sequences.items():
        found += _find_sequence(folded, sequence, number, start, stop)
    found.sort()
    return found


def _find(folded: str, match_term: MatchTerm, start: int, stop: int, found: list[Match], most: int) -> None:
    """Add the first places of one needle that begin before ``stop``, of which the first is at ``start`` or later."""
    wanted, number, last_term_is_prefix, words = (
        match_term.text,
        match_term.number,
        match_term.last_term_is_prefix,
        match_term.words,
    )
    plain_rest = _PLAIN_REST.match
    size, length = len(wanted), len(folded)
    left_edge = match_term.whole and _GOES_ON[wanted[0]]
    right_edge = match_term.whole and _GOES_ON[wanted[-1]]
    count = 0
    while start >= 0 and count < most:
        end = start + size
        matches = not (left_edge and start and _GOES_ON[folded[start - 1]])
        if matches:
            if last_term_is_prefix:
                end = plain_rest(folded, end).end()  # type: ignore[union-attr]
                while end < length and _GOES_ON[folded[end]]:
                    end += 1
                matches = not words or folded[start:end] in words
            else:
                matches = not (right_edge and end < length and _GOES_ON[folded[end]])
        if matches:
            found.append((start, end, number))
            count += 1
        start = folded.find(wanted, end if matches else start + 1, stop)


def _is_letter(match_term: MatchTerm) -> bool:
    return (
        len(match_term.text) == 1
        and match_term.text.isascii()
        and match_term.whole
        and not match_term.last_term_is_prefix
    )


def _find_letters(folded: str, numbers: Mapping[str, int], first: int, last: int) -> list[Match]:
    """The places of words of one letter: there are far fewer of them than of the letter."""
    found: list[Match] = []
    room = dict.fromkeys(numbers, MAX_MATCHES)
    for match in _LONELY_LETTER.finditer(folded, first, last):
        letter, (start, end) = match.group(), match.span()
        if not room.get(letter):
            continue
        if (start and _GOES_ON[folded[start - 1]]) or (end < len(folded) and _GOES_ON[folded[end]]):
            continue
        room[letter] -= 1
        found.append((start, end, numbers[letter]))
    return found


def _find_sequence(folded: str, sequence: tuple[str, ...], number: int, start: int, stop: int) -> list[Match]:
    found: list[Match] = []
    if not any(spelling in folded for spelling in _spellings(sequence[-1])):
        return found
    search = _sequence_pattern(sequence).search
    match = search(folded, start, stop)
    while match is not None and len(found) < MAX_MATCHES:
        first, end = match.span()
        whole = not _is_inside(folded, first) and not _is_inside(folded, end) and _are_words(match.group(), sequence)
        if whole:
            found.append((first, end, number))
        match = search(folded, end if whole else first + 1, stop)
    return found


def _is_inside(folded: str, at: int) -> bool:
    """Tell whether a place is in the middle of a word of a script with spaces."""
    return 0 < at < len(folded) and _GOES_ON[folded[at - 1]] and _GOES_ON[folded[at]]


def _are_words(text: str, sequence: tuple[str, ...]) -> bool:
    """Tell whether a text is these words: some signs of Indian scripts part words for ``\\W``."""
    return text.isascii() or any(map(UNSEGMENTED_RUN.match, sequence)) or tuple(terms_of(text)) == sequence


@lru_cache(maxsize=1024)
def _sequence_pattern(sequence: tuple[str, ...]) -> re.Pattern[str]:
    parts: list[str] = []
    for before, term in pairwise((None, *sequence)):
        spellings = _spellings(term or "")
        word = f"(?:{'|'.join(map(re.escape, spellings))})" if len(spellings) > 1 else re.escape(spellings[0])
        if before is not None:
            has_sign = any(not spelling[0].isalnum() for spelling in spellings)
            least = 0 if has_sign or UNSEGMENTED_RUN.match(term or "") or UNSEGMENTED_RUN.match(before) else 1
            # A gap ends where the word can begin: else there would be very many ways to match a word that is a sign.
            gap = f"(?:(?!{word})[\\W_])" if has_sign else r"[\W_]"
            parts.append(f"{gap}{{{least},{_WIDEST_GAP}}}+")
        parts.append(word)
    return re.compile("".join(parts))
