"""Folding Latin letters: no case, accents, strokes, or hooks; and the letters that server engines fold differently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from backends.embedded.analysis.normalization import fold
from backends.text import normalized

_BLOCKS = (
    range(0xC0, 0x2B0), range(0x1D00, 0x1DC0), range(0x1E00, 0x1F00), range(0x2071, 0x209D), range(0x2132, 0x2185),
    range(0x2C60, 0x2C80), range(0xA722, 0xA800), range(0xAB30, 0xAB70), range(0xFB00, 0xFB07), range(0xFF21, 0xFF5B),
    range(0x10780, 0x107BB), range(0x1DF00, 0x1DF2B),
)  # fmt: skip
_LETTERS = [
    char for block in _BLOCKS for char in map(chr, block) if char.isalpha() and "LATIN " in unicodedata.name(char, "")
]

FOLDS = {letter: fold(letter) for letter in _LETTERS}
"""Every non-ASCII Latin letter to the letters under which the embedded engine indexes it."""

_AS_IN_TYPESENSE = re.compile("[\xc0-\u0137\u0139-\u0149\u014c-\u017f\u0218-\u021b\ufb00-\ufb04\ufb06]")


def _in_meilisearch(letter: str) -> str:
    letters = normalized("NFKD", letter).lower().replace("æ", "ae").replace("œ", "oe")
    return "".join(char for char in letters if unicodedata.category(char) != "Mn")


def _ranges(letters: Iterable[str]) -> str:
    """Letters as the inside of a character class."""
    ranges: list[list[str]] = []
    for letter in letters:
        if ranges and ord(letter) == ord(ranges[-1][-1]) + 1:
            ranges[-1][1:] = [letter]
        else:
            ranges.append([letter])
    return "".join(map("-".join, ranges))


OTHER_IN_TYPESENSE = re.compile(
    f"[{_ranges(letter for letter in _LETTERS if not _AS_IN_TYPESENSE.match(letter))}"
    "\u0300-\u1dff\u20d0-\u20ff\u212a\u212b\u2c00-\ufaff\ufb1d-\ufdff\ufe20-\ufe2f\ufe70-\uffff"
    "\U00010000-\U0001efff\U0001fb00-\U0010ffff]"
)
"""Characters that Typesense 0.24.1 folds differently or not at all: some Latin letters, marks, and other scripts."""

OTHER_IN_MEILISEARCH = re.compile(
    f"[{_ranges(letter for letter in _LETTERS if _in_meilisearch(letter) != FOLDS[letter])}\uff21-\uff5aЁё]"
)
"""Letters that Meilisearch 1.50 folds differently without its language packs; it takes full-width ones for Chinese.

In scripts other than Latin it gets words as typed, and folds them in the same way as the words of texts.
"""
