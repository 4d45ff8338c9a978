"""A customer's API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.operations.changes import changing
from app.runtime import Runtime
from app.services.access import keys
from app.services.access.callers import Caller
from app.services.access.keys import KeyView


def create_key(runtime: Runtime, caller: Caller, site_id: int, fields: Mapping[str, Any]) -> tuple[KeyView, str]:
    """Add a key; gives it and its token.

    Raises:
        ApiError: 404, 400 for an expiry in the past, 403 at the plan's limit, or for more rights than the caller's.
    """
    secret = runtime.settings.secret_key
    with changing(runtime, caller) as session:
        key, token = keys.create_key(
            session, caller.account.id, caller.account.limits, secret, site_id, **fields, held=caller.rights
        )
        return keys.view(key), token


def update_key(runtime: Runtime, caller: Caller, site_id: int, key_id: str, changes: dict[str, Any]) -> KeyView:
    """Change a key's name, expiry, scopes, site, or origins.

    Raises:
        ApiError: 404, 400; 403 for widening a key that may, or might then, do more than the caller.
    """
    with changing(runtime, caller) as session:
        shown = keys.view(keys.update_key(session, caller.account.id, site_id, key_id, changes, held=caller.rights))
    runtime.run_engine_tasks()
    return shown


def rotate_key(
    runtime: Runtime, caller: Caller, site_id: int, key_id: str, fields: dict[str, Any]
) -> tuple[KeyView, str]:
    """Give a key a new token.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key that may do more than the caller.
    """
    secret = runtime.settings.secret_key
    with changing(runtime, caller) as session:
        key, token = keys.rotate_key(session, caller.account.id, secret, site_id, key_id, **fields, held=caller.rights)
        shown = keys.view(key)
    runtime.run_engine_tasks()
    return shown, token


def toggle_key(runtime: Runtime, caller: Caller, key_id: str, active: bool | None) -> KeyView:
    """Disable or enable a key.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for enabling a key that may do more than the caller.
    """
    with changing(runtime, caller) as session:
        shown = keys.view(keys.toggle_key(session, caller.account.id, key_id, active=active, held=caller.rights))
    runtime.run_engine_tasks()
    return shown


def dismiss_exposure(runtime: Runtime, caller: Caller, site_id: int, key_id: str) -> None:
    """Say no more of a private key's being in a web page, until it is rotated.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        keys.dismiss_exposure(session, caller.account.id, site_id, key_id)


def delete_key(runtime: Runtime, caller: Caller, site_id: int, key_id: str) -> None:
    """Remove a key.

    Raises:
        ApiError: 404.
    """
    with changing(runtime, caller) as session:
        keys.delete_key(session, caller.account.id, site_id, key_id)
    runtime.run_engine_tasks()
