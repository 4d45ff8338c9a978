"""Replacement of characters that do not exist, so that one bad list entry doesn't make a parser reject the others.

References to surrogates (``&#xD83D;``) and lone surrogates in JSON are halves of an emoji that a program has cut off.
Browsers read them as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

MAX_REFERENCE = 10
"""Maximum length in bytes of a numeric reference, such as ``&#1114111;``, that may be valid."""

_NUMERIC_REFERENCE = re.compile(rb"&#(?:[xX]([0-9A-Fa-f]+)|([0-9]+));?")
# Also matches pairs of surrogates and all other escapes, so that ``\\ud83d`` is recognized as a text with a backslash.
_JSON_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|(u[dD][89a-fA-F][0-9A-Fa-f]{2})|.)", re.DOTALL
)


def replace_impossible_references(xml: bytes) -> bytes:
    """Replace numeric references to characters that do not exist: ``b"&#xD83D;" -> b"&#65533;"`` (U+FFFD)."""
    return _NUMERIC_REFERENCE.sub(_possible_reference, xml)


def _possible_reference(match: re.Match[bytes]) -> bytes:
    # Longer numbers are too large or have leading zeros, which no program writes.
    if len(match[0]) > MAX_REFERENCE:
        return b"&#65533;"
    number = int(match[1], 16) if match[1] else int(match[2])
    return b"&#65533;" if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF else match[0]


def read_json(body: bytes) -> Any:
    """Parse JSON, replacing lone surrogates with U+FFFD.

    Raises:
        ValueError: The body is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return orjson.loads(_JSON_ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], body))
