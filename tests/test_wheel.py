"""The wheel contains every file that the service reads, and nothing else."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.server import PROJECT
from tests.wheel import build_wheel


@pytest.mark.slow
def test_wheel_contains_exactly_the_packages_and_the_documentation(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    packages = {
        path.relative_to(PROJECT).as_posix()
        for package in ("app", "backends", "schemas")
        for path in (PROJECT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shown = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md"), *(PROJECT / "docs" / "images").iterdir()]
    documentation = {f"app/_documentation/{path.relative_to(PROJECT).as_posix()}" for path in shown}
    assert names == {*packages, *documentation, "wsgi.py"}
