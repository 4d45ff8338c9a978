"""Direct access to an installation's database, bypassing the service."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from app.storage.database import Database
from tests.server import Server


def rows(server: Server, statement: str) -> Sequence[Any]:
    """Return the rows of a query."""
    with _database(server) as database, database.read() as session:
        return session.execute(text(statement)).all()


def change(server: Server, *statements: str) -> None:
    """Run statements in one transaction."""
    with _database(server) as database, database.write() as session:
        for statement in statements:
            session.execute(text(statement))


@contextmanager
def _database(server: Server) -> Iterator[Database]:
    database = Database(server.environment.get("DATABASE_URL") or f"sqlite:///{server.folder / 'service.db'}")
    try:
        yield database
    finally:
        database.dispose()


def counted_queries(server: Server) -> Counter[str]:
    """Count the recorded events of each query."""
    return Counter(row.query for row in rows(server, "SELECT query FROM search_events"))


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Lock a SQLite file as another process with a long write does."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()
