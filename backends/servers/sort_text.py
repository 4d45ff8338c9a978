"""Values as text and integers that keep their order and equality in any engine."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Any

from backends.values import fold_value

_SORT_CHARACTERS = 40
_TOKEN_CHARACTERS = 96
_FACET_BYTES = 400


def ordered_number(value: int | float) -> int:
    """A signed 64-bit integer in the same order as the numbers themselves (that of IEEE 754 doubles).

    Whole numbers beyond 2**53 share the integer of the nearest double.
    """
    (bits,) = struct.unpack(">q", struct.pack(">d", float(value) + 0.0))
    return int(bits) if bits >= 0 else int(bits ^ 0x7FFF_FFFF_FFFF_FFFF)


def sort_text(text: str) -> str:
    """ASCII text that sorts as the first 40 characters of ``text`` without case do; never empty."""
    return "0" + fold_value(text)[:_SORT_CHARACTERS].encode().hex()


def term(field: str, kind: str, value: str) -> str:
    """A token of 20 letters and digits that represents one value of one field."""
    return blake2b(f"{field}\0{kind}\0{value}".encode(), digest_size=10).hexdigest()


def text_term(field: str, value: str) -> str:
    """The token of a text; equal for texts that differ only in case."""
    return term(field, "text", fold_value(value))


def number_term(field: str, value: int | float) -> str:
    """The token of a number; equal for 5 and 5.0."""
    whole = isinstance(value, int) or value.is_integer()
    return term(field, "number", str(int(value)) if whole else repr(float(value)))


def facet_token(text: str) -> str:
    """Encode ``text`` in letters and digits, in words of at most 96; :func:`facet_text` decodes it.

    Texts longer than 400 bytes are truncated, and share a facet value with texts of the same beginning.
    """
    digits = "v" + text.encode()[:_FACET_BYTES].decode(errors="ignore").encode().hex()
    return " ".join(digits[at : at + _TOKEN_CHARACTERS] for at in range(0, len(digits), _TOKEN_CHARACTERS))


def facet_text(token: str) -> str:
    """Decode a :func:`facet_token`."""
    return bytes.fromhex(token.replace(" ", "")[1:]).decode()


def as_list(value: Any) -> list[Any]:
    """A list's items, or a single value as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]
