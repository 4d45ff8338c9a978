"""Sentences and lines of texts, and telling prose from code and tables."""

from __future__ import annotations

import re

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

MAX_SENTENCES_CHARS = 300
"""Maximum length, in characters, of the whole sentences of a cropped text."""

# A leading class lets the regex engine scan for the sign: four times as fast as two patterns that begin with one.
SENTENCE_END = re.compile(r"""[.!?…。！？](?:(?<![。！？])["')\]”’»]*\s+(?=[^a-z\s])|(?<=[。！？])\s*)""")
"""The end of a sentence; a lower-case letter does not begin another sentence."""


_SIGNS = re.compile(r"[\t{}<>|=;$\\`_\[\]]")
"""Tabs, which separate the cells of tables, and signs that are frequent in code and rare in prose."""
_PROSE_CHARS_PER_SIGN = 40


def is_prose(text: str) -> bool:
    """Whether a part of a text consists of sentences, rather than of code or the cells of a table."""
    return len(_SIGNS.findall(text)) * _PROSE_CHARS_PER_SIGN <= len(text)


def whole_sentences(text: str, start: int, end: int) -> Span | None:
    """Return the sentences or lines that contain a part of a text, plus following ones that fit.

    ``None`` if they have more than :data:`MAX_SENTENCES_CHARS` characters.
    """
    earliest = end - MAX_SENTENCES_CHARS if end > MAX_SENTENCES_CHARS else 0
    line = text.rfind("\n", earliest, start) + 1
    begin = line if line or not earliest else -1
    # The pattern recognizes the end of the previous sentence only by the letter that follows it, hence start + 1.
    for boundary in SENTENCE_END.finditer(text, line or earliest, start + 1):
        boundary_end = boundary.end()
        if boundary_end <= start:
            begin = boundary_end
    if begin < 0:
        return None
    latest = begin + MAX_SENTENCES_CHARS
    if latest >= len(text):
        return begin, len(text)
    last = text.rfind("\n", end, latest + 1)
    for boundary in SENTENCE_END.finditer(text, end if last < 0 else last, latest + 1):
        last = boundary.start() + len(boundary[0].rstrip())
    return None if last < 0 else (begin, last)
