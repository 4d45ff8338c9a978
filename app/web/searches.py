"""Searches of requests that were already charged, with their visitors and channels for analytics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from flask import request

from app.models.events import AGENT
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.analytics.event_journal import MAX_PAGE_LENGTH
from app.services.analytics.visitors import session_visitor
from app.services.search.parameters import for_site
from app.services.search.responses import encode_hit
from app.services.search.search import TimedResult, Visitor
from app.web.callers import current_caller
from app.web.charges import holder, require_search
from app.web.hosts import client_address
from backends.query import SearchQuery
from schemas.search import MAX_SESSION_LENGTH

CHANNEL_HEADER = "X-Search-Channel"
PAGE_HEADER = "X-Search-Page"
BOX = "box"
CHANNELS = {"algolia": "algolia", "custom_search": "google"}
"""Maps blueprints to the channels of their searches."""


def current_visitor(site_id: int, session_id: str | None) -> Visitor:
    """Return the visitor of the request.

    Keys in web pages can be used by anyone with any session ID, so their visitors are distinguished by IP address.
    Servers use search and private keys, and send the session IDs of their visitors.

    Args:
        site_id: The searched site.
        session_id: Session ID from the client.
    """
    kind = current_caller().kind
    if kind in ("public", "engine"):
        number: int | None = runtime().visitor_keys.address_visitor(site_id, _client_address())
    else:
        number = session_visitor(site_id, session_id) if session_id else None
    return Visitor(session_id, number, _channel(kind), _page())


def _channel(kind: str) -> str:
    """Return the channel of the request, which the search box sets in a header."""
    if request.headers.get(CHANNEL_HEADER, "").strip().lower() == BOX:
        return BOX
    return CHANNELS.get(request.blueprint or "", "gateway" if kind == "engine" else "api")


def _page() -> str | None:
    """Return the path of the page on which the visitor searches, without query parameters: they may be personal data.

    The search box sends it, since browsers by default send only the origin to other sites.
    """
    url = request.headers.get(PAGE_HEADER) or request.headers.get("Referer") or ""
    try:
        path = urlsplit(url.strip()).path
    except ValueError:
        return None
    is_specific = path.startswith("/") and (path != "/" or PAGE_HEADER in request.headers)
    return path if is_specific and len(path) <= MAX_PAGE_LENGTH and path.isprintable() else None


def agent_visitor() -> Visitor:
    """Return the anonymous visitor of an agent's search."""
    return Visitor(None, None, AGENT)


def typing_visitor(site_id: int) -> Visitor | None:
    """Return the visitor of a search-as-you-type request; ``None`` if the client opts out of analytics.

    Args:
        site_id: The searched site.
    """
    if request.headers.get("X-Search-Analytics", "").strip().lower() == "false":
        return None
    session_id = request.headers.get("X-Search-Session", "").strip()
    if not (0 < len(session_id) <= MAX_SESSION_LENGTH and session_id.isprintable()):
        session_id = runtime().visitor_keys.address_session(holder(current_caller()), _client_address())
    return current_visitor(site_id, session_id)


def _client_address() -> str:
    return client_address(request, runtime().settings.trusted_proxies)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The outcome of a search.

    Attributes:
        query_id: ID of the search, which clicks refer to.
        links: The site's links for searches without results.
    """

    query: SearchQuery
    timed: TimedResult
    query_id: str
    links: Sequence[Mapping[str, str]]


def search_site(
    site: SiteRecord, search_query: SearchQuery, visitor: Visitor | None, fields: Set[str] | None = None
) -> SearchOutcome:
    """Search a site and record the search for analytics. :mod:`app.web.charges` has reserved the charge.

    Args:
        search_query: The query from ``make_query``, without the site's settings.
        visitor: The visitor, or ``None`` to keep the search out of analytics.
        fields: Fields of the hits; ``None`` for all.

    Raises:
        ApiError: 400 for an invalid query or a response that would be too large; 429 if the daily quota is used up.
        BackendUnavailable: The engine is unavailable.
    """
    current_runtime = runtime()
    query = for_site(search_query, site)
    require_search()
    encode = encode_hit if fields is None else partial(encode_hit, fields=fields)
    counted = None if request.method == "HEAD" else visitor
    room = current_runtime.searcher.new_room()
    timed = current_runtime.searcher.run(site, query, encode, room, record_for=counted, is_whole=fields is None)
    query_id = make_query_id(current_runtime.settings.secret_key, site.id, query.typed, timed.searched_at)
    return SearchOutcome(query, timed, query_id, site.no_results_links)
