"""The documentation: the README and the pages beside it, and the API's reference from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from flask import Response, current_app

from app.documentation import GROUPS, documentation_files, documentation_image
from app.errors import ApiError, ErrorCode
from app.pages.docs.markdown import MarkdownPage, render_markdown
from app.pages.docs.reference import Reference, read_reference
from app.pages.layout import render
from app.web.hosts import base_url
from app.web.openapi import document

IMAGE_MAX_AGE_SECONDS = 3600
"""How long a browser keeps a picture without asking."""


def show_docs() -> str:
    """The guide and the reference."""
    return render(
        "docs.html",
        guide=_guide(""),
        reference=_kept("reference", lambda: read_reference(document())),
        groups=_groups(),
        base_url=base_url(),
    )


def show_docs_page(name: str) -> str:
    """Another page of the documentation.

    Raises:
        ApiError: 404.
    """
    guide = _guide(name) if name else None
    if guide is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No such page in the documentation.")
    return render("docs_page.html", guide=guide, name=name, groups=_groups())


def show_docs_image(name: str) -> Response:
    """A picture of the documentation.

    Raises:
        ApiError: 404.
    """
    file = documentation_image(name)
    if file is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No such image in the documentation.")
    response = Response(file.read_bytes(), content_type="image/png")
    response.cache_control.max_age = IMAGE_MAX_AGE_SECONDS
    return response


def _groups() -> dict[str, dict[str, str]]:
    """Title of a group to its pages: name to title."""
    return {
        group: {name: guide.headings[0].text for name in names if (guide := _guide(name))}
        for group, names in GROUPS.items()
    }


def _guide(name: str) -> MarkdownPage | None:
    file = documentation_files().get(name)
    return None if file is None else _kept(f"page {name}", lambda: render_markdown(file.read_text(encoding="utf-8")))


def _kept(key: str, make: Any) -> Any:
    """What was made before by this process; the files it is made from do not change while it runs."""
    kept: dict[str, Reference | MarkdownPage] = current_app.extensions.setdefault("documentation", {})
    if key not in kept:
        kept[key] = make()
    return kept[key]
