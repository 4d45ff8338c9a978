"""The caller, the client, the visitor, and the actor of the current request."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Request, request
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
from app.web.admission import Admission, current_admission, find_admission
from schemas.search import MAX_SESSION_LENGTH

CHANNEL_HEADER = "HTTP_X_SEARCH_CHANNEL"
PAGE_HEADER = "HTTP_X_SEARCH_PAGE"
BOX = "box"
CHANNELS = {"algolia": "algolia", "custom_search": "google"}
"""Maps blueprints to the channels of their searches."""


def current_caller() -> Caller:
    """Return the caller of an operation that requires identification."""
    return current_admission().known_caller


def load_site(site_id: int) -> Site:
    """Return a site of the caller.

    Raises:
        ApiError: 404.
    """
    with runtime().database.read() as session:
        return get_site(session, current_caller().account.id, site_id)


def current_client() -> Client:
    """Return the client that sent the request."""
    admission = current_admission()
    return Client(admission.ip_address, admission.address, request.user_agent.string)


def holder(caller: Caller) -> str:
    """Return the holder of an engine key: an API key, or the site."""
    site_id = 0 if caller.site is None else caller.site.id
    return f"{site_id}:{caller.key.id if caller.key is not None else ''}"


def current_visitor(admission: Admission, site_id: int, session_id: str | None) -> Visitor:
    """Return the visitor of the request.

    Keys in web pages can be used by anyone with any session ID, so their visitors are distinguished by IP address.
    Servers use search and private keys, and send the session IDs of their visitors.

    Args:
        site_id: The searched site.
        session_id: Session ID from the client.
    """
    req: Request = request._get_current_object()  # type: ignore[attr-defined]
    kind = admission.known_caller.kind
    if kind in ("public", "engine"):
        number: int | None = admission.runtime.visitor_keys.address_visitor(site_id, admission.ip_address)
    else:
        number = session_visitor(site_id, session_id) if session_id else None
    return Visitor(session_id, number, _channel(req, kind), _page(req))


def _channel(req: Request, kind: str) -> str:
    """Return the channel of the request, which the search box sets in a header."""
    if req.environ.get(CHANNEL_HEADER, "").strip().lower() == BOX:
        return BOX
    return CHANNELS.get(req.blueprint or "", "gateway" if kind == "engine" else "api")


def _page(req: Request) -> str | None:
    """Return the path of the page on which the visitor searches, without query parameters: they may be personal data.

    The search box sends it, since browsers by default send only the origin to other sites.
    """
    url = req.environ.get(PAGE_HEADER) or req.environ.get("HTTP_REFERER")
    if not url:
        return None
    try:
        path = urlsplit(url.strip()).path
    except ValueError:
        return None
    is_specific = path.startswith("/") and (path != "/" or PAGE_HEADER in req.environ)
    return path if is_specific and len(path) <= MAX_PAGE_LENGTH and path.isprintable() else None


def is_unrecorded() -> bool:
    """Whether the request's headers keep it out of analytics, as a search box does on a preview of pages."""
    return request.headers.get("X-Search-Analytics", "").strip().lower() == "false"


def agent_visitor() -> Visitor:
    """Return the anonymous visitor of an agent's search."""
    return Visitor(None, None, AGENT)


def typing_visitor(admission: Admission, site_id: int) -> Visitor | None:
    """Return the visitor of a search-as-you-type request; ``None`` for previews, and without analytics.

    Args:
        site_id: The searched site.
    """
    caller = admission.known_caller
    if caller.is_preview or is_unrecorded():
        return None
    session_id = request.headers.get("X-Search-Session", "").strip()
    if not (0 < len(session_id) <= MAX_SESSION_LENGTH and session_id.isprintable()):
        session_id = admission.runtime.visitor_keys.address_session(holder(caller), admission.ip_address)
    return current_visitor(admission, site_id, session_id)


def find_actor(session: Session) -> Actor:
    """Return the current actor: the actor set for a block of code, the request's caller, or the service itself."""
    actor = current_actor()
    if actor is not None:
        return actor
    admission = find_admission()
    if admission is not None and admission.is_operator:
        return Actor("operator", "Operator API", address=admission.ip_address)
    caller = None if admission is None else admission.caller
    if caller is None:
        return SYSTEM
    if caller.member is not None:
        return current_client().member(caller.member.email, caller.member.id)
    if caller.key is None:
        return SYSTEM
    row = session.connection().execute(select(Key.name, Key.type, Key.last4).where(Key.id == caller.key.id)).first()
    name = caller.key.id if row is None else key_name(row.name, row.type, row.last4)
    return Actor("key", name, caller.key.id, current_client().address)
