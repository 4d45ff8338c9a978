"""Documents in batches that a server takes in one request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

MOST_DOCUMENTS = 250
"""Documents of one batch; more of them make searches wait."""

MOST_BYTES = 2_097_152
"""Bytes of one batch, unless a single document has more."""

SHARE_BYTES = 524_288
"""Bytes that a server is given its whole time limit for: indexing takes it as long as there is text."""


def time_shares(size: int) -> int:
    """The number of times the time limit a server has to index a body of so many bytes, at least 1."""
    return max(1, math.ceil(size / SHARE_BYTES))


def batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Documents, encoded as the server gets them, in batches of ``MOST_DOCUMENTS`` and ``MOST_BYTES`` at most."""
    batch: list[bytes] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == MOST_DOCUMENTS or size + len(document) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield batch
