"""Limits for the text and values of a page, so that together they fit into a document."""

from __future__ import annotations

import re

MAX_TEXT_BYTES = 1_048_576 - 131_072
"""Maximum bytes of a page's text in JSON. A document may have 1 MiB; the rest is for its other fields."""
MAX_LINE_CHARACTERS = 1_000
"""Maximum number of characters in a title, an excerpt, or a value."""

ESCAPED = re.compile(r'["\\\n\r\t\b\f]')
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
"""Invisible characters, each of which takes six bytes in JSON."""


def cut_text(text: str) -> str:
    """Truncate a text at the end of a word so that it fits into a document, and remove control characters."""
    text = CONTROL.sub("", text[: MAX_TEXT_BYTES + 1])
    if _json_bytes(text) <= MAX_TEXT_BYTES:
        return text
    while (excess := _json_bytes(text) - MAX_TEXT_BYTES) > 0:
        # A character takes up to four bytes.
        text = text[: -max(1, excess // 4)]
    return _to_word_end(text)


def cut_line(text: str) -> str:
    """Join a text into one line, and truncate it at the end of a word."""
    line = " ".join(CONTROL.sub("", text[: MAX_LINE_CHARACTERS * 10]).split())
    return line if len(line) <= MAX_LINE_CHARACTERS else _to_word_end(line[:MAX_LINE_CHARACTERS])


def _json_bytes(text: str) -> int:
    return len(text.encode()) + len(ESCAPED.findall(text))


def _to_word_end(text: str) -> str:
    blank = max(text.rfind(" ", -100), text.rfind("\n", -100))
    return text[:blank] if blank > 0 else text
