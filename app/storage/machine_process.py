"""Locks between processes, and processes that run once per machine."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import text

from app.clock import Pauses
from app.storage.database import Database, StorageUnavailable


class Locks(ABC):
    """Named locks, which are released when the process that holds them ends.

    If locks are unavailable, both methods raise an error that :func:`~app.storage.database.is_unavailable` recognizes.
    """

    @abstractmethod
    def hold(self, name: str) -> AbstractContextManager[None]:
        """Wait for the lock ``name`` and hold it."""

    @abstractmethod
    def try_hold(self, name: str) -> AbstractContextManager[bool]:
        """Hold the lock ``name`` if it is free. Yields whether it was free."""


class FileLocks(Locks):
    """``flock`` on files in one folder. The files are not deleted, because that would admit two holders."""

    def __init__(self, folder: Path):
        self._folder = folder

    def _open(self, name: str) -> int:
        path = self._folder / f"{name}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageUnavailable(f"the lock {path} cannot be opened: {error.strerror}") from error

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        descriptor = self._open(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def try_hold(self, name: str) -> Iterator[bool]:
        with self.try_inherit(name) as descriptor:
            yield descriptor is not None

    @contextmanager
    def try_inherit(self, name: str) -> Iterator[int | None]:
        """Hold the lock ``name`` if it is free. A process that is started in the block can inherit the lock.

        Yields:
            The descriptor to inherit, or ``None`` if the lock is not free. The lock is held until every process with
                this descriptor has closed it or ended.
        """
        descriptor = self._open(name)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield descriptor
        finally:
            os.close(descriptor)


class PostgresLocks(Locks):
    """Session-level advisory locks. The server releases them with the connection that holds them."""

    def __init__(self, database: Database):
        self._database = database

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        with self._database.engine.connect() as connection:
            with connection.begin():
                # A long write is not an outage, so there is no timeout, as with file locks.
                connection.execute(text("SET LOCAL lock_timeout = 0"))
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(name)})
            # The lock outlives transactions. An open one would keep PostgreSQL from cleaning up old rows for as long as
            # it is held.
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})

    @contextmanager
    def try_hold(self, name: str) -> Iterator[bool]:
        with self._database.engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            is_held = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)})
            try:
                yield bool(is_held)
            finally:
                if is_held:
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})


def _key(name: str) -> int:
    """Return the signed 64-bit number that identifies a lock in PostgreSQL."""
    # Not ``hash``, which differs between processes.
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def create_locks(database: Database, data_folder: Path) -> Locks:
    """Return locks that cover the same machines as ``database``: file locks for SQLite, else PostgreSQL's locks."""
    return FileLocks(data_folder / "locks") if database.is_sqlite else PostgresLocks(database)


log = logging.getLogger(__name__)


class MachineProcess:
    """A process that the service starts and that ends with the service. Thread-safe.

    Its standard input is a pipe whose other end only the service has. When the service exits or is killed, the pipe
    closes and the process ends.

    Args:
        folder: DATA_DIR. Only one of the service's processes on a machine starts the process.
        lock: Name of the lock that the process holds until it has ended.
        command: Program and arguments, to which the descriptor of the inherited lock is appended.
        stop_seconds: Seconds after which a process that was asked to end is killed.
        failure_pauses: Pauses before a restart after consecutive exits with a status above 0.
        cwd: Working directory; by default, the service's.
        env: Environment variables; by default, the service's.
    """

    def __init__(
        self,
        folder: Path,
        lock: str,
        command: Sequence[str],
        *,
        stop_seconds: float,
        failure_pauses: Pauses,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ):
        self._locks = FileLocks(folder / "locks")
        self._lock_name = lock
        self._command = tuple(command)
        self._stop_seconds = stop_seconds
        self._failure_pauses = failure_pauses
        self._cwd = cwd
        self._env = env
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._paused_until = 0.0
        self._has_stopped = False

    def start(self) -> bool:
        """Start the process unless it is already running on this machine.

        The process inherits the lock that marks it as running, and holds it until it has ended.

        Returns:
            Whether the process is running on this machine. It is not if it has just failed or was stopped here.
        """
        with self._guard:
            if self._runs():
                return True
            if self._has_stopped or time.monotonic() < self._paused_until:
                return False
            with self._locks.try_inherit(self._lock_name) as claim:
                if claim is not None:
                    self._process = subprocess.Popen(  # noqa: S603 - our own command.
                        (*self._command, str(claim)),
                        stdin=subprocess.PIPE,
                        # The lock belongs to the open file, so the child's descriptor keeps it after ours is closed.
                        pass_fds=(claim,),
                        cwd=self._cwd,
                        env=self._env,
                    )
        return True

    def stop(self) -> None:
        """Stop the process if it was started here, and prevent further starts."""
        with self._guard:
            self._has_stopped = True
            process, self._process = self._process, None
            if process is None or process.stdin is None:
                return
            process.stdin.close()
            try:
                process.wait(timeout=self._stop_seconds)
            except subprocess.TimeoutExpired:
                log.warning("killing the process of %s, which did not stop in time", self._lock_name)
                process.kill()
                process.wait()

    def _runs(self) -> bool:
        """Whether the process started here is running. Cleans up if it has ended."""
        process = self._process
        if process is None:
            return False
        status = process.poll()
        if status is None:
            return True
        # A negative status means that a signal ended the process, which is not a failure of its own.
        if status > 0:
            self._failures += 1
            pause = self._failure_pauses.after(self._failures)
            self._paused_until = time.monotonic() + pause
            log.error(
                "the process of %s ended with exit status %d; next start in %.0f s", self._lock_name, status, pause
            )
        elif status == 0:
            self._failures = 0
        if process.stdin is not None:
            process.stdin.close()
        self._process = None
        return False
