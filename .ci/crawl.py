"""Crawls of installed documentation through a running service: `python .ci/crawl.py`. It takes about three minutes.

It crawls once, crawls again without fetching bodies, removes a page, and kills a run; see benchmarks/crawl.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = "python-sqlalchemy-doc"
FOLDER = Path("/usr/share/doc/python-sqlalchemy-doc/html")


def install() -> None:
    """Install the documentation unless it is installed."""
    if FOLDER.is_dir():
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGE], check=True, env=environment,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


if __name__ == "__main__":
    install()
    command = [sys.executable, "-m", "benchmarks.crawl", str(FOLDER)]
    sys.exit(subprocess.run(command, cwd=PROJECT, check=False).returncode)
