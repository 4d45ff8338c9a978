"""Documents in the form that server engines accept: IDs, values that keep their order and equality, and batches."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256
from typing import Any

from backends.values import fold_to_sort, fold_value

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9_-]{1,128}")
_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")


def encode_id(document_id: str) -> str:
    """Return a document's id as a server's key: ``a-1`` -> ``a-1``, ``a/1`` -> ``x-`` and 64 hexadecimal digits.

    Ids of up to 128 letters, digits, ``_``, and ``-`` are unchanged. Every other id, and every id that begins with
    ``x-``, becomes ``x-`` and its SHA-256 hash, so that no two ids share a key, and no dot, slash, or quote from a
    caller reaches a path.
    """
    if _PLAIN.fullmatch(document_id):
        return document_id
    return "x-" + sha256(document_id.encode()).hexdigest()


def checked_index_name(index: str) -> str:
    """Return ``index`` if it is a valid index name, because it becomes part of a URL.

    Raises:
        ValueError: ``index`` is not 1 to 64 lower-case letters, digits, and ``_``.
    """
    if _INDEX_NAME.fullmatch(index) is None:
        raise ValueError(f"{index!r} is not a valid index name.")
    return index


_SORT_CHARACTERS = 40
"""Characters by which a server sorts a text. With 300, Typesense needs 85 % more memory for texts of 500 characters."""

_TOKEN_CHARACTERS = 96
_FACET_BYTES = 400


def ordered_number(value: int | float) -> int:
    """Return a signed 64-bit integer that sorts like the number itself (in the order of IEEE 754 doubles).

    Whole numbers beyond 2**53 share the integer of the nearest double.
    """
    # Adding 0.0 turns -0.0 into 0.0, which has other bits but is the same number.
    (bits,) = struct.unpack(">q", struct.pack(">d", float(value) + 0.0))
    return int(bits) if bits >= 0 else int(bits ^ 0x7FFF_FFFF_FFFF_FFFF)


def number_in_order(ordered: int) -> float:
    """Return the number that :func:`ordered_number` encoded."""
    (number,) = struct.unpack(">d", struct.pack(">q", ordered if ordered >= 0 else ordered ^ 0x7FFF_FFFF_FFFF_FFFF))
    return float(number)


def sort_text(text: str) -> str:
    """Return ASCII text that sorts like the beginning of ``text``, ignoring case and accents; never empty."""
    # In hexadecimal, since servers sort text by their own rules. The prefix keeps the text from being empty, which they
    # would treat as missing.
    return "0" + fold_to_sort(text)[:_SORT_CHARACTERS].encode().hex()


def term(field: str, kind: str, value: str) -> str:
    """Return a token of 20 hexadecimal digits that represents one value of one field, for exact comparison.

    Args:
        kind: Kind of the value or test, such as ``text``, ``number``, or ``exists``; equal values of different kinds
            have different tokens.
    """
    # A digest, because servers split, fold, or truncate the values themselves. NUL separates the parts, as no value
    # contains it.
    return blake2b(f"{field}\0{kind}\0{value}".encode(), digest_size=10).hexdigest()


def text_term(field: str, value: str) -> str:
    """Return the token of a text. Texts that differ only in case have the same token."""
    return term(field, "text", fold_value(value))


def number_term(field: str, value: int | float) -> str:
    """Return the token of a number; 5 and 5.0 have the same token."""
    whole = isinstance(value, int) or value.is_integer()
    return term(field, "number", str(int(value)) if whole else repr(float(value)))


def facet_token(text: str) -> str:
    """Encode ``text`` as words of at most 96 letters and digits; :func:`facet_text` decodes it.

    Texts are truncated to 400 bytes, so longer texts with the same beginning share a facet value.
    """
    digits = "v" + text.encode()[:_FACET_BYTES].decode(errors="ignore").encode().hex()
    return " ".join(digits[offset : offset + _TOKEN_CHARACTERS] for offset in range(0, len(digits), _TOKEN_CHARACTERS))


def facet_text(token: str) -> str:
    """Decode a :func:`facet_token`."""
    return bytes.fromhex(token.replace(" ", "")[1:]).decode()


def as_list(value: Any) -> list[Any]:
    """Return a list's items, or a single value as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


MAX_BATCH_DOCUMENTS = 250
"""Maximum number of documents per batch; larger batches delay searches."""

MAX_BATCH_BYTES = 2_097_152
"""Maximum size of a batch in bytes, unless a single document is larger."""

SHARE_BYTES = 524_288
"""Bytes of a body for which a server gets one full time limit: its indexing time grows with the amount of text."""


def time_shares(size: int) -> int:
    """Return the factor by which the time limit for indexing a body of this size is extended, at least 1."""
    return max(1, math.ceil(size / SHARE_BYTES))


def batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group encoded documents into batches of at most :data:`MAX_BATCH_DOCUMENTS` and :data:`MAX_BATCH_BYTES`."""
    batch: list[bytes] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == MAX_BATCH_DOCUMENTS or size + len(document) > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield batch
