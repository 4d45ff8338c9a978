"""``serve`` and ``demo`` report invalid settings and used ports before they do anything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from app.commands.serve import GUNICORN
from app.config import ConfigurationError
from app.console import main
from app.server import read_server_environment
from app.storage.database import Database
from app.storage.migrate import TablesState, tables_state
from tests.server import free_port

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"


class Replaced(BaseException):
    """The process was replaced by another program."""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the programs that would have replaced the process."""
    became: list[list[str]] = []

    def replace(path: str, arguments: list[str]) -> None:
        became.append(arguments)
        raise Replaced

    monkeypatch.setattr(os, "execv", replace)
    return became


def run(folder: Path, *arguments: str, **settings: object) -> Result:
    given = {"DATA_DIR": str(folder), **{name: str(value) for name, value in settings.items()}}
    return CliRunner().invoke(main, list(arguments), env=given)


def state_of(folder: Path) -> TablesState:
    database = Database(f"sqlite:///{folder / 'service.db'}", busy_timeout_seconds=5.0)
    try:
        return tables_state(database)
    finally:
        database.dispose()


@pytest.mark.slow
def test_serve_creates_tables_and_runs_gunicorn(tmp_path: Path, programs: list[list[str]]) -> None:
    with pytest.raises(Replaced):
        run(tmp_path, "serve", PORT=free_port())

    assert programs == [[sys.executable, *GUNICORN]]
    assert state_of(tmp_path) is TablesState.CURRENT


def test_serve_with_no_upgrade_creates_no_tables(tmp_path: Path, programs: list[list[str]]) -> None:
    with pytest.raises(Replaced):
        run(tmp_path, "serve", "--no-upgrade", PORT=free_port())

    assert len(programs) == 1
    assert not (tmp_path / "service.db").exists()


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_port_in_use_is_reported_before_anything_is_created(tmp_path: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(tmp_path, command, PORT=port)

    assert result.exit_code == 1
    assert result.output == (
        f"Error: The service cannot listen on 127.0.0.1:{port}: Address already in use. "
        "Set HOST or PORT to another address, such as PORT=8001.\n"
    )
    assert not (tmp_path / "service.db").exists()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "abc", "PORT must be a number from 1 to 65535, not 'abc'."),
        ("PORT", "70000", "PORT must be a number from 1 to 65535, not '70000'."),
        ("WEB_CONCURRENCY", "0", "WEB_CONCURRENCY must be a number from 1 to 1000, not '0'."),
        ("WEB_THREADS", "-1", "WEB_THREADS must be a number from 1 to 1000, not '-1'."),
    ],
)
def test_invalid_server_setting_is_reported(tmp_path: Path, name: str, value: str, told: str) -> None:
    result = run(tmp_path, "serve", **{name: value})

    assert (result.exit_code, result.output) == (os.EX_CONFIG, f"Error: The service cannot start: {told}\n")
    with pytest.raises(ConfigurationError):
        read_server_environment({name: value})


@pytest.mark.parametrize("arguments", ["serve", "demo", "database upgrade"])
def test_tables_of_a_newer_version_are_reported_in_one_sentence(
    tmp_path: Path, programs: list[list[str]], arguments: str
) -> None:
    database = Database(f"sqlite:///{tmp_path / 'service.db'}")
    with database.write() as session:
        session.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        session.execute(text("INSERT INTO alembic_version VALUES ('9999')"))
    database.dispose()

    result = run(tmp_path, *arguments.split(), PORT=free_port())

    assert result.exit_code == os.EX_CONFIG
    lines = [line for line in result.output.splitlines() if line != "Setting up the database …"]
    assert lines == ["Error: A newer version of the program created the database's tables. Run that version."]
    assert not programs


def test_full_disk_is_not_reported_as_missing_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def upgrade(database: Database) -> None:
        with database.engine.execution_options(writes=True).begin() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1")
            connection.exec_driver_sql("CREATE TABLE accounts (id)")

    monkeypatch.setattr("app.commands.serve.upgrade", upgrade)

    result = run(tmp_path, "database", "upgrade")

    # systemd restarts the service, since an operator may free disk space.
    assert (result.exit_code, result.output) == (1, "Error: The database cannot be used: database or disk is full\n")


def test_unreachable_database_is_reported_in_one_line(tmp_path: Path, programs: list[list[str]]) -> None:
    url = "postgresql://127.0.0.1:1/none"
    result = run(tmp_path, "serve", PORT=free_port(), SECRET_KEY="x" * 40, DATABASE_URL=url)

    assert result.exit_code == 1
    assert result.output.startswith("Error: The database cannot be used: connection failed")
    assert result.output.count("\n") == 1


def test_unusable_data_directory_is_tried_again(tmp_path: Path, programs: list[list[str]]) -> None:
    (tmp_path / "file").touch()
    result = run(tmp_path / "file", "serve", PORT=free_port())

    assert result.exit_code == 1
    assert result.output.endswith("must be a folder that the service can write to: File exists.\n")


def test_systemd_does_not_restart_after_refusals() -> None:
    for unit in ("site-search.service", "site-search-worker.service"):
        assert f"\nRestartPreventExitStatus={ConfigurationError.exit_code}\n" in (UNITS / unit).read_text()


def test_gunicorn_without_serve_reports_an_invalid_setting(tmp_path: Path) -> None:
    environment = {**os.environ, "DATA_DIR": str(tmp_path), "LOG_LEVEL": "LOUD"}
    done = subprocess.run([sys.executable, "-c", "import wsgi"], env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    assert done.stderr == "The service cannot start: LOG_LEVEL must be DEBUG, INFO, WARNING, or ERROR.\n"


@pytest.mark.parametrize(
    ("host", "bind", "base_url"),
    [
        ("", "127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("search.example.com", "search.example.com:8000", "http://search.example.com:8000"),
        ("::1", "[::1]:8000", "http://[::1]:8000"),
        ("::", "[::]:8000", "http://127.0.0.1:8000"),
    ],
)
def test_host_setting_determines_bind_address_and_base_url(host: str, bind: str, base_url: str) -> None:
    environment = read_server_environment({"HOST": host})

    assert (environment.bind, environment.base_url) == (bind, base_url)


def test_serve_accepts_a_socket_from_systemd(tmp_path: Path, programs: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as kept, pytest.raises(Replaced):
        run(tmp_path, "serve", PORT=kept.getsockname()[1], LISTEN_FDS=1)

    assert len(programs) == 1
