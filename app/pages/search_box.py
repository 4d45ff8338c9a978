"""The search box: its scripts, and the page of a site that shows the code to copy and a preview."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from flask import Response, make_response, request

from app.operations import sites as site_operations
from app.operations.sites import BOX_KEY
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services.access import keys
from app.services.sites import get_site
from app.web.callers import current_caller
from app.web.headers import policy_with_connections
from app.web.hosts import base_url
from backends.languages import LANGUAGES

VARIABLES = ("ground", "text", "soft", "line", "chosen", "accent", "mark", "font", "radius")
"""The search box's CSS variables, without the prefix ``--site-search-``."""


def show_box(site_id: int) -> Response:
    """Show the site's search box, which may call the engine if browsers search there directly."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        key = keys.find_box_key(session, site.id)
        sighting = keys.find_sighting(session, site.id)
    page = render("box.html", site=site, key=key, seen=sighting, base_url=base_url(), **box_options())
    return allow_engine(make_response(page))


def create_box_key(site_id: int) -> Response:
    """Create a public key for a site that has no public key with a displayable token."""
    site_operations.create_key(runtime(), current_caller(), site_id, BOX_KEY)
    return see_other(f"/sites/{site_id}/box")


def box_options() -> dict[str, Any]:
    """Return the choices for search box options, for templates."""
    languages = sorted(((code, each.name) for code, each in LANGUAGES.items()), key=lambda pair: pair[1])
    return {"languages": languages, "variables": VARIABLES}


def allow_engine(response: Response) -> Response:
    """Let the search box on our own page call the engine, if browsers search there directly."""
    if address := runtime().settings.search_public_url:
        response.headers["Content-Security-Policy"] = policy_with_connections(address)
    return response


_STATIC = Path(__file__).resolve().parent.parent / "static"
SCRIPT = _STATIC / "widget.min.js"
"""The minified ``widget.js``; ``make widget`` creates it."""

RESULTS_SCRIPT = _STATIC / "widget-results.min.js"
"""The search box's full view, which the script loads on demand."""

TEXTS_SCRIPT = _STATIC / "widget-texts.min.js"
"""The search box's texts in languages other than English, which the script loads for pages in these languages."""

MAX_AGE_SECONDS = 300
"""Seconds that browsers cache the scripts, and so the maximum delay before they use a new version."""


def show_widget() -> Response:
    """Serve the script to pages of any origin."""
    return _script(SCRIPT)


def show_widget_results() -> Response:
    """Serve the module with the full view to pages of any origin."""
    return _script(RESULTS_SCRIPT)


def show_widget_texts() -> Response:
    """Serve the module with the texts to pages of any origin."""
    return _script(TEXTS_SCRIPT)


def _script(file: Path) -> Response:
    body = file.read_bytes()
    response = Response(body, content_type="text/javascript; charset=utf-8")
    response.set_etag(sha256(body).hexdigest()[:20])
    response.cache_control.public = True
    response.cache_control.max_age = MAX_AGE_SECONDS
    # Otherwise, pages with cross-origin isolation could not load the scripts.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.make_conditional(request)
    return response
