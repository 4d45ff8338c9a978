"""Processes that hang or run very slowly: they keep their connections without responding."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from tests.server import processes


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes and their children (SIGSTOP) for as long as the block lasts."""
    all_pids = [*pids]
    _send(signal.SIGSTOP, pids)  # First, so that they start no further children.
    all_pids += [pid for pid, parent in processes() if parent in pids]
    _send(signal.SIGSTOP, all_pids)
    try:
        yield
    finally:
        _send(signal.SIGCONT, all_pids)


@contextmanager
def slowed(*pids: int) -> Iterator[None]:
    """Let processes and their children run only a tenth of the time for as long as the block lasts."""
    ended = threading.Event()

    def slow() -> None:
        while not ended.wait(0.01):
            with frozen(*pids):
                ended.wait(0.09)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # It ended in the meantime.
            os.kill(pid, number)
