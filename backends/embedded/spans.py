"""Where in a text the matches are.

A text is folded letter by letter, so that places in the folded text are places in the text, and searched for each
matching term with ``str.find``: far faster than cutting every text into words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from backends.embedded.folding import RUN, fold, pieces_of

MOST_SPANS = 400
"""Matches looked for in one text."""

LONGEST_SEARCHED = 200_000

Span = tuple[int, int, str]
"""Start, end, and the term that matched there."""

_LIGATURES = {"ß": "ss", "æ": "ae", "œ": "oe", "ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "þ": "th", "ĳ": "ij"}
_LETTERS_TO_FOLD = re.compile(
    "[\xc0-\u02af\u0370-\u052f\u1e00-\u1fff\uff10-\uff5a\u0621-\u0626\u0629\u0649\u0671\u06a9\u06cc]"
)
_SILENT_OR_COMPOUND = re.compile(
    "[\xad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u093c\u094d\u09bc"
    "\u09cd\u0a3c\u0a4d\u0abc\u0acd\u0b3c\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u0e47-\u0e4e\u0ec8-\u0ece\u1037\u1039\u103a"
    "\u17c9-\u17d3\u17dd\u200b-\u200f\u3099\u309a\ufeff\uff61-\uff9f\u0130\U0001d400-\U0001d7ff\u1100-\u11ff]"
)
_SPELLED = {"cplusplus": "c++", "csharp": "c#", "dotnet": ".net"}


class _LetterFolds(dict[int, int]):
    """Letter to the one letter it folds to; letters that fold to several stay."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        folded = fold(char) if char.isalpha() else char
        result = ord(folded) if len(folded) == 1 else ord(char.lower()) if len(char.lower()) == 1 else code
        self[code] = result
        return result


_LETTER_FOLDS = _LetterFolds()


def find_spans(
    text: str, terms: Iterable[str], prefixes: Iterable[str], sequences: Iterable[tuple[str, ...]]
) -> list[Span]:
    """The places of all matches, in order, without overlaps.

    Args:
        terms: Folded words (or pairs of characters, of scripts without spaces) that match whole.
        prefixes: Folded beginnings of words.
        sequences: Folded words that match when they follow each other.
    """
    text = text[:LONGEST_SEARCHED]
    folded, places = _fold_text(text)
    found: list[Span] = []
    for term in terms:
        if RUN.match(term):
            found += _find(folded, term, term, False, False)
        else:
            for spelling in _spellings(term):
                found += _find(folded, spelling, term, True, False)
    for prefix in prefixes:
        for spelling in _spellings(prefix):
            found += _find(folded, spelling, prefix, True, True)
    for sequence in sequences:
        found += _find_sequence(folded, sequence)
    if not found:
        return []
    if places is not None:
        end = len(text)
        places = [*places, end]
        found = [(places[start], places[stop], term) for start, stop, term in found]
    return _merged(found)


def is_word_char(char: str) -> bool:
    """Whether a character belongs to words: letters, digits and the marks that some scripts write vowels with."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def _fold_text(text: str) -> tuple[str, list[int] | None]:
    """The folded text, and the place of each of its characters in the text where they differ."""
    if text.isascii():
        return text.lower(), None
    if _SILENT_OR_COMPOUND.search(text) is None:
        if _LETTERS_TO_FOLD.search(text) is None:
            lowered = text.lower()
            if len(lowered) == len(text):
                return lowered, None
        return text.translate(_LETTER_FOLDS), None
    letters: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for letter in _fold_char(char):
            letters.append(letter)
            places.append(place)
    return "".join(letters), places


@lru_cache(maxsize=8192)
def _fold_char(char: str) -> str:
    if _SILENT_OR_COMPOUND.match(char) and unicodedata.normalize("NFKC", char) == char:
        return "" if char != "\u200b" else char
    normal = unicodedata.normalize("NFKC", char)
    if not any(is_word_char(part) for part in normal):
        return normal if len(normal) == 1 else char
    return fold(normal) or normal.lower()


@lru_cache(maxsize=4096)
def _spellings(term: str) -> tuple[str, ...]:
    """How a folded term may be written in a text folded letter by letter."""
    found = {term}
    if term in _SPELLED:
        found.add(_SPELLED[term])
    for ligature, letters in _LIGATURES.items():
        if letters in term:
            found.add(term.replace(letters, ligature))
    return tuple(found)


def _find(folded: str, wanted: str, term: str, at_words: bool, open_end: bool) -> Iterator[Span]:
    size, length = len(wanted), len(folded)
    first_is_word = is_word_char(wanted[0])
    last_is_word = is_word_char(wanted[-1])
    start = folded.find(wanted)
    count = 0
    while start >= 0 and count < MOST_SPANS:
        end = start + size
        if not at_words:
            yield start, end, term
            count += 1
        elif not (first_is_word and start and is_word_char(folded[start - 1]) and not RUN.match(folded[start - 1])):
            if open_end:
                while end < length and is_word_char(folded[end]) and not RUN.match(folded[end]):
                    end += 1
            if (
                not last_is_word
                or end >= length
                or not is_word_char(folded[end])
                or RUN.match(folded[end]) is not None
            ):
                yield start, end, term
                count += 1
        start = folded.find(wanted, start + 1)


def _find_sequence(folded: str, sequence: tuple[str, ...]) -> Iterator[Span]:
    pattern = _sequence_pattern(sequence)
    for count, match in enumerate(pattern.finditer(folded)):
        if count >= MOST_SPANS:
            return
        yield match.start(), match.end(), " ".join(sequence)


@lru_cache(maxsize=1024)
def _sequence_pattern(sequence: tuple[str, ...]) -> re.Pattern[str]:
    parts: list[str] = []
    for before, term in pairwise((None, *sequence)):
        if before is not None and RUN.match(before) and RUN.match(term or ""):
            parts.append(re.escape("".join(pieces_of(term or "")[1:])))
            continue
        if parts:
            parts.append(r"[\W_]{0,5}?" if RUN.match(term or "") or RUN.match(before or "") else r"[\W_]{1,5}")
        choices = "|".join(re.escape(spelling) for spelling in _spellings(term or ""))
        parts.append(f"(?:{choices})")
    left = "" if RUN.match(sequence[0]) else r"(?<![^\W_])"
    right = "" if RUN.match(sequence[-1]) else r"(?![^\W_])"
    return re.compile(left + "".join(parts) + right)


def _merged(found: list[Span]) -> list[Span]:
    found.sort(key=lambda span: (span[0], -span[1]))
    result: list[Span] = []
    for start, end, term in found:
        if result and (start < result[-1][1] or (start == result[-1][1] and RUN.match(term) is not None)):
            before = result[-1]
            result[-1] = (before[0], max(before[1], end), before[2])
        elif end > start:
            result.append((start, end, term))
    return result
