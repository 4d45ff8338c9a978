"""Waiting for other servers without keeping this process's threads from other work.

A thread that serves requests waits inside :func:`waiting`, so that its pool can let another thread work meanwhile. In
other threads, :func:`waiting` does nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

_thread = threading.local()


class WorkerPool(Protocol):
    """A pool of threads that lets another thread work while one of them only waits."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context in which the current thread only waits, so that the pool can let another one work."""
        ...


def set_worker_pool(pool: WorkerPool) -> None:
    """Declare that the current thread belongs to ``pool`` from now on."""
    _thread.pool = pool


@contextmanager
def waiting() -> Iterator[None]:
    """Let another thread of the pool work while the current thread waits in the block. Blocks may be nested."""
    pool: WorkerPool | None = getattr(_thread, "pool", None)
    if pool is None:
        yield
        return
    _thread.pool = None
    try:
        with pool.waiting():
            yield
    finally:
        _thread.pool = pool


@contextmanager
def wait_for(context: AbstractContextManager[object]) -> Iterator[None]:
    """Enter a context, such as a lock, and let another thread of the pool work until it is entered."""
    with ExitStack() as stack:
        with waiting():
            stack.enter_context(context)
        yield


def sleep(seconds: float) -> None:
    """Sleep, and let another thread of the pool work meanwhile."""
    with waiting():
        time.sleep(seconds)
