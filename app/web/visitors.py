"""Visitors who search, for analytics."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request

from app.models.events import AGENT
from app.runtime import runtime
from app.services.analytics.event_journal import MAX_PAGE_LENGTH
from app.services.analytics.visitors import session_visitor
from app.services.search.search import Visitor
from app.web.client_ip import client_address
from app.web.request_checks import current_caller, holder
from schemas.search import MAX_SESSION_LENGTH

CHANNEL_HEADER = "X-Search-Channel"
PAGE_HEADER = "X-Search-Page"
BOX = "box"
DOORS = {"algolia": "algolia", "custom_search": "google"}
"""Blueprint to the channel of what it answers."""


def current_visitor(site_id: int, session_id: str | None) -> Visitor:
    """The visitor behind the request, as analytics tell visitors apart.

    Keys that stand in web pages are used by anybody, who may name any session: their visitors are told apart by
    address. Search and private keys are used by servers, which name their visitors' sessions.

    Args:
        site_id: The site that is searched.
        session_id: What the client names as session.
    """
    kind = current_caller().kind
    if kind in ("public", "engine"):
        number: int | None = runtime().visitor_keys.address_visitor(site_id, _address())
    else:
        number = session_visitor(site_id, session_id) if session_id else None
    return Visitor(session_id, number, _channel(kind), _page())


def _channel(kind: str) -> str:
    """The way by which the request came: a search box says so itself."""
    if request.headers.get(CHANNEL_HEADER, "").strip().lower() == BOX:
        return BOX
    return DOORS.get(request.blueprint or "", "gateway" if kind == "engine" else "api")


def _page() -> str | None:
    """Path of the page from which the visitor searches, without what follows it: a query may name a person.

    The box tells it, since browsers tell other sites no more of an address than its host, unless a page asks for it.
    """
    sent = request.headers.get(PAGE_HEADER) or request.headers.get("Referer") or ""
    try:
        path = urlsplit(sent.strip()).path
    except ValueError:
        return None
    told = path.startswith("/") and (path != "/" or PAGE_HEADER in request.headers)
    return path if told and len(path) <= MAX_PAGE_LENGTH and path.isprintable() else None


def agent_visitor() -> Visitor:
    """The visitor for whom an agent searches, of whom nothing is known."""
    return Visitor(None, None, AGENT)


def typing_visitor(site_id: int) -> Visitor | None:
    """The visitor whose every keystroke may be a search: ``None`` where the client asks to be left out of analytics.

    Args:
        site_id: The site that is searched.
    """
    if request.headers.get("X-Search-Analytics", "").strip().lower() == "false":
        return None
    sent = request.headers.get("X-Search-Session", "").strip()
    if not (0 < len(sent) <= MAX_SESSION_LENGTH and sent.isprintable()):
        sent = runtime().visitor_keys.address_session(holder(current_caller()), _address())
    return current_visitor(site_id, sent)


def _address() -> str:
    return client_address(request, runtime().settings.trusted_proxies)
