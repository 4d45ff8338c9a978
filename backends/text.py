"""Text normalization shared by the engines and the analytics."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

QUOTE_IN_WORD = '(?<=[א-ת\u05b0-\u05c2])"(?=[א-ת](?![א-ת]))'
"""Pattern for the quote that marks a Hebrew abbreviation, before its last letter."""

ABBREVIATION = QUOTE_IN_WORD.replace('"', '["\u05f4]')
"""Pattern for a Hebrew abbreviation mark in any typed form."""

INDIAN = "\u0900-\u0963\u0971-\u0dff"
"""Letters and vowel signs of Indian scripts, as the inside of a character class."""

MAX_MARKS_IN_A_ROW = 30
"""Maximum number of consecutive marks in normalized text, as in Unicode's Stream-Safe Text Format (UAX #15)."""


def _is_mark(char: str) -> bool:
    """Whether a character is a combining mark, or decomposes into nothing but marks."""
    if unicodedata.combining(char):
        return True
    return bool(unicodedata.decomposition(char)) and all(
        map(unicodedata.combining, unicodedata.normalize("NFKD", char))
    )


_MARKS = "".join(filter(_is_mark, map(chr, (*range(0x300, 0xD800), *range(0xF900, 0x1F000)))))
_MANY_MARKS = re.compile(f"([{_MARKS}]{{{MAX_MARKS_IN_A_ROW}}})[{_MARKS}]+")
_LAST_OF_16_BITS = "\uffff"
_BEYOND_16_BITS = [char for char in _MARKS if char > _LAST_OF_16_BITS]
# Beyond 16 bits, a single range that also includes letters: a class with every mark takes twenty times as long.
_POSSIBLY_MANY_MARKS = re.compile(
    f"[{_MARKS.rstrip(''.join(_BEYOND_16_BITS))}{_BEYOND_16_BITS[0]}-{_BEYOND_16_BITS[-1]}]{{{MAX_MARKS_IN_A_ROW + 1}}}"
)

_ASCII = bytes(range(128))
_CURLY_QUOTES = str.maketrans("“”„", '"""')


def normal_form(query: str) -> str:
    """Normalize a query for counting and pinning: trimmed, lower case, NFC, single spaces."""
    return normalized("NFC", " ".join(query.lower().split()))


def in_case_of(typed: str, word: str) -> str:
    """Give a lower-case word the case of a typed word: capitalized, or all capitals."""
    if len(typed) > 1 and typed.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def straight_quotes(query: str) -> str:
    """Replace the curly quotes that phones type by ``"``."""
    return query.translate(_CURLY_QUOTES)


def beyond_ascii(text: str) -> str:
    """The non-ASCII characters of a text, in order. They are usually few, and faster to scan than the whole text."""
    return "" if text.isascii() else without_ascii(text.encode("utf-8", "surrogatepass"))


def few_marks(text: str, foreign: str | None = None) -> str:
    """Limit runs of consecutive marks to :data:`MAX_MARKS_IN_A_ROW`, keeping the first ones.

    Args:
        foreign: The text's non-ASCII characters, if the caller has them already.
    """
    if _POSSIBLY_MANY_MARKS.search(beyond_ascii(text) if foreign is None else foreign) is None:
        return text
    return _MANY_MARKS.sub(r"\1", text)


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str, foreign: str | None = None) -> str:
    """Convert a text to a Unicode normal form after limiting its runs of marks.

    Sorting marks takes time quadratic in their number, so text from callers must only be normalized with this
    function.

    Args:
        foreign: The text's non-ASCII characters, if the caller has them already.
    """
    return text if text.isascii() else unicodedata.normalize(form, few_marks(text, foreign))


def without_ascii(encoded: bytes) -> str:
    """Return the non-ASCII characters of a UTF-8 text, in order."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")


UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003134f"
)
_MARKS_IN_WORDS = (
    "\u1ab0-\u1aff\u1dc0-\u1dff\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    f"{INDIAN}\u20d0-\u20ff\ufe20-\ufe2f"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
WORD = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])(?:[^\W_]|[{_MARKS_IN_WORDS}]))+")
"""A word, or a run of letters of a script without spaces."""


_INSIDE_WORDS = re.compile(
    "[\xad\u200c-\u200f\ufeff\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""Characters that are neither letters nor boundaries: invisible joiners, and letters in circles and squares."""

_EMOJI_STYLES = "".join(map(chr, range(0xFE00, 0xFE10)))


@cache
def word_boundaries() -> str:
    """Return the characters at which words end in the embedded engine, in order, as a setting for the other engines.

    Blocks whose signs never stand beside words (such as Braille and SignWriting) are left out.
    """
    blocks = ((0, 0x2800), (0x2900, 0x3400), (0xA000, 0xAC00), (0xF900, 0x10000), (0x1F000, 0x1FB00))
    return "".join(char for first, end in blocks for char in map(chr, range(first, end)) if _ends_words(char))


def _ends_words(char: str) -> bool:
    kind = unicodedata.category(char)
    is_sign = kind[0] in "PSZ" or kind in ("Cc", "Cf") or char in _EMOJI_STYLES
    return is_sign and not (WORD.match(char) or _INSIDE_WORDS.match(char))
