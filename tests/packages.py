"""Packages from the npm registry, installed into a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL_SECONDS = 300


def install_packages(described: Path, folder: Path) -> None:
    """Install what a ``package.json`` names. Without node, the tests are skipped; with CI set, they fail."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing = "node and npm are needed"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    shutil.copy(described, folder)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=folder, capture_output=True,
        text=True, timeout=INSTALL_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"npm install ended with {done.returncode}:\n{done.stderr[-4000:]}"
