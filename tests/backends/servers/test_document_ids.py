"""Encoding of document IDs for server engines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.servers.documents import encode_id


@given(st.text(min_size=1, max_size=512).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
def test_encoded_id_is_path_safe_and_at_most_128_characters_long(id: str) -> None:
    encoded = encode_id(id)
    assert 1 <= len(encoded) <= 128
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in encoded)


def test_distinct_ids_have_distinct_encodings() -> None:
    hostile = [
        "..",
        "../..",
        "a",
        "A",
        "a/b",
        "x-",
        "x-" + "0" * 64,
        encode_id("a/b"),
        "é",
        "e\u0301",
        " a",
        "a ",
        "a" * 129,
    ]
    assert len({encode_id(id) for id in hostile}) == len(hostile)
    assert encode_id("page-1_b") == "page-1_b"
