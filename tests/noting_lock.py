"""A lock that lets tests detect a waiting thread."""

from __future__ import annotations

import threading


class NotingLock:
    """A lock that sets an event when a thread waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_waited_for = threading.Event()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout > 0:
            self.is_waited_for.set()
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        self._lock.release()

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()
