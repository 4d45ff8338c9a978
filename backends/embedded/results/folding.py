"""Folding texts to the letters that are searched, with the offsets in the original text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Set
from functools import lru_cache
from itertools import pairwise

from backends.analysis.normalization import FRACTIONS, NUMERO, SILENT, ZERO_WIDTH_SPACE, compose, fold
from backends.text import without_ascii

_POSSIBLE_LIGATURES = (
    *range(0xBC, 0xBF), *range(0xC0, 0x2B0), *range(0xF40, 0xFC0), *range(0x1D00, 0x1F00), 0x2116,
    *range(0x2150, 0x218A), *range(0x2460, 0x2500), *range(0x2776, 0x2794), *range(0x2C60, 0x2C80),
    *range(0xA720, 0xA800), *range(0xFB00, 0xFE00), *range(0xFE70, 0xFEFD),
)  # fmt: skip
_LIGATURES = "".join(char for char in map(chr, _POSSIBLE_LIGATURES) if len(fold(char) or compose(char)) != 1)
_FRACTION = re.compile(f"[{FRACTIONS}]")
_MARKS = f"{SILENT}{ZERO_WIDTH_SPACE}\u3099\u309a\uff9e\uff9f"
_JAMO = "\u1100-\u11ff"
_MOVING = "".join(filter("\U00010000".__gt__, _MARKS)) + f"{_LIGATURES}{_JAMO}\uff61-\uff9d\U00010a00-\U0001f3ff"
"""Characters that may fold to any number of letters, or form one letter with their neighbors.

Everything beyond 16 bits is a single range: with several ranges, a search for any of them takes three times as long.
"""
_MOVES = re.compile(f"[{_MOVING}]")
# A leading single-character class lets the regex engine scan for the first character, which is faster.
_MOVING_RUN = re.compile(f"[{_MOVING}][{_MOVING}]*")
_LETTER_WITH_MARKS = re.compile(f"(?:[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|.)[{_MARKS}]{{0,16}}", re.DOTALL)
_PLAIN_BUT_TYPOGRAPHY = re.compile(
    "[\xa0-\xa9\xab\xac\xae-\xb1\xb4\xb6-\xb8\xbb\xbf\u2010-\u2027\u2030-\u205e\u20ac\u2122\u2190-\u21ff]*"
)
_MIN_UNCACHED_RUN = 16
"""Minimum length of a run whose folding is not cached, because long runs rarely recur."""

_MAX_REPLACED_LETTERS = 64
"""Maximum number of different letters that are replaced one by one instead of with ``str.translate``."""


class _LetterFolds(dict[int, int]):
    """``ord("É")`` -> ``ord("e")``; letters that fold to several are only converted to lower case."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        folded = fold_char(char)
        result = ord(folded) if len(folded) == 1 else ord(char.lower()) if len(char.lower()) == 1 else code
        self[code] = result
        return result


def fold_char(char: str) -> str:
    """Fold one character; a lone surrogate has no letter."""
    return "" if "\ud800" <= char <= "\udfff" else fold(char)


_LETTER_FOLDS = _LetterFolds()


class OffsetMap:
    """Maps offsets in a folded text to offsets in the original text, if their lengths differ."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._originals: list[tuple[int, bool]] = []

    def add(self, start: int, original: int, *, moves: bool) -> None:
        """Map the offsets of the folded text from ``start`` on, until the next call.

        Args:
            original: Offset in the original text to which ``start`` maps.
            moves: Whether later offsets move along with ``start``; otherwise all of them map to ``original``.
        """
        self._starts.append(start)
        self._originals.append((original, moves))

    def to_original(self, matches: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """Return matches in a folded text, which must be in order, as matches in the original text."""
        starts, originals = [*self._starts, sys.maxsize], self._originals
        converted: list[tuple[int, int, int]] = []
        index = 0
        for first, last, number in matches:
            while starts[index + 1] <= first:
                index += 1
            end_index = index
            while starts[end_index + 1] <= last:
                end_index += 1
            original, moves = originals[index]
            start = original + first - starts[index] if moves else original
            original, moves = originals[end_index]
            converted.append((start, original + last - starts[end_index] if moves else original, number))
        return converted


def fold_text(text: str) -> tuple[str, OffsetMap | None]:
    """Fold a text to lower-case letters without accents, as they are searched.

    Returns:
        The folded text, and the map of its offsets to offsets in the text; ``None`` if they are equal.
    """
    if text.isascii():
        return text.lower(), None
    # bytes.lower() changes only ASCII, and is many times faster than str.lower().
    encoded = text.encode("utf-8", "surrogatepass")
    folded = encoded.lower().decode("utf-8", "surrogatepass")
    beyond = without_ascii(encoded)
    if _PLAIN_BUT_TYPOGRAPHY.fullmatch(beyond) is not None:
        return folded, None
    folded = _fold_letters(folded, set(beyond))
    if _MOVES.search(beyond) is None:
        return folded, None
    parts: list[str] = []
    offsets = OffsetMap()
    offset = length = 0
    for match in _MOVING_RUN.finditer(folded):
        start, end = match.span()
        if start > offset:
            # A mark can change the letter before it, so that letter is folded together with the run.
            start -= 1
        offsets.add(length, offset, moves=True)
        parts.append(folded[offset:start])
        length += start - offset
        fold_run = _fold_run if end - start < _MIN_UNCACHED_RUN else _fold_run.__wrapped__
        for letters, size in fold_run(text[start:end]):
            offsets.add(length, start, moves=False)
            parts.append(letters)
            length += len(letters)
            start += size
        offset = end
    offsets.add(length, offset, moves=True)
    parts.append(folded[offset:])
    return "".join(parts), offsets


def _fold_letters(text: str, beyond: Set[str]) -> str:
    """Fold the non-ASCII letters that fold to a single letter; all offsets stay the same.

    Args:
        text: Text with its ASCII letters already in lower case.
        beyond: The non-ASCII characters of the text.
    """
    letters = map(ord, beyond)
    folded = {letter: _LETTER_FOLDS[letter] for letter in letters if _LETTER_FOLDS[letter] != letter}
    if len(folded) > _MAX_REPLACED_LETTERS:
        return text.translate(_LETTER_FOLDS)
    # Most texts have few different ones, and str.replace is then many times faster.
    for letter, plain in folded.items():
        text = text.replace(chr(letter), chr(plain))
    return text


@lru_cache(maxsize=8192)
def _fold_run(run: str) -> tuple[tuple[str, int], ...]:
    """``"éﬁ"`` -> ``("e", 1), ("fi", 1)``: each letter folded with its marks, and its number of characters."""
    parts: list[tuple[str, int]] = []
    letters = _LETTER_WITH_MARKS.findall(run)
    for before, letter in pairwise(["", *letters]):
        folded = fold(letter) or compose(letter)
        is_numero = letter[0] == NUMERO
        if is_numero or (before.isdecimal() and _FRACTION.match(letter)):
            folded = f" {folded}"
        parts.append((folded, len(letter)))
        if is_numero:
            parts.append((" ", 0))
    return tuple(parts)
