"""Time limit for waiting on other threads and processes; only a failing test reaches it."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def eventually(condition: Callable[[], object], what: str = "it did not happen in time") -> None:
    """Return as soon as the condition holds; fail if it takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
