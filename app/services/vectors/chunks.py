"""Parts of a document that its vector is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CHUNK_CHARACTERS = 900
"""Characters of a part at most: about as many as small models take."""

TITLE_CHARACTERS = 300
"""Characters of the title before each part at most."""

CHUNKS = 3
"""Parts of a document that count, from the beginning."""


def chunks_of(document: Mapping[str, Any]) -> list[str]:
    """The first parts of a document's content, or of its excerpt, each behind the title; else the title alone.

    A part ends between words, unless that would make it less than half as long.
    """
    title = str(document.get("title", ""))[:TITLE_CHARACTERS]
    text = str(document.get("content") or document.get("excerpt") or "").strip()
    chunks: list[str] = []
    while text and len(chunks) < CHUNKS:
        end = len(text)
        if end > CHUNK_CHARACTERS:
            end = max(text.rfind(space, 0, CHUNK_CHARACTERS) for space in " \n")
            if end < CHUNK_CHARACTERS // 2:
                end = CHUNK_CHARACTERS
        chunks.append(f"{title}\n{text[:end].rstrip()}")
        text = text[end:].lstrip()
    return chunks or [title]
