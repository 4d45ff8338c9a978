"""Where the product's own documentation is, and how its sections are addressed."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def documentation_files() -> dict[str, Path]:
    """Name of a page below ``/docs`` to its Markdown file; the README is the empty name. What is not there is left out."""
    files = {"": PROJECT / "README.md", **{file.stem: file for file in sorted((PROJECT / "docs").glob("*.md"))}}
    return {name: file for name, file in files.items() if file.exists()}


def anchor_of(title: str) -> str:
    """The anchor of a heading: ``#search-engines`` for "Search engines"."""
    return re.sub(r"[^a-z0-9 -]", "", title.replace("`", "").lower()).strip().replace(" ", "-")
