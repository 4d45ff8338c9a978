"""A separate database and counter store for every application under test, on the servers in TEST_… variables.

Applications take numbered places: database ``tests_<pid>_<n>`` on the server of TEST_DATABASE_URL, and Redis database
``n`` on the server of TEST_LIMITS_URL. A returned place is emptied for reuse, which is faster than creating a new one.
Each test process needs its own Redis and search engine: for ``pytest -n 2``, TEST_LIMITS_URL and TEST_SEARCH_URL
contain two URLs each, separated by a space.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import redis
from flask import Flask
from sqlalchemy import Connection, create_engine, select, text
from sqlalchemy.pool import NullPool

from app.models import Base
from app.storage.database import Database, normalized_url
from app.storage.migrate import upgrade

_taken: dict[Path, int] = {}
_free: list[int] = []
_made: list[int] = []


def database_url(folder: Path) -> str:
    """Return the database URL of the application with this data directory, or an empty string without a server."""
    return _url_of(f"tests_{os.getpid()}_{_place(folder)}") if _server() else ""


def search_url() -> str:
    """Return the search engine URL of this process, or an empty string without an engine."""
    return _own_url("TEST_SEARCH_URL")


def limits_url(folder: Path) -> str:
    """Return the counter store URL of the application, or an empty string without a store."""
    url = _own_url("TEST_LIMITS_URL")
    return f"{url.rpartition('/')[0]}/{_place(folder)}" if url.startswith("redis") else url


def make_empty(folder: Path) -> None:
    """Empty the database, creating it if necessary, and the counter store."""
    place = _place(folder)
    if _server():
        if place in _made:
            _empty(_url_of(f"tests_{os.getpid()}_{place}"))
        else:
            with _administration() as connection:
                connection.execute(text(f"CREATE DATABASE tests_{os.getpid()}_{place} TEMPLATE {_template()}"))
            _made.append(place)
    if limits_url(folder).startswith("redis"):
        with redis.Redis.from_url(limits_url(folder)) as client:
            client.flushdb()


def refund(folder: Path) -> None:
    """Return the place of a closed application for reuse."""
    place = _taken.pop(folder, None)
    if place is not None:
        _free.append(place)


def stored_bytes(app: Flask) -> bytes:
    """Return the whole contents of the database of ``app``, including deleted rows if it is a file."""
    part = app.extensions["runtime"]
    with part.database.read() as session:
        rows = [row for table in Base.metadata.sorted_tables for row in session.execute(select(table))]
    part.database.dispose()
    return b"".join([repr(rows).encode(), *(file.read_bytes() for file in part.settings.data_path.glob("service.db*"))])


@contextmanager
def database_away(app: Flask) -> Iterator[None]:
    """Make the database of ``app`` reject every connection."""
    part = app.extensions["runtime"]
    part.database.dispose()
    if not _server():
        with _replaced(part.settings.data_path, "service.db"):
            yield
        return
    name = part.database.url.database
    with _administration() as connection:
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :n"), {"n": name}
        )
        try:
            yield
        finally:
            connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))


@contextmanager
def counters_away(app: Flask) -> Iterator[None]:
    """Make the counter store of ``app`` reject every step."""
    part = app.extensions["runtime"]
    part.counters.close()
    if part.counters.name == "sqlite":
        with _replaced(part.settings.data_path, "counters.db"):
            yield
        return
    with redis.Redis.from_url(part.settings.limits_url, single_connection_client=True) as client:
        client.config_set("requirepass", "nobody knows this")
        client.client_kill_filter(skipme=True, _type="normal")
        try:
            yield
        finally:
            client.config_set("requirepass", "")


@contextmanager
def _replaced(folder: Path, name: str) -> Iterator[None]:
    """Temporarily replace the files called ``name`` with a directory."""
    files = list(folder.glob(f"{name}*"))
    for file in files:
        file.rename(folder / f"away-{file.name}")
    (folder / name).mkdir()
    try:
        yield
    finally:
        (folder / name).rmdir()
        for file in files:
            (folder / f"away-{file.name}").rename(file)


def _own_url(variable: str) -> str:
    urls = os.environ.get(variable, "").split()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return urls[worker] if urls else ""


def _place(folder: Path) -> int:
    if folder not in _taken:
        _taken[folder] = _free.pop() if _free else len(_taken)
    return _taken[folder]


def _server() -> str:
    return os.environ.get("TEST_DATABASE_URL") or ""


def _url_of(name: str) -> str:
    return normalized_url(_server()).set(database=name).render_as_string(hide_password=False)


@contextmanager
def _administration() -> Iterator[Connection]:
    engine = create_engine(normalized_url(_server()), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        yield connection


@cache
def _template() -> str:
    """Return the name of a database with empty tables, created once by the migrations."""
    name = f"tests_{os.getpid()}_template"
    with _administration() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    atexit.register(_drop_all)
    database = Database(_url_of(name))
    upgrade(database)
    database.dispose()
    return name


def _empty(url: str) -> None:
    """Delete all rows and restart the ID sequences; for small tables this is much faster than TRUNCATE."""
    engine = create_engine(normalized_url(url), poolclass=NullPool)
    deletions = "; ".join(f"DELETE FROM {table.name}" for table in reversed(Base.metadata.sorted_tables))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET lock_timeout = '10s'; {deletions}")
        connection.exec_driver_sql("SELECT setval(sequencename::regclass, start_value, false) FROM pg_sequences")


def _drop_all() -> None:
    with _administration() as connection:
        for name in ("template", *_made):
            connection.execute(text(f"DROP DATABASE IF EXISTS tests_{os.getpid()}_{name} WITH (FORCE)"))
