"""The SQL database: one engine per process, read and write transactions, and statements about many rows."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from sqlalchemy import CursorResult, Select, TextClause, create_engine, event, func, text
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

if TYPE_CHECKING:
    from app.storage.watched_connection import WatchedServer

SQLITE_BYTES = 50_331_648
"""Maximum size of SQLite's page caches in a process; each connection may use 16 MB of it."""
_HASTE = 10
"""Divisor of the waiting time: after a write has timed out, writers wait a tenth of the time until a write succeeds."""
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.000_5, 0.004

ROW_LOCK: dict[str, Any] = {"key_share": True}
"""Lock mode (``with_for_update``) for rows about to be changed. It still allows inserting rows that refer to them.

PostgreSQL checks a foreign key again when a row is updated twice in one transaction. With a plain FOR UPDATE, a
transaction that has locked a site and changes it twice would wait for a transaction that has locked the account and
waits for the site: a deadlock.
"""


class StorageUnavailable(Exception):
    """A file next to the database cannot be created: the disk is full or read-only."""


UNAVAILABLE_ERRORS: tuple[type[Exception], ...] = (
    OperationalError,
    InterfaceError,
    PoolTimeoutError,
    StorageUnavailable,
)
"""Errors of the database and its files that mean it is unreachable, locked for too long, or out of space."""


_OTHER_TABLES = ("42P01", "42703")
"""PostgreSQL's error codes for undefined tables and columns: the tables belong to another version of the program."""


T = TypeVar("T")

_POOL_SIZE = 16
"""Connections kept per process. Up to as many more are opened while these are in use."""


def is_unavailable(error: BaseException) -> bool:
    """Whether ``error`` means that the database cannot work now, rather than that a statement was wrong."""
    if isinstance(error, UNAVAILABLE_ERRORS):
        return True
    return isinstance(error, DBAPIError) and (
        error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _OTHER_TABLES
    )


def is_of_other_tables(error: DBAPIError) -> bool:
    """Whether a statement failed because a table or column is missing: the tables belong to another version."""
    if isinstance(error.orig, sqlite3.Error):
        # SQLite has no code of its own for missing tables. A full disk or a lock has another one.
        return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    return getattr(error.orig, "sqlstate", None) in _OTHER_TABLES


class Database:
    """The database. Connections are opened at first use; a child must :meth:`dispose` an object created before
    ``fork``.

    Args:
        url: SQLAlchemy URL of a SQLite file or a PostgreSQL database.
        busy_timeout_seconds: Maximum seconds that a statement waits for a lock of another process.
    """

    def __init__(self, url: str, *, busy_timeout_seconds: float = 5.0):
        self.url: URL = normalized_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._busy_timeout_seconds = busy_timeout_seconds
        self._turns = _WriterTurns(busy_timeout_seconds)
        self.engine = self._create_engine()
        # Rows stay readable after the commit: views use them when their transaction is over.
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)
        self.writing_sessions = sessionmaker(
            self.engine.execution_options(writes=True), expire_on_commit=False, autoflush=True
        )

    def _create_engine(self) -> Engine:
        if self.is_sqlite:
            engine = create_engine(
                self.url,
                connect_args={"timeout": self._busy_timeout_seconds, "check_same_thread": False},
                hide_parameters=True,  # Errors are logged, and parameters contain customers' data.
                pool_size=_POOL_SIZE,
                max_overflow=_POOL_SIZE,
            )
            event.listen(engine, "do_connect", self._make_private)
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", self._begin_sqlite)
            return engine
        milliseconds = int(self._busy_timeout_seconds * 1000)
        engine = create_engine(
            self.url,
            connect_args={
                "connect_timeout": max(2, int(self._busy_timeout_seconds)),
                # If the server's machine or network fails, nothing arrives. Without these, requests would wait for
                # hours.
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 20_000,
                "options": f"-c lock_timeout={milliseconds} -c timezone=UTC",
            },
            hide_parameters=True,
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_SIZE,
            pool_timeout=self._busy_timeout_seconds,
            # A restarted server leaves dead connections in the pool.
            pool_pre_ping=True,
        )
        event.listen(engine, "do_connect", _WatchedConnections().connect)
        return engine

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Yield a session for reading. Changes are rolled back."""
        with self._sessions() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Yield a session that is committed at the end, or rolled back if the block raises.

        On SQLite, the session takes the write lock immediately, so that rows it reads cannot change before the commit.
        """
        if not self.is_sqlite:
            with self.writing_sessions() as session, session.begin():
                yield session
            return
        # Take the turn before the connection, so that waiting threads don't occupy connections.
        with self._turns.turn(), self.writing_sessions() as session, session.begin():
            yield session

    def _make_private(self, *_: Any) -> None:
        """Create a new database file that only its owner can read, since it contains password hashes.

        SQLite's own files next to it inherit its mode. An existing file is never opened here, because closing it would
        release all of SQLite's locks on it in this process.
        """
        path = Path(str(self.url.database))
        if path.exists():
            return
        with contextlib.suppress(OSError):  # SQLite reports the problem, or another process was first.
            # Created under another name and linked, so that the file never exists with other permissions.
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            try:
                os.link(temporary, path)
            finally:
                temporary.unlink()

    def _begin_sqlite(self, connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            self._turns.begin(connection)
        else:
            # So that all reads of a session see the same state. Without a transaction, each would see the latest.
            connection.exec_driver_sql("BEGIN")

    def dispose(self, *, close: bool = True) -> None:
        """Drop all pooled connections. Pass ``close=False`` in a forked child, whose parent still uses them."""
        self.engine.dispose(close=close)
        if not close:
            self._turns = _WriterTurns(self._busy_timeout_seconds)


class _WriterTurns:
    """A queue of the threads that write to a SQLite file, so that no thread starves.

    In SQLite, every waiting connection retries after increasing pauses of up to a tenth of a second, and the first
    retry after a release wins the lock. With many writers, a connection can lose for seconds. Here, the threads of a
    process wait on a lock, which wakes the next thread immediately, and only that thread polls the file, every few
    milliseconds.
    """

    def __init__(self, timeout_seconds: float):
        self._timeout_seconds = timeout_seconds
        self._wait_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._reserved = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Become the only writing thread of this process.

        Raises:
            PoolTimeoutError: Other threads were writing for too long.
        """
        deadline = time.monotonic() + self._wait_seconds
        if not self._lock.acquire(timeout=self._wait_seconds):
            raise PoolTimeoutError("Other threads kept the database locked for too long.")
        # Another write may have timed out meanwhile. A thread that waits for the file makes all others wait, too.
        self._reserved.deadline = min(deadline, time.monotonic() + self._wait_seconds)
        try:
            yield
        finally:
            self._reserved.deadline = None
            self._lock.release()

    def begin(self, connection: Connection) -> None:
        """Begin a transaction that may write.

        Raises:
            OperationalError: Another process was writing for too long.
        """
        file: Any = connection.connection.dbapi_connection
        deadline = getattr(self._reserved, "deadline", None) or time.monotonic() + self._wait_seconds
        pause = _SHORTEST_PAUSE_SECONDS
        # SQLite's busy handler pauses for up to 100 ms, so poll here instead.
        file.execute("PRAGMA busy_timeout=0")
        try:
            while time.monotonic() < deadline:
                try:
                    file.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    # Other errors are reported by the last attempt below.
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                        break
                    time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads processes, guards no secret
                    pause = min(_LONGEST_PAUSE_SECONDS, pause * 1.5)
                else:
                    self._wait_seconds = self._timeout_seconds
                    return
            # The last attempt goes through SQLAlchemy, so that a failure raises SQLAlchemy's OperationalError.
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except OperationalError:
                self._wait_seconds = self._timeout_seconds / _HASTE
                raise
        finally:
            # The connection's other statements wait for locks as usual.
            file.execute(f"PRAGMA busy_timeout={int(self._timeout_seconds * 1000)}")


class _WatchedConnections:
    """Opens the connections of an engine on PostgreSQL."""

    def __init__(self) -> None:
        self._server: WatchedServer | None = None

    def connect(self, _dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> Any:
        if self._server is None:
            from app.storage.watched_connection import WatchedServer  # It imports an optional package.

            self._server = WatchedServer(parameters)
        return self._server.connect()


def normalized_url(url: str) -> URL:
    """Return ``url`` with the driver that this service uses.

    Raises:
        ValueError: The URL is for neither SQLite nor PostgreSQL.
    """
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ValueError("DATABASE_URL: SQLite needs a file, because several connections share the database.")
            return parsed
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise ValueError(f"DATABASE_URL: {other} is not supported; use sqlite or postgresql.")


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin event below starts transactions.
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # A committed document must survive a power failure, unlike a counter.
    cursor.execute("PRAGMA synchronous=FULL")
    # SQLite checks foreign keys only if each connection asks for it.
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA cache_size=-16384")
    cursor.execute(f"PRAGMA soft_heap_limit={SQLITE_BYTES}")
    cursor.close()


def read_page(session: Session, query: Select[T], *, limit: int, offset: int) -> tuple[Sequence[T], int]:
    """Return one page of the rows that an ordered query selects, and the total number of rows."""
    total = session.scalar(query.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)) or 0
    return session.scalars(query.limit(limit).offset(offset)).all(), total


def execute_rows(
    session: Session, statement: str, columns: str, rows: Iterable[Sequence[Any]], **parameters: Any
) -> CursorResult[*tuple[Any, ...]]:
    """Run ``statement``, replacing ``{rows}`` in it with a table of ``rows``.

    The rows are one JSON parameter, so the statement's text does not depend on their number; unlike ``executemany``,
    the statement can join them and return rows. Works on SQLite and PostgreSQL.

    Args:
        columns: The table's columns, ``name:type name:type``; a type is ``int`` or ``text``. The table also has a
            column ``row_number`` with the position of each row.
        parameters: Values of the statement's other parameters.
    """
    clause = _compiled(statement, columns, session.get_bind().dialect.name)
    result = session.execute(clause, {"rows": orjson.dumps(list(rows)).decode(), **parameters})
    assert isinstance(result, CursorResult)
    return result


def upsert(table: str, key: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the statement that adds numbers to rows of a table, creating missing rows."""
    columns = ", ".join((*key, *numbers))
    return f"""
        INSERT INTO {table} ({columns}) SELECT {columns} FROM {{rows}} AS changed WHERE true
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET {", ".join(f"{n} = {table}.{n} + excluded.{n}" for n in numbers)}
    """  # noqa: S608 - made of constants


def integers(names: Iterable[str]) -> str:
    """Return the column specifications of integer columns, for :func:`execute_rows`."""
    return " ".join(f"{name}:int" for name in names)


@cache
def _compiled(statement: str, columns: str, dialect: str) -> TextClause:
    fields = [column.split(":") for column in columns.split()]
    if dialect == "sqlite":
        picked = [f"json_extract(value, '$[{i}]') AS {name}" for i, (name, _) in enumerate(fields)]
        table = f"(SELECT key AS row_number, {', '.join(picked)} FROM json_each(:rows))"  # noqa: S608
    else:
        types = {"int": "bigint", "text": "text"}
        picked = [f"CAST(value ->> {i} AS {types[kind]}) AS {name}" for i, (name, kind) in enumerate(fields)]
        source = "jsonb_array_elements(CAST(:rows AS jsonb)) WITH ORDINALITY AS elements (value, row_number)"
        table = f"(SELECT row_number, {', '.join(picked)} FROM {source})"  # noqa: S608
    return text(statement.replace("{rows}", table))
