"""Chunks of documents, each of which has a vector."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from backends.sections import split_sections

CHUNK_CHARACTERS = 900
"""Maximum length of a chunk in characters, about 256 tokens, the limit of small models."""

MAX_CHUNKS = 32
"""Maximum number of chunks of a document, from its beginning."""


def chunks_of(document: Mapping[str, Any], characters: int = CHUNK_CHARACTERS, limit: int = MAX_CHUNKS) -> list[str]:
    """Return the chunks of a document's content or excerpt, each after the title; without either, only the title.

    Args:
        characters: Maximum length of a chunk. The title before it has at most a third of this length.
        limit: Maximum number of chunks.
    """
    title = str(document.get("title", ""))[: characters // 3]
    text = text_of(document)
    return [f"{title}\n{text[start:end]}" for start, end in spans_of(document, characters, limit)] or [title]


def text_of(document: Mapping[str, Any]) -> str:
    """Return the text that is split into chunks."""
    return str(document.get("content") or document.get("excerpt") or "")


def spans_of(
    document: Mapping[str, Any], characters: int = CHUNK_CHARACTERS, limit: int = MAX_CHUNKS
) -> list[tuple[int, int]]:
    """Return start and end of each chunk in the text.

    A chunk contains as many whole sections as fit. A longer section is split between words, unless that would halve a
    chunk's length.
    """
    text = text_of(document)
    starts = [section.start for section in split_sections(document)[1]] if document.get("content") else []
    spans: list[tuple[int, int]] = []
    start, length = _skip_spaces(text, 0), len(text.rstrip())
    while start < length and len(spans) < limit:
        end = length
        if length - start > characters:
            end = start + characters
            section = starts[bisect_right(starts, end) - 1] if starts else 0
            space = max(text.rfind(space, start, end) for space in " \n")
            if section > start:
                end = section
            elif space >= start + characters // 2:
                end = space
        spans.append((start, start + len(text[start:end].rstrip())))
        start = _skip_spaces(text, end)
    return spans


def _skip_spaces(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
