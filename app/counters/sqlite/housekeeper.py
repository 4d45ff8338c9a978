"""Maintenance of a shared SQLite file in a separate thread, so that steps don't wait for it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Execute = Callable[..., sqlite3.Cursor]
"""Runs one statement of a step: SQL text and its values."""

_ROUND_SECONDS = 1.0
_PAUSE_SECONDS = 0.002
_BUSY_SECONDS = 0.25
_FRAMES_BEFORE_WAITING = 16_384


class KeptFile(Protocol):
    """A file as a housekeeper sees it.

    Attributes:
        path: Path of the file.
        changes: Number of writing steps of this process. The housekeeper is idle while it does not change.
        housekeep: A small piece of work, run in a transaction. Returns whether more work remains.
    """

    path: Path
    changes: int
    housekeep: Callable[[Execute], bool]


class Housekeeper:
    """A maintenance thread with its own connection. It references its file weakly and ends when the file is deleted."""

    def __init__(self, file: KeptFile) -> None:
        self._file = weakref.ref(file)
        self._path = file.path
        self._changes = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="counters-housekeeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait until it has ended."""
        self.give_notice()
        # This thread may drop the last reference to the file, whose deletion then calls this method.
        if self._thread is not threading.current_thread():
            self._thread.join()

    def give_notice(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stopped.set()

    def _work(self) -> None:
        with contextlib.ExitStack() as opened:
            connection: sqlite3.Connection | None = None
            while not self._stopped.wait(_ROUND_SECONDS):
                file = self._file()
                if file is None:
                    return
                changes = file.changes
                if changes != self._changes:
                    try:
                        if connection is None:
                            connection = opened.enter_context(contextlib.closing(connect(self._path, _BUSY_SECONDS)))
                        self._keep(connection, file.housekeep)
                        self._changes = changes
                    except sqlite3.Error:
                        # Steps encounter the same error and report it; the next round retries.
                        if connection is not None:
                            connection.rollback()
                # While this thread waits, only weak references may exist, or an abandoned file would never be deleted.
                del file

    def _keep(self, connection: sqlite3.Connection, housekeep: Callable[[Execute], bool]) -> None:
        more = True
        while more and not self._stopped.is_set():
            connection.execute("BEGIN IMMEDIATE")
            more = housekeep(connection.execute)
            connection.execute("COMMIT")
            # SQLite has no queue of writers: without a pause, this thread would win the lock again and again.
            time.sleep(_PAUSE_SECONDS)
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # A passive checkpoint does not wait for steps, so the log grows if they keep coming.
        if frames > _FRAMES_BEFORE_WAITING:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def connect(path: Path | str, timeout_seconds: float = 0) -> sqlite3.Connection:
    """Open a bare connection that leaves transactions to its caller, and does not wait for locks by default."""
    # sqlite3 cannot know that the threads take turns under a lock of their own.
    return sqlite3.connect(path, timeout=timeout_seconds, isolation_level=None, check_same_thread=False)
