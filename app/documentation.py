"""Where the product's own documentation is, and how its sections are addressed."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SIGNS = re.compile(r"<!--.*?-->|^```\w*$|^[|: -]*\|[|: -]*$|^#+ |\*\*|(?<!`)`(?!`)", re.MULTILINE | re.DOTALL)
_PIPE = re.compile(r"^\| *| *\|$", re.MULTILINE)


def documentation_files() -> dict[str, Path]:
    """Name of a page below ``/docs`` to its Markdown file; the README has the empty name. Missing ones are left out."""
    files = {"": PROJECT / "README.md", **{file.stem: file for file in sorted((PROJECT / "docs").glob("*.md"))}}
    return {name: file for name, file in files.items() if file.exists()}


def anchor_of(title: str) -> str:
    """The anchor of a heading: ``#search-engines`` for "Search engines"."""
    return re.sub(r"[^a-z0-9 -]", "", title.replace("`", "").lower()).strip().replace(" ", "-")


def plain_text(markdown: str) -> str:
    """Markdown as it reads: without signs for code, weight and tables, links by their words."""
    text = _SIGNS.sub("", _LINK.sub(r"\1", markdown))
    return re.sub(r"\n{3,}", "\n\n", _PIPE.sub("", text).replace(" | ", " · ")).strip()
