"""What stands in an installation's database, read and changed past the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, text

from app.storage.database import normalized_url
from tests.server import Server


def rows(server: Server, statement: str) -> Sequence[Any]:
    """What a query gives."""
    with _transaction(server) as connection:
        return connection.execute(text(statement)).all()


def change(server: Server, statement: str) -> None:
    """Run a statement that gives nothing."""
    with _transaction(server) as connection:
        connection.execute(text(statement))


@contextmanager
def _transaction(server: Server) -> Iterator[Connection]:
    url = server.environment.get("DATABASE_URL") or f"sqlite:///{server.folder / 'service.db'}"
    engine = create_engine(normalized_url(url))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def counted_queries(server: Server) -> Counter[str]:
    """How often each query stands in the events."""
    return Counter(row.query for row in rows(server, "SELECT query FROM search_events"))
