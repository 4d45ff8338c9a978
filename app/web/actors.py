"""Who the audit log says a request's changes are by."""

from __future__ import annotations

from flask import g, has_request_context, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Key
from app.runtime import runtime
from app.services.audit_log.actors import SYSTEM, Actor, named_actor
from app.services.audit_log.audited import key_name
from app.web.auth import Caller
from app.web.client_ip import client_address


def find_actor(session: Session) -> Actor:
    """Who changes something now: whoever is named, the request's caller, or the service itself."""
    actor = named_actor()
    if actor is not None:
        return actor
    caller: Caller | None = g.get("caller") if has_request_context() else None
    if caller is None:
        return SYSTEM
    if caller.member is not None:
        return member_actor(caller.member.email, caller.member.id)
    if caller.key is None:
        return SYSTEM
    row = session.connection().execute(select(Key.name, Key.type, Key.last4).where(Key.id == caller.key.id)).first()
    name = caller.key.id if row is None else key_name(row.name, row.type, row.last4)
    return Actor("key", name, caller.key.id, _address())


def member_actor(email: str, member_id: int | None = None) -> Actor:
    """A member as the request's actor; without an id while they are being made."""
    return Actor("member", email, None if member_id is None else str(member_id), _address())


def _address() -> str:
    return client_address(request, runtime().settings.trusted_proxies)
