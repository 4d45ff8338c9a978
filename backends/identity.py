"""The name by which the service knows a search engine."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)


def engine_identity(kind: str, name: str = "") -> str:
    """The identity of an engine: its kind and, where there are two of the kind, the name its URL gives it.

    Folder and host are no part of it, so that an engine may move.

    Raises:
        ValueError: ``name`` has other characters than lower-case letters, digits, ``_`` and ``-``, or more than 32.
    """
    if not name:
        return kind
    if not _NAME.fullmatch(name):
        raise ValueError("The name of a search engine has lower-case letters, digits, _ and -, at most 32.")
    return f"{kind}:{name}"
