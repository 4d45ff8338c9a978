"""Locks between all processes that share the database: files on one machine, PostgreSQL across machines."""

from __future__ import annotations

import fcntl
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
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
            held = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)})
            try:
                yield bool(held)
            finally:
                if held:
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})


def _key(name: str) -> int:
    """PostgreSQL's locks are numbered by signed 64-bit integers."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def create_locks(database: Database, data_folder: Path) -> Locks:
    """The locks that reach as far as ``database`` does."""
    return FileLocks(data_folder / "locks") if database.is_sqlite else PostgresLocks(database)
