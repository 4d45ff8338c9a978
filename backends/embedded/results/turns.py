"""Turns of threads at making hits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.05
"""How long a thread waits for its turn; then it goes on without: a disk may be slow, or a page of hits large."""

_taken = threading.Lock()


@contextmanager
def turn() -> Iterator[None]:
    """Let one thread of the process at a time make hits.

    Reading a document lets the other threads have the interpreter for a moment. If they want it, a page of hits is
    twenty changes of threads, which cost more than the reading.
    """
    mine = _taken.acquire(timeout=TURN_SECONDS)
    try:
        yield
    finally:
        if mine:
            _taken.release()
