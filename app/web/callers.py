"""The caller, the client, and the actor of the current request."""

from __future__ import annotations

from flask import g, has_request_context, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Key
from app.runtime import runtime
from app.services.access.callers import Caller, Client
from app.services.audit_log.actors import SYSTEM, Actor, current_actor
from app.services.audit_log.audited import key_name
from app.services.usage.quota import (
    address_key,
)
from app.web.hosts import client_address


def current_caller() -> Caller:
    """Return the caller of an operation that requires identification."""
    caller: Caller = g.caller
    return caller


def current_client() -> Client:
    """Return the client that sent the request."""
    settings = runtime().settings
    address = client_address(request, settings.trusted_proxies)
    return Client(address, address_key(address, settings.secret_key), request.user_agent.string)


def address() -> str:
    """Return a hash of the caller's IP address, for use as a key."""
    return current_client().key


def find_actor(session: Session) -> Actor:
    """Return the current actor: the actor set for a block of code, the request's caller, or the service itself."""
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
