"""The minified search box scripts are generated from their sources and checked in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app.pages.search_box import ASK_SCRIPT, RELATED_SCRIPT, RESULTS_SCRIPT, SCRIPT, TEXTS_SCRIPT

ESBUILD = "github.com/evanw/esbuild/cmd/esbuild@v0.28.2"


@pytest.mark.parametrize("script", [SCRIPT, ASK_SCRIPT, RELATED_SCRIPT, RESULTS_SCRIPT, TEXTS_SCRIPT])
def test_minified_script_matches_its_source(tool: Callable[[str], str], script: Path) -> None:
    """If ``MINIFY`` is set, write the file first."""
    source = script.with_name(script.name.replace(".min", ""))
    done = subprocess.run(
        [tool("go"), "run", ESBUILD, "--minify", "--charset=utf8", str(source)],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if os.environ.get("MINIFY"):
        script.write_text(done.stdout)
    assert script.read_text() == done.stdout, "run `make widget`"
