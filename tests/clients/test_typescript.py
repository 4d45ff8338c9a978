"""A program checked against the types that openapi-typescript makes of the API document does its work."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, Customer


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """The program with its packages from the npm registry."""
    folder = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "client.ts"):
        shutil.copy(HERE / name, folder)
    run(folder, tool("npm"), "install", "--no-audit", "--no-fund", "--no-package-lock")
    return folder


def run(folder: Path, *command: str) -> str:
    """Run a command, which must work; gives what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def test_it_indexes_searches_and_deletes(
    document: Path, folder: Path, tool: Callable[[str], str], make_customer: Callable[[str], Customer]
) -> None:
    node, bin_folder = tool("node"), folder / "node_modules" / ".bin"
    run(folder, str(bin_folder / "openapi-typescript"), str(document), "--output", "types.d.ts")
    checks = ("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext")
    run(folder, str(bin_folder / "tsc"), *checks, "client.ts")

    customer = make_customer("typescript@example.com")
    tokens = customer.tokens
    said = run(folder, node, "client.js", customer.server.base_url, tokens["private"], tokens["search"])

    assert said.strip() == "done"
