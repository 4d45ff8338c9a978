"""Locks that one thread acquires and another releases.

A write returns to its caller after the commit, while a background thread waits for the merges. The lock stays held
until then, so that the next writer of the index finds no merge in progress. The next write of the same process does not
wait: it takes over the writer together with its lock.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Protocol

from backends.errors import BackendUnavailable


class Lease(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Release the lock, from any thread; does nothing the second time."""


class FileLease:
    """A ``flock``: excludes other threads and processes. The kernel releases it when the process dies."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor
        _OPEN_LEASES.add(self)

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


# Weak, so that the registry does not keep released leases alive.
_OPEN_LEASES: weakref.WeakSet[FileLease] = weakref.WeakSet()


def _close_locks_in_child() -> None:
    """Close the child's copies of its parent's lock files, which would keep the locks held until the child exits."""
    for lease in list(_OPEN_LEASES):
        lease.release()


os.register_at_fork(after_in_child=_close_locks_in_child)


def lock_file(path: Path, timeout_seconds: float, meanwhile: Iterable[object] = ()) -> FileLease:
    """Wait for the lock on a file, which is created if necessary and never removed, and return it.

    The kernel queues waiters fairly; a polling loop would let some starve.

    Args:
        meanwhile: Steps of work, done one by one as long as the lock is not free.

    Raises:
        BackendUnavailable: The lock was not free within the timeout.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _wait_for(descriptor, timeout_seconds, meanwhile)
    except BaseException:
        os.close(descriptor)
        raise
    return FileLease(descriptor)


def try_lock_file(path: Path) -> FileLease | None:
    """Return the lock on a file, which is created if necessary; ``None`` if a thread or process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return FileLease(descriptor)


def _wait_for(descriptor: int, timeout_seconds: float, meanwhile: Iterable[object]) -> FileLease:
    deadline = monotonic() + timeout_seconds
    state = threading.Lock()
    decided = threading.Event()
    outcome = {"taken": False, "abandoned": False}

    # ``flock`` has no timeout, so a thread waits for the lock.
    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with state:
            outcome["taken"] = True
            if outcome["abandoned"]:
                os.close(descriptor)
        decided.set()

    threading.Thread(target=wait, name="index-lock", daemon=True).start()
    try:
        for _ in meanwhile:
            if decided.is_set() or monotonic() > deadline:
                break
        decided.wait(max(0.0, deadline - monotonic()))
    except BaseException:
        with state:
            outcome["abandoned"] = True
            if outcome["taken"]:
                os.close(descriptor)
        raise
    with state:
        if not outcome["taken"]:
            outcome["abandoned"] = True
            raise BackendUnavailable("Another process is writing to the index.", retry_after=2)
    return FileLease(descriptor)
