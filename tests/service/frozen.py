"""Processes that hang: they keep their connections, and say nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.server import processes


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes and their children (SIGSTOP) for as long as the block lasts."""
    all_pids = [*pids]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # First, so that it starts no further ones.
    all_pids += [pid for pid, parent in processes() if parent in pids]
    for pid in all_pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in all_pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
