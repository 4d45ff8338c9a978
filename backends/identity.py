"""The name by which the service identifies a search engine."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)


def engine_identity(kind: str, name: str = "") -> str:
    """The identity of an engine: its kind, plus the name in its URL if there are two of the kind.

    It contains neither folder nor host, so that an engine can move.

    Raises:
        ValueError: ``name`` contains other characters than lower-case letters, digits, ``_``, and ``-``, or over 32.
    """
    if not name:
        return kind
    if not _NAME.fullmatch(name):
        raise ValueError("The name of a search engine may contain at most 32 lower-case letters, digits, _, and -.")
    return f"{kind}:{name}"
