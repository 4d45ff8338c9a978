"""Visitors who search, for analytics."""

from __future__ import annotations

from flask import request

from app.runtime import runtime
from app.services.analytics.visitors import session_visitor
from app.services.search.search import Visitor
from app.web.client_ip import client_address
from app.web.request_checks import current_caller, holder
from schemas.search import MAX_SESSION_LENGTH


def current_visitor(site_id: int, session_id: str | None) -> Visitor:
    """The visitor behind the request, as analytics tell visitors apart.

    Keys that stand in web pages are used by anybody, who may name any session: their visitors are told apart by
    address. Search and private keys are used by servers, which name their visitors' sessions.

    Args:
        site_id: The site that is searched.
        session_id: What the client names as session.

    Raises:
        SQLAlchemyError: What addresses are hashed with has to be read, and the database cannot.
    """
    if current_caller().kind in ("public", "engine"):
        return Visitor(session_id, runtime().visitor_keys.address_visitor(site_id, _address()))
    return Visitor(session_id, session_visitor(site_id, session_id) if session_id else None)


def typing_visitor(site_id: int) -> Visitor | None:
    """The visitor whose every keystroke may be a search: ``None`` where the client asks to be left out of analytics.

    Args:
        site_id: The site that is searched.

    Raises:
        SQLAlchemyError: As :func:`current_visitor`.
    """
    if request.headers.get("X-Search-Analytics", "").strip().lower() == "false":
        return None
    sent = request.headers.get("X-Search-Session", "").strip()
    if not (0 < len(sent) <= MAX_SESSION_LENGTH and sent.isprintable()):
        sent = runtime().visitor_keys.address_session(holder(current_caller()), _address())
    return current_visitor(site_id, sent)


def _address() -> str:
    return client_address(request, runtime().settings.trusted_proxies)
