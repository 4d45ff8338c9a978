"""Who may import whom, as pyproject.toml says."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parent.parent


def test_nothing_points_back() -> None:
    linter = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [str(linter), "--no-cache"], cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_application_opens_nothing(tmp_path: Path) -> None:
    """A process that forks workers must not have opened a database, an index or a thread before."""
    program = (
        "import threading, pathlib, sys; from app import create_app; from app.config import load_settings;"
        f"create_app(load_settings({{'DATA_DIR': {str(tmp_path)!r}}}));"
        f"print(sorted(p.name for p in pathlib.Path({str(tmp_path)!r}).iterdir()), threading.active_count())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "['secret_key'] 1"


def test_the_application_starts_without_the_packages_of_the_crawler(tmp_path: Path) -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = {canonicalize_name(Requirement(text).name) for text in extras["crawler"]}
    modules = {
        module
        for module, distributions in packages_distributions().items()
        if not packages.isdisjoint(map(canonicalize_name, distributions))
    }
    assert {"httpcore", "lxml"} < modules
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {modules!r}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from app import create_app; from app.config import load_settings\n"
        f"create_app(load_settings({{'DATA_DIR': {str(tmp_path)!r}}}))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
