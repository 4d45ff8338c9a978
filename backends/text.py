"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

QUOTE_IN_WORD = '(?<=[א-ת\u05b0-\u05c2])"(?=[א-ת](?![א-ת]))'
"""A pattern for a quote that is the sign of a Hebrew abbreviation, before its last letter."""

ABBREVIATION = QUOTE_IN_WORD.replace('"', '["\u05f4]')
"""A pattern for that sign however it is typed."""

INDIAN = "\u0900-\u0963\u0971-\u0dff"
"""The letters of Indian scripts and the signs of which they write vowels, as ranges of a pattern."""

MOST_MARKS = 30
"""Marks that may follow each other in a text that is normalised, as in Unicode's Stream-Safe Text Format (UAX #15)."""


def _is_mark(char: str) -> bool:
    """Tell whether a character is a mark, or nothing but marks when it is taken apart."""
    if unicodedata.combining(char):
        return True
    return bool(unicodedata.decomposition(char)) and all(
        map(unicodedata.combining, unicodedata.normalize("NFKD", char))
    )


_MARKS = "".join(filter(_is_mark, map(chr, (*range(0x300, 0xD800), *range(0xF900, 0x1F000)))))
_MANY_MARKS = re.compile(f"([{_MARKS}]{{{MOST_MARKS}}})[{_MARKS}]+")
_LAST_OF_16_BITS = "\uffff"
_BEYOND_16_BITS = [char for char in _MARKS if char > _LAST_OF_16_BITS]
# Beyond 16 bits it looks for one range, which has letters too: looking for every mark in it takes twenty times as long.
_PERHAPS_MANY = re.compile(
    f"[{_MARKS.rstrip(''.join(_BEYOND_16_BITS))}{_BEYOND_16_BITS[0]}-{_BEYOND_16_BITS[-1]}]{{{MOST_MARKS + 1}}}"
)

_ASCII = bytes(range(128))
_CURLY_QUOTES = str.maketrans("“”„", '"""')


def normal_form(query: str) -> str:
    """A query as it is counted and pinned: trimmed, lower-case, NFC, with single spaces."""
    return normalized("NFC", " ".join(query.lower().split()))


def in_case_of(typed: str, word: str) -> str:
    """A word in lower case as somebody would write it who typed another: with a capital, or in capitals."""
    if len(typed) > 1 and typed.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def straight_quotes(query: str) -> str:
    """A query with the quotes that phones make of ``"`` as typed."""
    return query.translate(_CURLY_QUOTES)


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, in order: few as a rule, and quicker looked through than all."""
    return "" if text.isascii() else without_ascii(text.encode("utf-8", "surrogatepass"))


def few_marks(text: str, foreign: str | None = None) -> str:
    """A text in which at most :data:`MOST_MARKS` marks follow each other; of more, the first are kept.

    Args:
        foreign: Its characters beyond ASCII, where they are at hand.
    """
    if _PERHAPS_MANY.search(beyond_ascii(text) if foreign is None else foreign) is None:
        return text
    return _MANY_MARKS.sub(r"\1", text)


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str, foreign: str | None = None) -> str:
    """A text with few marks in one of Unicode's normal forms.

    Putting marks in order takes time with the square of their number, so that no text of a caller's is normalised
    otherwise.

    Args:
        foreign: Its characters beyond ASCII, where they are at hand.
    """
    return text if text.isascii() else unicodedata.normalize(form, few_marks(text, foreign))


def without_ascii(encoded: bytes) -> str:
    """The same of a text in UTF-8."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")


_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003134f"
)
_MARKS_IN_WORDS = (
    "\u1ab0-\u1aff\u1dc0-\u1dff\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    f"{INDIAN}\u20d0-\u20ff\ufe20-\ufe2f"
)
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
WORD = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS_IN_WORDS}]))+")
"""A word, or a run of letters of a script without spaces."""


_INSIDE_WORDS = re.compile(
    "[\xad\u200c-\u200f\ufeff\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""Signs that are neither letters nor boundaries: invisible joiners, and letters in circles and squares."""

_EMOJI_STYLES = "".join(map(chr, range(0xFE00, 0xFE10)))


@cache
def word_boundaries() -> str:
    """Returns the characters at which words end, in order: those of the embedded engine, for every other engine.

    Blocks whose signs never stand beside words (such as Braille and SignWriting) are left out.
    """
    blocks = ((0, 0x2800), (0x2900, 0x3400), (0xA000, 0xAC00), (0xF900, 0x10000), (0x1F000, 0x1FB00))
    return "".join(char for first, end in blocks for char in map(chr, range(first, end)) if _ends_words(char))


def _ends_words(char: str) -> bool:
    kind = unicodedata.category(char)
    is_sign = kind[0] in "PSZ" or kind in ("Cc", "Cf") or char in _EMOJI_STYLES
    return is_sign and not (WORD.match(char) or _INSIDE_WORDS.match(char))
