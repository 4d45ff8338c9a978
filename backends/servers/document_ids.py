"""Document ids in a form that server engines accept and that is safe inside a URL."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9_-]{1,128}")
_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")


def encode_id(document_id: str) -> str:
    """The engine's own key of a document.

    Ids of letters, digits, ``_``, and ``-`` are unchanged. Every other id, and every id that looks encoded,
    becomes ``x-`` and its SHA-256 hash, so that no two ids share a key, and no dot, slash, or quote from a caller
    reaches a path.
    """
    if _PLAIN.fullmatch(document_id):
        return document_id
    return "x-" + sha256(document_id.encode()).hexdigest()


def checked_index_name(index: str) -> str:
    """Return ``index`` if it is a valid index name, because it becomes part of a URL.

    Raises:
        ValueError: The service does not give indexes such names.
    """
    if _INDEX_NAME.fullmatch(index) is None:
        raise ValueError(f"{index!r} is not a valid index name.")
    return index
