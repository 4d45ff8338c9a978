"""Splitting documents into batches."""

from __future__ import annotations

import pytest

from backends.servers import documents as module
from backends.servers.documents import SHARE_BYTES, batches, time_shares


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit batches to three documents and ten bytes."""
    monkeypatch.setattr(module, "MAX_BATCH_DOCUMENTS", 3)
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 10)


@pytest.mark.parametrize(("sizes", "expected"), [
    ([], []), ([1], [[1]]), ([1, 1, 1, 1], [[1, 1, 1], [1]]), ([5, 5, 1], [[5, 5], [1]]), ([9, 2], [[9], [2]]),
    ([1, 40, 1], [[1], [40], [1]]), ([40, 40], [[40], [40]]), ([10, 10], [[10], [10]]),
])  # fmt: skip
def test_batch_is_limited_by_count_and_bytes_but_always_fits_one_document(
    sizes: list[int], expected: list[list[int]]
) -> None:
    assert [[len(each) for each in batch] for batch in batches(b"x" * size for size in sizes)] == expected


def test_documents_are_generated_lazily_per_batch() -> None:
    made = []

    def documents():
        for number in range(9):
            made.append(number)
            yield b"x"

    next(batches(documents()))
    assert made == [0, 1, 2, 3]


@pytest.mark.parametrize(("size", "shares"), [
    (0, 1), (1, 1), (SHARE_BYTES, 1), (SHARE_BYTES + 1, 2), (10 * SHARE_BYTES, 10),
])  # fmt: skip
def test_indexing_time_budget_grows_with_body_size(size: int, shares: int) -> None:
    assert time_shares(size) == shares
