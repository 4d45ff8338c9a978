"""A database and counters of its own for every application under test, on the servers TEST_… variables name.

Applications take numbered places: database ``tests_<pid>_<n>`` at the server of TEST_DATABASE_URL, Redis database ``n``
at the one of TEST_LIMITS_URL. A place that was given back is emptied for the next one: quicker than making it.
A Redis and a search engine serve one process of tests: for ``pytest -n 2``, TEST_LIMITS_URL and TEST_SEARCH_URL name
two each, with a space between them.
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
    """The database of the application whose data directory this is; empty if no server is named."""
    return _url_of(f"tests_{os.getpid()}_{_place(folder)}") if _server() else ""


def search_url() -> str:
    """The search engine of this process; empty if none is named."""
    return _own_url("TEST_SEARCH_URL")


def limits_url(folder: Path) -> str:
    """Its counter store; empty if none is named."""
    url = _own_url("TEST_LIMITS_URL")
    return f"{url.rpartition('/')[0]}/{_place(folder)}" if url.startswith("redis") else url


def make_empty(folder: Path) -> None:
    """Empty both, the tables being there."""
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
    """The application is closed; another may have its place."""
    place = _taken.pop(folder, None)
    if place is not None:
        _free.append(place)


def stored_bytes(app: Flask) -> bytes:
    """All that the database of ``app`` holds, deleted rows included where it is a file."""
    part = app.extensions["runtime"]
    with part.database.read() as session:
        rows = [row for table in Base.metadata.sorted_tables for row in session.execute(select(table))]
    part.database.dispose()
    return b"".join([repr(rows).encode(), *(file.read_bytes() for file in part.settings.data_path.glob("service.db*"))])


@contextmanager
def database_away(app: Flask) -> Iterator[None]:
    """The database of ``app`` refuses every connection."""
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
    """The counter store of ``app`` refuses every step."""
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
    """A directory stands where the files called ``name`` were."""
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
    """The name of a database with all tables and no rows, made by the migrations once."""
    name = f"tests_{os.getpid()}_template"
    with _administration() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    atexit.register(_drop_all)
    database = Database(_url_of(name))
    upgrade(database)
    database.dispose()
    return name


def _empty(url: str) -> None:
    """Delete all rows and let ids begin again: for small tables much quicker than TRUNCATE."""
    engine = create_engine(normalized_url(url), poolclass=NullPool)
    deletions = "; ".join(f"DELETE FROM {table.name}" for table in reversed(Base.metadata.sorted_tables))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET lock_timeout = '10s'; {deletions}")
        connection.exec_driver_sql("SELECT setval(sequencename::regclass, start_value, false) FROM pg_sequences")


def _drop_all() -> None:
    with _administration() as connection:
        for name in ("template", *_made):
            connection.execute(text(f"DROP DATABASE IF EXISTS tests_{os.getpid()}_{name} WITH (FORCE)"))
