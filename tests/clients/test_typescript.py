"""A program checked against the types that openapi-typescript makes of the API document does its work."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.clients.conftest import HERE, Customer, run


def test_it_indexes_searches_and_deletes(
    document: Path, npm_folder: Path, tool: Callable[[str], str], make_customer: Callable[[str], Customer]
) -> None:
    node, bin_folder = tool("node"), npm_folder / "node_modules" / ".bin"
    shutil.copy(HERE / "client.ts", npm_folder)
    run(npm_folder, str(bin_folder / "openapi-typescript"), str(document), "--output", "types.d.ts")
    checks = ("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext")
    run(npm_folder, str(bin_folder / "tsc"), *checks, "client.ts")

    customer = make_customer("typescript@example.com")
    tokens = customer.tokens
    said = run(npm_folder, node, "client.js", customer.server.base_url, tokens["private"], tokens["search"])

    assert said.strip() == "done"
