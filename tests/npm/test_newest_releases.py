"""The tests use the newest major release of each front end that the documentation names."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.npm.conftest import RUN_SECONDS
from tests.packages import fail_or_skip

ROOT = Path(__file__).parent.parent.parent
FRONT_ENDS = sorted(
    {
        package
        for page in (ROOT / "docs").glob("*.md")
        for package in re.findall(
            r'^import .* from "(@[\w.-]+/[\w.-]+|[\w.-]+)(?:/[\w./-]+)?";', page.read_text(), re.M
        )
    }
)
TESTED: dict[str, str] = {
    name: asked
    for folder in ("browser", "npm")
    for name, asked in json.loads((ROOT / "tests" / folder / "package.json").read_text())["dependencies"].items()
}


def breaking_number(version: str) -> tuple[int, ...]:
    """Return the part of a version that changes with a breaking release: the major number, or 0 and the minor one."""
    major, minor = (int(part) for part in version.lstrip("^").split(".")[:2])
    return (major,) if major else (major, minor)


def test_documentation_names_front_ends() -> None:
    assert {"@docsearch/js", "@meilisearch/instant-meilisearch", "algoliasearch", "meilisearch"} <= set(FRONT_ENDS)


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_no_front_end_has_a_newer_major_release_than_the_tests_use(name: str) -> None:
    done = subprocess.run(
        ["npm", "view", name, "version"], capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    if done.returncode:
        fail_or_skip(f"the newest release of {name} is unknown: {done.stderr[-500:]}")

    newest = done.stdout.strip()

    message = f"{name} {newest} exists: test with it, and update the documentation"
    assert breaking_number(newest) <= breaking_number(TESTED[name]), message
