"""A wheel of the project, built from a copy because the build writes into the source tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.server import PROJECT

SOURCES = ("app", "backends", "docs", "schemas", "README.md", "pyproject.toml", "setup.py", "wsgi.py")


def build_wheel(folder: Path) -> Path:
    """Build the wheel in a folder with the installed setuptools, and return its path."""
    copy = folder / "project"
    copy.mkdir()
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, copy)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-index", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", str(folder)],
        cwd=copy, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel
