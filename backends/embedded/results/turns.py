"""Turns of threads at building hits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.05
"""Seconds that a thread waits for its turn before it continues without: a disk may be slow, or a page large."""

_turn_lock = threading.Lock()


@contextmanager
def turn() -> Iterator[None]:
    """Let one thread of the process at a time build hits.

    Reading a document releases the interpreter for a moment. If other threads take it each time, a page of hits causes
    twenty thread switches, which cost more than the reading.
    """
    has_turn = _turn_lock.acquire(timeout=TURN_SECONDS)
    try:
        yield
    finally:
        if has_turn:
            _turn_lock.release()
