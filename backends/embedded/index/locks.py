"""Locks that one thread takes and another gives back.

A writer answers its caller when the commit is done and lets a background thread wait for the merges; the lock is
held until then, so that the next writer of the index finds the directory at rest.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from pathlib import Path
from typing import Protocol

from backends.errors import BackendUnavailable


class Lease(Protocol):
    """A lock that is held."""

    def release(self) -> None:
        """Give the lock back, from any thread; does nothing the second time."""


class FileLease:
    """A ``flock``: it excludes other threads and other processes, and a killed process gives it back."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor
        _HELD.add(self)

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class ThreadLease:
    """A lock within one process."""

    def __init__(self, lock: threading.Lock):
        self._lock: threading.Lock | None = lock

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


_HELD: weakref.WeakSet[FileLease] = weakref.WeakSet()


def _let_go_after_fork() -> None:
    """Close a child's copies of its parent's locks: they would hold them as long as the child lives."""
    for lease in list(_HELD):
        lease.release()


os.register_at_fork(after_in_child=_let_go_after_fork)


def lock_file(path: Path, timeout_seconds: float) -> FileLease:
    """Wait for the lock on a file, which is made if need be and never removed.

    The kernel queues those who wait, so that none starves; a loop of attempts would let some.

    Raises:
        BackendUnavailable: Others held it for the whole time.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _wait_for(descriptor, timeout_seconds)
    except BaseException:
        os.close(descriptor)
        raise
    return FileLease(descriptor)


def try_lock_file(path: Path) -> FileLease | None:
    """The lock on a file if nobody holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return FileLease(descriptor)


def _wait_for(descriptor: int, timeout_seconds: float) -> FileLease:
    state = threading.Lock()
    decided = threading.Event()
    outcome = {"taken": False, "abandoned": False}

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with state:
            outcome["taken"] = True
            if outcome["abandoned"]:
                os.close(descriptor)
        decided.set()

    threading.Thread(target=wait, name="index-lock", daemon=True).start()
    decided.wait(timeout_seconds)
    with state:
        if not outcome["taken"]:
            outcome["abandoned"] = True
            raise BackendUnavailable("The index is being written by others.", retry_after=2)
    return FileLease(descriptor)
