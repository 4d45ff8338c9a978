"""x"""

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

from app.storage.database import Database, StorageUnavailable


class Locks(ABC):
    """Named locks. They end with the process that holds them, however it ends.

    Both methods raise what :func:`~app.storage.database.is_unavailable` recognizes if locks cannot be had now.
    """

    @abstractmethod
    def hold(self, name: str) -> AbstractContextManager[None]:
        """Wait for the lock ``name`` and hold it."""

    @abstractmethod
    def try_hold(self, name: str) -> AbstractContextManager[bool]:
        """Hold the lock ``name`` if it is free; gives whether it was."""


class FileLocks(Locks):
    """``flock`` on files in one folder. The files stay: deleting one would let two holders in."""

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
        """Hold the lock ``name`` if it is free, and longer if a process that is started meanwhile inherits it.

        Returns:
            The descriptor to inherit: the lock is held until all processes that have it have closed it or ended.
            ``None`` if the lock is not free.
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
    """Session-level advisory locks; the server ends them with the connection that holds them."""

    def __init__(self, database: Database):
        self._database = database

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        with self._database.engine.connect() as connection:
            with connection.begin():
                # A long write is no outage: whoever waits for it does so as long as with a file's lock.
                connection.execute(text("SET LOCAL lock_timeout = 0"))
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(name)})
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
    """PostgreSQL's locks are numbered by signed 64-bit integers."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def create_locks(database: Database, data_folder: Path) -> Locks:
    """The locks that reach as far as ``database`` does."""
    return FileLocks(data_folder / "locks") if database.is_sqlite else PostgresLocks(database)


log = logging.getLogger(__name__)


class MachineProcess:
    """Starts the process and ends it with the service. Threads may share it.

    Its input is a pipe that only the service holds: however the service ends, the pipe does too, and so the process.

    Args:
        folder: DATA_DIR. Of the service's processes on one machine, one starts one.
        lock: Name of the lock that the process holds until it has ended.
        command: Program and arguments; the descriptor of the lock, which it inherits, comes behind.
        stop_seconds: How long it may take to end before it is killed.
        failure_pause_seconds: How long it is not started again after it ended with an exit status above 0.
        cwd: Its working directory; that of the service if not given.
        env: Its environment; that of the service if not given.
    """

    def __init__(
        self,
        folder: Path,
        lock: str,
        command: Sequence[str],
        *,
        stop_seconds: float,
        failure_pause_seconds: float = 0.0,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ):
        self._locks = FileLocks(folder / "locks")
        self._lock_name = lock
        self._command = tuple(command)
        self._stop_seconds = stop_seconds
        self._failure_pause_seconds = failure_pause_seconds
        self._cwd = cwd
        self._env = env
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._paused_until = 0.0
        self._has_stopped = False

    def start(self) -> bool:
        """Start the process unless the machine has one.

        The process inherits the lock that says so, and so holds it until it has ended, however it ends.

        Returns:
            Whether the machine has one; not if it has just failed, or is stopped here.
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
                        pass_fds=(claim,),
                        cwd=self._cwd,
                        env=self._env,
                    )
        return True

    def stop(self) -> None:
        """End the process if it was started here, and start none any more."""
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
        """Whether a process started here is running; cleans up after one that is not."""
        process = self._process
        if process is None:
            return False
        status = process.poll()
        if status is None:
            return True
        if status > 0:
            self._paused_until = time.monotonic() + self._failure_pause_seconds
            log.error("the process of %s ended with exit status %d", self._lock_name, status)
        if process.stdin is not None:
            process.stdin.close()
        self._process = None
        return False
