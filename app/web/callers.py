"""The caller, the client, the visitor, and the actor of the current request."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import g, has_request_context, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Key, Site
from app.models.events import AGENT
from app.runtime import runtime
from app.services.access.callers import Caller, Client
from app.services.analytics.event_lines import MAX_PAGE_LENGTH
from app.services.analytics.visitors import session_visitor
from app.services.audit_log.actors import SYSTEM, Actor, current_actor
from app.services.audit_log.audited import key_name
from app.services.search.search import Visitor
from app.services.sites import get_site
from app.services.usage.quota import address_key
from app.web.hosts import client_address
from schemas.search import MAX_SESSION_LENGTH

CHANNEL_HEADER = "X-Search-Channel"
PAGE_HEADER = "X-Search-Page"
BOX = "box"
CHANNELS = {"algolia": "algolia", "custom_search": "google"}
"""Maps blueprints to the channels of their searches."""


def current_caller() -> Caller:
    """Return the caller of an operation that requires identification."""
    caller: Caller = g.caller
    return caller


def load_site(site_id: int) -> Site:
    """Return a site of the caller.

    Raises:
        ApiError: 404.
    """
    with runtime().database.read() as session:
        return get_site(session, current_caller().account.id, site_id)


def current_client() -> Client:
    """Return the client that sent the request."""
    address = _ip_address()
    return Client(address, address_key(address, runtime().settings.secret_key), request.user_agent.string)


def _ip_address() -> str:
    return client_address(request, runtime().settings.trusted_proxies)


def address() -> str:
    """Return a hash of the caller's IP address, for use as a key."""
    return current_client().key


def holder(caller: Caller) -> str:
    """Return the holder of an engine key: an API key, or the site."""
    site_id = 0 if caller.site is None else caller.site.id
    return f"{site_id}:{caller.key.id if caller.key is not None else ''}"


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
        number: int | None = runtime().visitor_keys.address_visitor(site_id, _ip_address())
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
    """Return the visitor of a search-as-you-type request; ``None`` for previews, and without analytics.

    Args:
        site_id: The searched site.
    """
    if current_caller().is_preview or request.headers.get("X-Search-Analytics", "").strip().lower() == "false":
        return None
    session_id = request.headers.get("X-Search-Session", "").strip()
    if not (0 < len(session_id) <= MAX_SESSION_LENGTH and session_id.isprintable()):
        session_id = runtime().visitor_keys.address_session(holder(current_caller()), _ip_address())
    return current_visitor(site_id, session_id)


def find_actor(session: Session) -> Actor:
    """Return the current actor: the actor set for a block of code, the request's caller, or the service itself."""
    actor = current_actor()
    if actor is not None:
        return actor
    if has_request_context() and g.get("operator", False):
        return Actor("operator", "Operator API", address=current_client().address)
    caller: Caller | None = g.get("caller") if has_request_context() else None
    if caller is None:
        return SYSTEM
    if caller.member is not None:
        return current_client().member(caller.member.email, caller.member.id)
    if caller.key is None:
        return SYSTEM
    row = session.connection().execute(select(Key.name, Key.type, Key.last4).where(Key.id == caller.key.id)).first()
    name = caller.key.id if row is None else key_name(row.name, row.type, row.last4)
    return Actor("key", name, caller.key.id, current_client().address)
