"""``site-search`` works from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.console import main
from tests.patience import PATIENCE_SECONDS


@pytest.mark.slow
def test_site_search_lists_its_commands_in_any_folder(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("site-search")
    environment = {**os.environ, "DATA_DIR": str(tmp_path / "data")}

    done = subprocess.run(
        [script, "--help"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )

    listed = {line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()}
    assert {"account", "backup", "crawl", "database", "doctor", "documents", "restore", "search"} <= listed


def test_only_operator_commands_are_offered(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path)}

    result = CliRunner().invoke(main, ["--help"], env=settings)

    listed = {line.split()[0] for line in result.output.partition("Commands:")[2].splitlines() if line.strip()}
    assert {"account", "backup", "doctor", "serve"} <= listed
    assert not {"limiter", "routes", "run", "shell"} & listed
    assert CliRunner().invoke(main, ["routes", "--help"], env=settings).exit_code == 2, (
        "`flask --app wsgi` does not list the command"
    )


def test_invalid_setting_prints_a_one_line_error(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path), "LOG_LEVEL": "LOUD"}

    result = CliRunner().invoke(main, ["account", "list"], env=settings)

    assert result.exit_code == os.EX_CONFIG
    assert "Error: The service cannot start: LOG_LEVEL must be" in result.output


def test_missing_tables_print_a_one_line_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["account", "list"], env={"DATA_DIR": str(tmp_path)})

    assert result.exit_code == 1
    assert "Error: The database's tables are missing or outdated. Run `database upgrade`." in result.output


def test_unreachable_database_prints_a_one_line_error(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path), "SECRET_KEY": "x" * 40, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}

    result = CliRunner().invoke(main, ["account", "list"], env=settings)

    assert result.exit_code == 1
    assert "Error: The database cannot be used: connection" in result.output
