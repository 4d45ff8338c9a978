"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import re
import unicodedata

QUOTE_IN_WORD = '(?<=[א-ת\u05b0-\u05c2])"(?=[א-ת](?![א-ת]))'
"""A pattern for a quote that is the sign of a Hebrew abbreviation, before its last letter."""

ABBREVIATION = QUOTE_IN_WORD.replace('"', '["\u05f4]')
"""A pattern for that sign however it is typed."""

INDIAN = "\u0900-\u0963\u0971-\u0dff"
"""The letters of Indian scripts and the signs of which they write vowels, as ranges of a pattern."""

_MARK = "".join(char for char in map(chr, range(0x300, 0x10000)) if unicodedata.combining(char))
_MANY_MARKS = re.compile(f"([{_MARK}]{{30}})[{_MARK}]+")

_ASCII = bytes(range(128))
_CURLY_QUOTES = str.maketrans("“”„", '"""')


def normal_form(query: str) -> str:
    """A query as it is counted and pinned: trimmed, lower-case, NFC, with single spaces."""
    return unicodedata.normalize("NFC", " ".join(query.lower().split()))


def straight_quotes(query: str) -> str:
    """A query with the quotes that phones make of ``"`` as typed."""
    return query.translate(_CURLY_QUOTES)


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, in order: few as a rule, and quicker looked through than all."""
    return "" if text.isascii() else without_ascii(text.encode("utf-8", "surrogatepass"))


def few_marks(text: str, foreign: str | None = None) -> str:
    """A text in which at most 30 marks follow each other, as in Unicode's Stream-Safe Text Format (UAX #15).

    Putting marks in order takes time with the square of their number. Marks beyond 16 bits are not counted.

    Args:
        foreign: Its characters beyond ASCII, where they are at hand.
    """
    if _MANY_MARKS.search(beyond_ascii(text) if foreign is None else foreign) is None:
        return text
    return _MANY_MARKS.sub(r"\1", text)


def without_ascii(encoded: bytes) -> str:
    """The same of a text in UTF-8."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")
