"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import unicodedata

_ASCII = bytes(range(128))


def normal_form(query: str) -> str:
    """A query as it is counted and pinned: trimmed, lower-case, NFC, with single spaces."""
    return unicodedata.normalize("NFC", " ".join(query.lower().split()))


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, in order: few as a rule, and quicker looked through than all."""
    return "" if text.isascii() else without_ascii(text.encode("utf-8", "surrogatepass"))


def without_ascii(encoded: bytes) -> str:
    """The same of a text in UTF-8."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")
