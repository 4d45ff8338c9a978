"""Packages from the npm registry, installed into a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

INSTALL_SECONDS = 300


def fail_or_skip(reason: str) -> NoReturn:
    """Fail the test in CI, and skip it elsewhere, because a prerequisite is missing."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def install_packages(described: Path, folder: Path) -> None:
    """Install the packages of a ``package.json``. Without node, skip the test, or fail it if CI is set."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        fail_or_skip("node and npm are needed")
    shutil.copy(described, folder)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=folder, capture_output=True,
        text=True, timeout=INSTALL_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"npm install ended with {done.returncode}:\n{done.stderr[-4000:]}"
