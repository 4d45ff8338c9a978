"""Document ids in the form that server engines can keep, and that is safe inside a URL."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9_-]{1,128}")
_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")


def encode_id(document_id: str) -> str:
    """The engine's own key of a document.

    Ids of letters, digits, ``_`` and ``-`` stay as they are. Every other id, and every id that looks encoded,
    becomes ``x-`` and its SHA-256, so two ids never share a key and no caller's dot, slash or quote reaches a path.
    """
    if _PLAIN.fullmatch(document_id):
        return document_id
    return "x-" + sha256(document_id.encode()).hexdigest()


def checked_index_name(index: str) -> str:
    """``index`` itself.

    Raises:
        ValueError: It is not a name the service gives to indexes; it must not reach a URL.
    """
    if _INDEX_NAME.fullmatch(index) is None:
        raise ValueError(f"{index!r} is not the name of an index.")
    return index
