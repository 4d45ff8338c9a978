"""Conversion of documents for the index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.embedded.index.documents import sort_text


@given(st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)),
       st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)))  # fmt: skip
def test_sort_text_orders_numbers_by_size(left: float, right: float) -> None:
    if left < right:
        assert sort_text(left) < sort_text(right)
    assert sort_text(left) < sort_text("")
    assert sort_text(True) > sort_text(False)
