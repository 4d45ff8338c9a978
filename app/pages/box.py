"""A site's search box: its public key, the lines to copy, and every option tried on the site's own pages."""

from __future__ import annotations

from typing import Any

from flask import Response, make_response

from app.operations import keys as key_operations
from app.operations.sites import BOX_KEY
from app.pages.layout import render
from app.pages.redirects import see_other
from app.runtime import runtime
from app.services.access import keys
from app.services.sites import get_site
from app.web.headers import policy_with_connections
from app.web.hosts import base_url
from app.web.request_checks import current_caller
from backends.languages import LANGUAGES

VARIABLES = ("ground", "text", "soft", "line", "chosen", "accent", "mark", "font")
"""The box's CSS variables, without ``--site-search-``."""


def show_box(site_id: int) -> Response:
    """The site's search box, which may call the engine if browsers do."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        key = keys.find_box_key(session, site.id)
        seen = keys.find_sighting(session, site.id)
    page = render("box.html", site=site, key=key, seen=seen, base_url=base_url(), **box_options())
    return allow_engine(make_response(page))


def create_box_key(site_id: int) -> Response:
    """Make a public key for the box of a site that has none which can be shown."""
    key_operations.create_key(runtime(), current_caller(), site_id, BOX_KEY)
    return see_other(f"/sites/{site_id}/box")


def box_options() -> dict[str, Any]:
    """Choices that the options of the box offer."""
    languages = sorted(((code, each.name) for code, each in LANGUAGES.items()), key=lambda pair: pair[1])
    return {"languages": languages, "variables": VARIABLES}


def allow_engine(response: Response) -> Response:
    """Let the box in a page of ours call the engine, if browsers search there."""
    if address := runtime().settings.search_public_url:
        response.headers["Content-Security-Policy"] = policy_with_connections(address)
    return response
