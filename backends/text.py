"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import unicodedata

QUOTE_IN_WORD = '(?<=[א-ת])"(?=[א-ת](?![א-ת]))'
"""A pattern for a quote that is the sign of a Hebrew abbreviation, before its last letter."""

ABBREVIATION = QUOTE_IN_WORD.replace('"', '["\u05f4]')
"""A pattern for that sign however it is typed."""

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


def without_ascii(encoded: bytes) -> str:
    """The same of a text in UTF-8."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")
