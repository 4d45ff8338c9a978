"""Modules import only the layers that pyproject.toml allows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

PROJECT = Path(__file__).resolve().parent.parent


def test_imports_follow_the_layer_contracts() -> None:
    linter = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [str(linter), "--no-cache"], cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_creating_the_application_opens_no_files_or_threads(tmp_path: Path) -> None:
    """A process must not open a database, an index, or a thread before it forks workers."""
    program = (
        "import threading, pathlib, sys; from app.application import create_app; from app.config import load_settings;"
        f"create_app(load_settings({{'DATA_DIR': {str(tmp_path)!r}}}));"
        f"print(sorted(p.name for p in pathlib.Path({str(tmp_path)!r}).iterdir()), threading.active_count())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )

    assert done.stdout.strip() == "['secret_key'] 1"


@pytest.mark.slow
def test_request_process_does_not_load_crawler_embedding_encryption_or_password_modules(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; from app.application import create_app; from app.config import load_settings;"
        f"create_app(load_settings({{'DATA_DIR': {str(tmp_path)!r}}}));"
        "print(sorted({'httpcore', 'lxml', 'feedparser', 'protego', 'pypdfium2', 'joserfc', 'numpy', 'zxcvbn_rs_py'}"
        " & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )

    assert done.stdout.strip() == "[]"
