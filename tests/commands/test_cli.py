"""The list of operator commands, and the modules that listing and running them loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from flask import Flask

from app.commands.cli import ACCOUNTS, COMMANDS, LazyGroup
from tests.conftest import migrated_file


def first_sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."


def listed_commands() -> Iterator[tuple[str, LazyGroup | None, str]]:
    for name, source in COMMANDS.items():
        yield name, None, source.help
    for name, source in ACCOUNTS.sources.items():
        yield name, ACCOUNTS, source.help


@pytest.mark.parametrize(("name", "group", "help_text"), list(listed_commands()))
def test_command_list_shows_the_first_sentence_of_each_command(
    name: str, group: LazyGroup | None, help_text: str
) -> None:
    command = (group.sources if group else COMMANDS)[name].load()

    assert command.name == name
    assert help_text == first_sentence(command)


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
    assert not list(tmp_path.iterdir()), "nothing is written either"


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
