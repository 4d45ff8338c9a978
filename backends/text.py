"""Text forms that the engine and the analytics share."""

from __future__ import annotations

import unicodedata


def normal_form(query: str) -> str:
    """A query as it is counted and pinned: trimmed, lower-case, NFC, with single spaces."""
    return unicodedata.normalize("NFC", " ".join(query.lower().split()))
