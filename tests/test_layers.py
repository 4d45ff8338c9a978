"""Modules import only the layers that pyproject.toml allows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

PROJECT = Path(__file__).resolve().parent.parent
MOST_MODULES = 15
MOST_LINES = {"module": 400, "class": 200}
BY_NOUN = {"app/api", "app/operations", "app/pages", "backends", "schemas", "app/migrations/versions"}
"""Packages with one module for each noun or each migration."""


def test_imports_follow_the_layer_contracts() -> None:
    linter = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [str(linter), "--no-cache"], cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_packages_have_at_most_fifteen_modules() -> None:
    floors = {
        folder for top in ("app", "backends", "schemas") for folder in (PROJECT / top).rglob("") if folder.is_dir()
    }
    counts = {
        str(folder.relative_to(PROJECT)): sum(file.name != "__init__.py" for file in folder.glob("*.py"))
        for folder in floors
    }

    assert {name for name, count in counts.items() if count > MOST_MODULES} <= BY_NOUN


def test_modules_and_classes_are_short() -> None:
    sizes: dict[str, tuple[str, int]] = {}
    for top in ("app", "backends", "schemas"):
        for path in (PROJECT / top).rglob("*.py"):
            text, name = path.read_text(encoding="utf-8"), str(path.relative_to(PROJECT))
            sizes[name] = "module", text.count("\n")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef) and node.end_lineno is not None:
                    sizes[f"{name}:{node.name}"] = "class", node.end_lineno - node.lineno + 1

    assert {name: size for name, (kind, size) in sizes.items() if size > MOST_LINES[kind]} == {}


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
