"""The search box: its scripts, and the page of a site that shows the code to copy and a preview."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from flask import Response, make_response, request
from sqlalchemy.orm import Session

from app.models import Site
from app.operations.asks import can_ask
from app.operations.keys import BOX_KEY, create_key
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services.access import keys
from app.services.access.credentials import site_record
from app.services.access.engine_keys import preview_key
from app.services.indexing.stored_documents import newest_rows, read_stored
from app.services.search.preview import frequent_queries
from app.services.sites import get_site
from app.web.callers import current_caller
from app.web.headers import policy_with_connections
from app.web.hosts import base_url
from backends.languages import LANGUAGES

VARIABLES = ("ground", "text", "soft", "line", "chosen", "accent", "mark", "font", "radius")
"""The search box's CSS variables, without the prefix ``--site-search-``."""
TEXTS = {
    "label": "Search",
    "results": "Results",
    "one": "1 result",
    "many": "{n} results",
    "none": "Nothing matches “{q}”.",
    "wait": "Searching…",
    "paused": "Search is turned off.",
    "spent": "Search is busy at the moment. Please try again later.",
    "away": "Search cannot be reached at the moment.",
    "refused": "Search is not available.",
    "recent": "Recent searches",
    "clear": "Clear",
    "suggestions": "Suggestions",
    "more": "All results",
    "close": "Close",
    "elsewhere": "No results in {context}. Results elsewhere:",
    "corrected": "Showing results for “{q}”:",
    "some": "No page matches all words. Pages with some of them:",
    "popular": "Popular searches",
    "answer": "Answer",
    "navigate": "Navigate",
    "open": "Open",
    "sort": "Sort by",
    "relevance": "Relevance",
    "newest": "Newest first",
    "oldest": "Oldest first",
    "loadMore": "Load more",
    "shown": "{n} of {all}",
    "filters": "Filters",
    "clearFilters": "Remove all filters",
    "showAll": "Show all",
    "yes": "Yes",
    "no": "No",
    "again": "Try again",
    "start": "What are you looking for?",
    "author": "Author",
    "ask": "Ask",
    "askNote": "AI answers from these pages. Check the sources.",
    "asking": "Searching the pages…",
    "sources": "Sources",
    "copy": "Copy",
    "copied": "Copied",
    "helpful": "Helpful?",
    "thanks": "Thank you.",
    "followUp": "Ask a follow-up question",
    "back": "Back to results",
    "unanswered": "The pages do not answer this question. Results of the search:",
    "askFailed": "No answer is available at the moment. Results of the search:",
}
"""The names of the search box's texts, and the English texts."""
MAX_QUERY_WORDS = 3
"""Words of a page's title that the preview searches for on a site without searches."""


def show_box(site_id: int) -> Response:
    """Show the site's search box, which may call the engine if browsers search there directly."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        key = keys.find_box_key(session, site.id)
        sighting = keys.find_sighting(session, site.id)
        query = _first_query(session, site)
        asks = can_ask(runtime(), site_record(site), current_caller().account.limits)
    return make_response(
        render(
            "box.html",
            site=site,
            key=key,
            seen=sighting,
            query=query,
            client_info=_preview_info(site, asks=asks),
            base_url=base_url(),
            texts=TEXTS,
            **box_options(),
        )
    )


def _first_query(session: Session, site: Site) -> str:
    """Return a query that finds something: the most frequent one, or words of the most recent page's title."""
    if frequent := frequent_queries(session, site.id, only_found=True):
        return frequent[0]
    ids = [position.id for position, _ in newest_rows(session, site.id, None, None, None, 1)]
    titles = [str(orjson.loads(document.body).get("title", "")) for document in read_stored(session, site.id, ids)]
    return " ".join(titles[0].split()[:MAX_QUERY_WORDS]) if titles else ""


def _preview_info(site: Site, *, asks: bool) -> dict[str, Any]:
    """Return the connection details that the preview's search box uses instead of ``GET /v1/client-info``.

    The key in it works on this page even if the box's public key is restricted to the site's own pages.
    """
    key = preview_key(site.account_id, site.id, site.public_epoch, runtime().settings.secret_key)
    return {
        "active": site.active,
        "ask": asks,
        "engine_host": f"{base_url()}/engine",
        "engine_public_key": key,
        "index": site.index,
    }


def create_box_key(site_id: int) -> Response:
    """Create a public key for a site that has no public key with a displayable token."""
    create_key(runtime(), current_caller(), site_id, BOX_KEY)
    return see_other(f"/sites/{site_id}/box")


def box_options() -> dict[str, Any]:
    """Return the choices for search box options, for templates."""
    languages = sorted(((code, language.name) for code, language in LANGUAGES.items()), key=lambda pair: pair[1])
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

RELATED_SCRIPT = _STATIC / "widget-related.min.js"
"""The lists of related pages, which the script loads for pages that have places for them."""

ASK_SCRIPT = _STATIC / "widget-ask.min.js"
"""The button and the view for questions, which the script loads where a site answers them."""

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


def show_widget_related() -> Response:
    """Serve the module with the lists of related pages to pages of any origin."""
    return _script(RELATED_SCRIPT)


def show_widget_ask() -> Response:
    """Serve the module with the view for questions to pages of any origin."""
    return _script(ASK_SCRIPT)


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
