"""Named locks, which keep two processes from changing the same part of an engine at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class NamedLocks(Protocol):
    """Locks by name."""

    def hold(self, name: str) -> AbstractContextManager[None]:
        """Wait for the lock ``name`` and hold it."""
        ...

    def try_hold(self, name: str) -> AbstractContextManager[bool]:
        """Hold the lock ``name`` if it is free. Yields whether it was free."""
        ...


class ThreadLocks:
    """Locks among the threads of one process."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Wait for the lock ``name`` and hold it."""
        with self._locks.setdefault(name, threading.Lock()):
            yield

    @contextmanager
    def try_hold(self, name: str) -> Iterator[bool]:
        """Hold the lock ``name`` if it is free. Yields whether it was free."""
        lock = self._locks.setdefault(name, threading.Lock())
        is_held = lock.acquire(blocking=False)
        try:
            yield is_held
        finally:
            if is_held:
                lock.release()
