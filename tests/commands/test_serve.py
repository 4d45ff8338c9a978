"""``serve`` and ``demo`` report invalid settings and used ports before they do anything."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.commands.serve import GUNICORN
from app.config import ConfigurationError
from app.console import main
from app.server import read_server_environment
from app.storage.database import Database
from app.storage.migrate import TablesState, tables_state
from tests.server import free_port


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

    assert (result.exit_code, result.output) == (1, f"Error: The service cannot start: {told}\n")
    with pytest.raises(ConfigurationError):
        read_server_environment({name: value})


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
