"""Where the product's own documentation is, in which order its pages are read, and how its sections are addressed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Using the service": (
        "feeding", "sources", "documents", "sync", "search", "widget", "analytics", "api", "gateway", "limits",
        "errors", "changelog",
    ),
    "Operating it": ("operations", "engines", "architecture", "contributing", "benchmarks", "glossary"),
}
"""Title of a group to its pages below ``/docs``, in reading order."""


def documentation_files() -> dict[str, Path]:
    """Name of a page below ``/docs`` to its Markdown file; the README has the empty name. Missing ones are left out."""
    names = [name for group in GROUPS.values() for name in group]
    files = {"": PROJECT / "README.md", **{name: PROJECT / "docs" / f"{name}.md" for name in names}}
    return {name: file for name, file in files.items() if file.exists()}


def documentation_image(name: str) -> Path | None:
    """The file of a picture that a page shows, ``None`` if there is none of this name."""
    images = {file.name: file for file in (PROJECT / "docs" / "images").glob("*.png")}
    return images.get(name)


def anchor_of(title: str) -> str:
    """The anchor of a heading: ``#search-engines`` for "Search engines"."""
    return re.sub(r"[^a-z0-9 -]", "", title.replace("`", "").lower()).strip().replace(" ", "-")
