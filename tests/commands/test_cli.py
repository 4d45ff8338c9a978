"""The list of operator commands, and the modules that listing and running them loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from flask import Flask

from app.commands.cli import ACCOUNTS, COMMANDS, SITES, LazyGroup, OperatorCommand
from tests.conftest import migrated_file

LAZY_GROUPS = {"": LazyGroup(lazy_subcommands=COMMANDS), "account": ACCOUNTS, "site": SITES}


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group, lazy in LAZY_GROUPS.items() for name in lazy.lazy_subcommands]
)
def test_every_listed_command_exists(group: str, name: str) -> None:
    lazy = LAZY_GROUPS[group]
    command = lazy.get_command(click.Context(lazy), name)

    assert command is not None
    assert command.name == name
    assert isinstance(command, OperatorCommand | click.Group), "its changes are the operator's"
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        assert isinstance(part, OperatorCommand)


def run_site_search(folder: Path, *arguments: str) -> tuple[str, set[str]]:
    """Run a command in a separate process. Returns its output and the modules it loaded."""
    code = (
        "import sys; from app.console import main\n"
        f"try: main({list(arguments)!r}, prog_name='site-search')\n"
        "except SystemExit: pass\n"
        "print('modules:', *sys.modules)"
    )
    environment = {**os.environ, "DATA_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    printed, _, modules = done.stdout.rpartition("modules:")
    return printed, set(modules.split())


def test_listing_commands_loads_no_service_modules(tmp_path: Path) -> None:
    printed, modules = run_site_search(tmp_path, "--help")

    assert "serve" in printed
    assert not modules & {"flask", "sqlalchemy", "app.application", "app.runtime", "app.models"}
    assert not list(tmp_path.iterdir()), "nothing may be written, either"


def test_listing_accounts_loads_no_routes_or_engine(tmp_path: Path) -> None:
    shutil.copyfile(migrated_file(), tmp_path / "service.db")

    printed, modules = run_site_search(tmp_path, "account", "list")

    assert printed == "No accounts.\n"
    assert not modules & {"app.application", "app.runtime", "flask_smorest", "tantivy", "alembic"}


def test_command_on_a_new_database_suggests_database_upgrade(tmp_path: Path) -> None:
    environment = {**os.environ, "DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "from app.console import main; main()", "account", "list"]

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)

    assert done.returncode == 1
    assert "Run `database upgrade`" in done.stderr


def test_flask_lists_the_same_commands(app: Flask) -> None:
    printed = app.test_cli_runner().invoke(args=["--help"]).output

    assert all(f"  {name} " in printed for name in COMMANDS)
