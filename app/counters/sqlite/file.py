"""A SQLite file shared by the threads of many processes: short steps one after the other, in bounded time."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from app.counters.sqlite.housekeeper import Execute, Housekeeper, connect
from app.counters.values import CountersDamaged, CountersUnavailable

T = TypeVar("T")

_PAGE_BYTES = 1024  # A step writes every page that it touches completely, so small pages make steps cheap.
_HASTE = 100
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.000_1, 0.000_5
_SHARE_OF_WAIT = 0.01  # Maximum pause as a share of the time waited so far, so that a long wait takes no CPU.
_OPENING_PAUSE = 0.002

# SQLite reports PROTOCOL if it lost too many races for the locks of the write-ahead log.
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_MISTAKES = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError, sqlite3.DataError)
# SQLite reports ERROR for missing tables and columns, so another program wrote the file.
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})


class SharedFile:
    """A SQLite file in WAL mode. The threads of a process run their steps in turn on one connection.

    SQLite lets only one connection write at a time anyway. Threads wait on a lock, which wakes them immediately; only
    processes wait by polling. The connection is opened at first use and closed before a fork, because SQLite's locks
    do not survive a fork.

    A committed step survives the death of the process at any moment (``synchronous=NORMAL``: a power failure may lose
    the last moments, never the file). While there is work, a thread with its own connection moves the write-ahead log
    to the file and calls ``housekeep`` once a second, so that no step waits for the disk.

    If the file was deleted or replaced by a copy, the next step opens the current one.

    Args:
        path: The file; its directory must exist. Only its owner may read it.
        schema: Idempotent statements that create the tables and indexes, one for each table or index.
        version: Number of the schema. A file with another number is rejected.
        busy_seconds: Seconds that a step may wait for other threads and processes. After a timeout, steps wait only a
            hundredth of this until a writing step succeeds, so that a process that keeps the file locked does not block
            every thread.
        housekeep: A small piece of work, run as a step. Returns whether more work remains. Must not reference the
            owner.
        begin: Runs within the first writing step after the file was opened. Must not reference the owner.
    """

    def __init__(
        self,
        path: Path,
        *,
        schema: tuple[str, ...],
        version: int,
        busy_seconds: float,
        housekeep: Callable[[Execute], bool],
        begin: Callable[[Execute], object],
    ) -> None:
        self.path = path
        self._name = str(path)
        self._schema = schema
        self._version = version
        self._busy_seconds = busy_seconds
        self._wait_seconds = busy_seconds
        self.housekeep = housekeep
        self._begin = begin
        self._begun = False
        self._opened: tuple[int, int] | None = None
        self.changes = 0
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._execute: Execute | None = None
        self._housekeeper: Housekeeper | None = None
        _files.add(self)

    def run(self, step: Callable[..., T], *args: Any, reading: bool = False) -> T:
        """Run ``step(execute, *args)`` in its own transaction and return its result.

        Args:
            reading: Whether the step changes nothing, so that it need not wait for writers.

        Raises:
            CountersUnavailable: The step could not be run; nothing was changed.
        """
        deadline = 0.0
        # Most steps need not wait. They do not read the clock, so their deadline stays 0.
        if not self._lock.acquire(blocking=False):
            deadline = time.monotonic() + self._wait_seconds
            if not self._lock.acquire(timeout=self._wait_seconds):
                raise CountersUnavailable(f"The counter file {self.path} is busy.")
            # Another step may have timed out meanwhile. A thread that waits for the file makes all others wait, too.
            deadline = min(deadline, time.monotonic() + self._wait_seconds)
        try:
            execute = self._execute
            # Checked before every step, because a restore may replace the file at any time.
            if execute is not None and _identity(self._name) != self._opened:
                self._leave()
                execute = None
            if execute is None:
                deadline = deadline or time.monotonic() + self._wait_seconds
                execute = self._open(deadline)
            try:
                execute("BEGIN" if reading else "BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                deadline = deadline or time.monotonic() + self._wait_seconds
                _begin_again(execute, error, deadline, reading)
            # In the same transaction, so that no step counts under the incarnation of an earlier opening.
            if not (reading or self._begun):
                self._begin(execute)
            result = step(execute, *args)
            execute("COMMIT")
            if not reading:
                # Only after the commit: a rollback would also undo the beginning.
                self._begun = True
                self.changes += 1
                self._wait_seconds = self._busy_seconds
            return result
        # Errors of this program, which must not be mistaken for an outage of the store.
        except _MISTAKES:
            self._roll_back()
            raise
        except sqlite3.Error as error:
            # After any other error, the connection may be unusable. The next step opens a new one.
            if _is_busy(error):
                self._roll_back()
            else:
                self._close()
            raise self._translated(error) from error
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection and stop the housekeeper. The next step opens the file again."""
        with self._lock:
            housekeeper, self._housekeeper = self._housekeeper, None
            self._close()
        if housekeeper is not None:
            housekeeper.stop()

    def _open(self, deadline: float) -> Execute:
        with contextlib.suppress(OSError):  # It exists already or cannot be created; SQLite reports which below.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = connect(self.path)
        try:
            while True:
                try:
                    _prepare(connection, self.path, self._schema, self._version)
                    break
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(_OPENING_PAUSE)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._opened, self._begun = _identity(self._name), False
        self._execute = connection.cursor().execute
        if self._housekeeper is None:
            self._housekeeper = Housekeeper(self)
        return self._execute

    def _translated(self, error: sqlite3.Error) -> CountersUnavailable:
        code = _primary_code(error)
        if code in _BUSY:
            # After one full wait, the following steps fail quickly until one succeeds. Otherwise, every thread of the
            # service would wait here one after the other.
            self._wait_seconds = self._busy_seconds / _HASTE
            return CountersUnavailable(f"The counter file {self.path} is locked by another process.")
        if code in _DAMAGED:
            return CountersDamaged(
                f"The counter file {self.path} is damaged or belongs to another program ({error}). Stop the service, "
                f"move the file and its -wal and -shm files elsewhere, and start the service again; counting then "
                "starts from zero."
            )
        return CountersUnavailable(f"The counter file {self.path} cannot be used: {error}.")

    def _roll_back(self) -> None:
        if self._connection is not None:
            self._connection.rollback()

    def _close(self) -> None:
        connection, self._connection, self._execute = self._connection, None, None
        if connection is not None:
            connection.close()

    def _leave(self) -> None:
        """Close a file that was deleted or replaced."""
        self._close()
        if self._housekeeper is not None:
            self._housekeeper.give_notice()
            self._housekeeper = None

    def _prepare_fork(self) -> None:
        # Held across the fork, so that the child does not inherit a half-done step. A SQLite connection must not cross
        # a fork: closing the child's copy would release the parent's locks on the file.
        self._lock.acquire()
        housekeeper, self._housekeeper = self._housekeeper, None
        self._close()
        if housekeeper is not None:
            housekeeper.stop()

    def _finish_fork(self) -> None:
        self._lock.release()

    def __del__(self) -> None:
        # Garbage collection may run anywhere, even while a thread starts. Waiting for the housekeeper there would
        # deadlock.
        if getattr(self, "_housekeeper", None) is not None:
            self._housekeeper.give_notice()  # type: ignore[union-attr]
        self._close()


class MemoryFile:
    """A SQLite database in the memory of one process, with the interface of :class:`SharedFile`.

    Args:
        schema: Statements that create its tables and indexes.
        housekeep: A small piece of work, run as a step after every thousand writing steps.
        begin: Runs once, before the first step.
    """

    def __init__(
        self, *, schema: tuple[str, ...], housekeep: Callable[[Execute], bool], begin: Callable[[Execute], object]
    ) -> None:
        self._connection = connect(":memory:")
        self._execute: Execute = self._connection.cursor().execute
        self._housekeep = housekeep
        self._changes = 0
        self._lock = threading.Lock()
        for statement in schema:
            self._execute(statement)
        begin(self._execute)

    def run(self, step: Callable[..., T], *args: Any, reading: bool = False) -> T:
        """Run ``step(execute, *args)`` in its own transaction and return its result."""
        with self._lock:
            self._execute("BEGIN")
            try:
                result = step(self._execute, *args)
                if not reading:
                    self._changes += 1
                    # In line, without a thread: there is no disk to wait for.
                    if self._changes % 1000 == 0:
                        self._housekeep(self._execute)
            except BaseException:
                self._connection.rollback()
                raise
            self._execute("COMMIT")
            return result

    def close(self) -> None:
        """Do nothing, since the counters exist until the object is deleted."""


def _prepare(connection: sqlite3.Connection, path: Path, schema: tuple[str, ...], version: int) -> None:
    """Create the tables of a new file, and add the tables that a later release has added."""
    execute = connection.execute
    # SQLite cannot change the page size of a file in WAL mode, so this comes first.
    execute(f"PRAGMA page_size={_PAGE_BYTES}")
    mode = execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise CountersUnavailable(
            f"The counter file {path} cannot use a write-ahead log; put it on a local file system."
        )
    # The log is not flushed at each commit. A crash of the process loses nothing; a power cut may lose the last steps,
    # for which copies of usage in SQL exist.
    execute("PRAGMA synchronous=NORMAL")
    # A fallback: normally the housekeeper moves the log long before it has this many pages.
    execute("PRAGMA wal_autocheckpoint=8000")
    if execute("PRAGMA user_version").fetchone()[0] == version and _is_complete(execute, schema):
        return
    execute("BEGIN IMMEDIATE")
    try:
        # Read again under the write lock, since another process may have prepared the file in between.
        stored_version = execute("PRAGMA user_version").fetchone()[0]
        if stored_version == version or (
            stored_version == 0 and execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        ):
            for statement in schema:
                execute(statement)
            execute(f"PRAGMA user_version={version}")
        else:
            raise CountersDamaged(
                f"The file {path} contains another program's data, not counters of version {version}."
            )
        execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _is_complete(execute: Execute, schema: tuple[str, ...]) -> bool:
    """Whether all tables and indexes exist: a later release may add some that an earlier one ignores."""
    # SQLite's automatic indexes of primary keys have no SQL, and are not in the schema's list.
    there = execute("SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL").fetchone()[0]
    return bool(there >= len(schema))


def _begin_again(execute: Execute, error: sqlite3.OperationalError, deadline: float, reading: bool) -> None:
    """Retry the beginning of the transaction until another process releases the file."""
    began = time.monotonic()
    pause = _SHORTEST_PAUSE
    while True:
        moment = time.monotonic()
        if not _is_busy(error) or moment > deadline:
            raise error
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads processes, guards no secret
        pause = min(max(_LONGEST_PAUSE, (moment - began) * _SHARE_OF_WAIT), pause * 1.5)
        try:
            execute("BEGIN" if reading else "BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as again:
            error = again


def _identity(name: str) -> tuple[int, int] | None:
    """Return device and inode, which distinguish a file from its replacement while the file is open."""
    try:
        status = os.stat(name)  # noqa: PTH116 - converting a path takes most of the time
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _primary_code(error: sqlite3.Error) -> int:
    # Extended error codes contain the primary code in their lowest byte.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _is_busy(error: sqlite3.Error) -> bool:
    return _primary_code(error) in _BUSY


# Weak, so that the registry does not keep files open that no store uses anymore.
_files: weakref.WeakSet[SharedFile] = weakref.WeakSet()
_forking: list[SharedFile] = []
_one_fork = threading.Lock()


def _before_fork() -> None:
    # Threads that fork at the same time share ``_forking``, so they take turns.
    _one_fork.acquire()
    for file in list(_files):
        file._prepare_fork()
        _forking.append(file)


def _after_fork() -> None:
    while _forking:
        _forking.pop()._finish_fork()
    _one_fork.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
