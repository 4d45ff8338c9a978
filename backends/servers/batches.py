"""Splitting documents into batches of one request each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

MAX_BATCH_DOCUMENTS = 250
"""Maximum number of documents per batch; larger batches delay searches."""

MAX_BATCH_BYTES = 2_097_152
"""Maximum size of a batch in bytes, unless a single document is larger."""

SHARE_BYTES = 524_288
"""Bytes of a body for which a server gets one full time limit: its indexing time grows with the amount of text."""


def time_shares(size: int) -> int:
    """Number of time limits that a server gets for indexing a body of this size, at least 1."""
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
