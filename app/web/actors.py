"""The actor of a change, for the audit log."""

from __future__ import annotations

from flask import g, has_request_context
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Key
from app.services.access.callers import Caller
from app.services.audit_log.actors import SYSTEM, Actor, current_actor
from app.services.audit_log.audited import key_name
from app.web.request_checks import current_client


def find_actor(session: Session) -> Actor:
    """The current actor: the one set for a block of code, the request's caller, or the service itself."""
    actor = current_actor()
    if actor is not None:
        return actor
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
