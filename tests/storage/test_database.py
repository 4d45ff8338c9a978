"""The SQLite file is private and can be used safely by many connections and processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.storage.database import Database
from tests.noting_lock import NotingLock
from tests.patience import PATIENCE_SECONDS


def test_new_database_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'service.db'}")
    with database.write() as session:
        session.execute(text("CREATE TABLE t (x)"))
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
        assert {file.name for file in tmp_path.iterdir()} == {"service.db", "service.db-wal", "service.db-shm"}
    database.dispose()


def test_later_connections_do_not_release_locks_of_earlier_ones(tmp_path: Path) -> None:
    """Without these locks, another process would delete the write-ahead log when it disconnects."""
    path = tmp_path / "service.db"
    database = Database(f"sqlite:///{path}")
    with database.write() as session:
        session.execute(text("CREATE TABLE t (x)"))
    log = Path(f"{path}-wal").stat().st_ino
    with database.read() as first, database.read() as second:
        first.execute(text("SELECT 1 FROM t"))
        second.execute(text("SELECT 1 FROM t"))

    other = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('INSERT INTO t VALUES (1)'); c.commit()"
    subprocess.run([sys.executable, "-c", f"{other}; c.close()", str(path)], check=True)

    assert Path(f"{path}-wal").stat().st_ino == log
    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM t")) == 1
    database.dispose()


def test_logged_database_errors_contain_no_values(app: Flask) -> None:
    database = app.extensions["runtime"].database
    with pytest.raises(DBAPIError) as failed, database.write() as session:
        session.execute(text("INSERT INTO nowhere (password) VALUES (:password)"), {"password": "hush"})
    assert "nowhere" in str(failed.value)
    assert "hush" not in str(failed.value)


def test_waiting_write_uses_the_shorter_wait_after_another_write_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "service.db"
    database = Database(f"sqlite:///{path}", busy_timeout_seconds=10 * PATIENCE_SECONDS)
    with database.write() as session:
        session.execute(text("CREATE TABLE t (x)"))
    lock, rejected = NotingLock(), threading.Event()
    monkeypatch.setattr(database._turns, "_lock", lock)

    def write() -> None:
        with pytest.raises(DBAPIError), database.write() as session:
            session.execute(text("INSERT INTO t VALUES (1)"))
        rejected.set()

    waiting = threading.Thread(target=write)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with lock:
            waiting.start()
            assert lock.is_waited_for.wait(PATIENCE_SECONDS)
            monkeypatch.setattr(database._turns, "_wait_seconds", 0.01)  # As after an earlier write failed.
        assert rejected.wait(PATIENCE_SECONDS)
    waiting.join()
    database.dispose()
