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


class Places(Protocol):
    """The places of a pool's threads."""

    def waiting(self) -> AbstractContextManager[None]:
        """Context in which the current thread only waits."""
        ...


def work_in(places: Places) -> None:
    """Declare that the current thread works in one of ``places`` from now on."""
    _thread.places = places


@contextmanager
def waiting() -> Iterator[None]:
    """Let other threads work while the current thread waits in the block. Blocks may be nested."""
    places: Places | None = getattr(_thread, "places", None)
    if places is None:
        yield
        return
    _thread.places = None
    try:
        with places.waiting():
            yield
    finally:
        _thread.places = places


@contextmanager
def wait_for(context: AbstractContextManager[object]) -> Iterator[None]:
    """Enter a context, such as a lock, and let other threads work until it is entered."""
    with ExitStack() as stack:
        with waiting():
            stack.enter_context(context)
        yield


def sleep(seconds: float) -> None:
    """Sleep, and let other threads work meanwhile."""
    with waiting():
        time.sleep(seconds)
