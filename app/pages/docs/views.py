"""The documentation: the README and the pages beside it, and the API's reference from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from flask import Response, current_app, g

from app.documentation import GROUPS, documentation_files, documentation_image
from app.errors import ApiError, ErrorCode
from app.pages.docs.markdown import MarkdownPage, render_markdown
from app.pages.docs.reference import Reference, read_reference
from app.pages.layout import render
from app.runtime import runtime
from app.services.sites import list_sites
from app.web.auth import Caller
from app.web.hosts import base_url
from app.web.openapi import document
from backends.languages import LANGUAGES

IMAGE_MAX_AGE_SECONDS = 3600
"""How long a browser keeps a picture without asking."""


WIDGET = "widget"
"""The page on which the search box is tried."""

BOX_VARIABLES = ("ground", "text", "soft", "line", "chosen", "accent", "mark", "font")
"""The box's CSS variables, without ``--site-search-``."""

_MOST_SITES = 100


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
    if name == WIDGET:
        return render("docs_widget.html", guide=guide, name=name, groups=_groups(), base_url=base_url(), **_trial())
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


def _trial() -> dict[str, Any]:
    """What the page with the search box offers to choose from. A session has sites to make a key for."""
    caller: Caller | None = g.get("caller")
    sites: list[dict[str, Any]] = []
    if caller is not None and caller.kind == "session":
        with runtime().database.read() as session:
            found, _ = list_sites(session, caller.account.id, limit=_MOST_SITES, offset=0)
            sites = [{"id": site.id, "name": site.name} for site in found]
    languages = [(code, language.name) for code, language in LANGUAGES.items()]
    return {"sites": sites, "languages": sorted(languages, key=lambda pair: pair[1]), "variables": BOX_VARIABLES}


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
