"""Bounds of what is kept of a page: together they fit into a document."""

from __future__ import annotations

import re

MAX_TEXT_BYTES = 1_048_576 - 131_072
"""Bytes of a page's text as JSON has it. A document has 1 MiB; the rest of it is for the other fields."""
MAX_LINE_CHARACTERS = 1_000
"""Characters of a title, an excerpt, or a value."""

ESCAPED = re.compile(r'["\\\n\r\t\b\f]')
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
"""Characters that JSON writes with six bytes, and that nobody reads."""


def cut_text(text: str) -> str:
    """The beginning of a text, as much as a document takes, up to the end of a word; without control characters."""
    text = CONTROL.sub("", text[: MAX_TEXT_BYTES + 1])
    if _json_bytes(text) <= MAX_TEXT_BYTES:
        return text
    kept = text
    while (excess := _json_bytes(kept) - MAX_TEXT_BYTES) > 0:
        kept = kept[: -max(1, excess // 4)]
    return _to_word_end(kept)


def cut_line(text: str) -> str:
    """A text in one line, its beginning if it is long."""
    line = " ".join(CONTROL.sub("", text[: MAX_LINE_CHARACTERS * 10]).split())
    return line if len(line) <= MAX_LINE_CHARACTERS else _to_word_end(line[:MAX_LINE_CHARACTERS])


def _json_bytes(text: str) -> int:
    return len(text.encode()) + len(ESCAPED.findall(text))


def _to_word_end(text: str) -> str:
    blank = max(text.rfind(" ", -100), text.rfind("\n", -100))
    return text[:blank] if blank > 0 else text
