"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import unicodedata

ASCII = bytes(range(128))
"""Every byte of UTF-8 that is a character by itself."""


def normal_form(query: str) -> str:
    """A query as it is counted and pinned: trimmed, lower-case, NFC, with single spaces."""
    return unicodedata.normalize("NFC", " ".join(query.lower().split()))


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, in order: few as a rule, and quicker looked through than all."""
    if text.isascii():
        return ""
    return text.encode("utf-8", "surrogatepass").translate(None, ASCII).decode("utf-8", "surrogatepass")
