"""Unpacking compressed bodies piece by piece, without ever holding more than was asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

PACKED = "gzip, deflate"
"""The ``Accept-Encoding`` of a crawler that reads bodies with :func:`unpack`."""

_PIECE = 65_536
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MOST_LAYERS = 2


class UnpackingError(Exception):
    """A body is not packed as it says, or in a way that was not offered."""


def unpack(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The pieces of a body, unpacked, at most 64 KiB each: a bomb costs no memory until it is read.

    Args:
        pieces: The body as it was transferred.
        encoding: The value of ``Content-Encoding``; empty for none.

    Raises:
        UnpackingError: The body is not packed that way, ends too early, or the encoding is not known.
    """
    names = [name.strip().lower() for name in encoding.split(",")]
    layers = [name for name in names if name not in {"", "identity"}]
    if len(layers) > _MOST_LAYERS:
        raise UnpackingError("packed too many times")
    for name in reversed(layers):
        if name in {"gzip", "x-gzip"}:
            pieces = _inflate(pieces, _GZIP_OR_ZLIB)
        elif name == "deflate":
            pieces = _inflate(pieces, None)
        else:
            raise UnpackingError(f"packed with {name[:40]}, which was not asked for")
    yield from pieces


def _inflate(pieces: Iterable[bytes], wbits: int | None) -> Iterator[bytes]:
    """Unpack gzip members or zlib streams, or where ``wbits`` is ``None``, zlib or raw deflate, whichever it is."""
    inflater: zlib._Decompress | None = None
    begun = False
    for piece in pieces:
        packed = piece
        while packed or inflater is not None:
            if inflater is None:
                if begun and not packed.startswith(b"\x1f"):
                    return  # Servers pad the end with zeros.
                inflater = zlib.decompressobj(wbits or _deflate_wbits(packed))
                begun = True
            try:
                unpacked = inflater.decompress(packed, _PIECE)
            except zlib.error as error:
                raise UnpackingError(str(error)) from error
            if unpacked:
                yield unpacked
            if inflater.eof:
                packed = inflater.unused_data
                inflater = None
            else:
                packed = inflater.unconsumed_tail
                if not packed and len(unpacked) < _PIECE:
                    break
    if inflater is not None:
        raise UnpackingError("the body ends too early")


def _deflate_wbits(packed: bytes) -> int:
    """Some servers send deflate without the envelope of zlib that the standard asks for."""
    return zlib.MAX_WBITS if packed[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
