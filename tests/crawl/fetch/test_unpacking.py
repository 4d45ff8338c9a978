"""Compressed bodies are decompressed as a stream."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.responses import UnpackingError, unpack


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS = {"": bytes, "identity": bytes, "gzip": gzip.compress, "X-GZIP": gzip.compress, "deflate": zlib.compress}


@given(st.binary(max_size=5_000), st.integers(1, 300), st.sampled_from(sorted(PACKERS)), st.integers(1, 40))
def test_decompressing_restores_the_body_for_any_chunk_boundaries(
    data: bytes, step: int, encoding: str, times: int
) -> None:
    packed = PACKERS[encoding](data * times)
    pieces = [packed[at : at + step] for at in range(0, len(packed), step)]

    assert b"".join(unpack(pieces, encoding)) == data * times


def test_raw_deflate_and_stacked_encodings_are_decompressed() -> None:
    assert b"".join(unpack([raw_deflate(b"text")], "deflate")) == b"text"
    assert b"".join(unpack([gzip.compress(zlib.compress(b"text"))], "deflate, gzip")) == b"text"


def test_several_gzip_members_are_decompressed_and_padding_is_ignored() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"

    assert b"".join(unpack([packed], "gzip")) == b"one two"


def test_compression_bomb_is_decompressed_only_as_far_as_it_is_read() -> None:
    taken = 0

    def bomb() -> Iterator[bytes]:
        nonlocal taken
        packer = zlib.compressobj(wbits=31)
        while True:
            taken += 1
            yield packer.compress(bytes(1_048_576)) or packer.flush(zlib.Z_SYNC_FLUSH)

    unpacked = unpack(bomb(), "gzip")
    pieces = [next(unpacked) for _ in range(32)]

    assert max(map(len, pieces)) <= 65_536
    assert taken <= 32


def test_nested_compression_bomb_is_decompressed_only_as_far_as_it_is_read() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))

    assert len(next(unpack([bomb], "gzip, gzip"))) <= 65_536


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (gzip.compress(b"text" * 100, mtime=0)[:-20], "gzip"),
        (b"no gzip", "gzip"),
        (b"\x78\x9cno deflate", "deflate"),
        (b"text", "br"),
        (b"text", "gzip, gzip, gzip"),
    ],
)
def test_corrupt_bodies_and_unsupported_encodings_raise_unpacking_error(packed: bytes, encoding: str) -> None:
    with pytest.raises(UnpackingError):
        list(unpack([packed], encoding))
