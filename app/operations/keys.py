"""Creating and rotating keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.models import Key
from app.operations import change
from app.runtime import Runtime
from app.services import sites
from app.services.access import keys
from app.services.access.callers import Caller

BOX_KEY: Mapping[str, Any] = {"name": "Search box", "type": "public", "expires_at": None}
"""The key that is created with a site, and with a collection."""


def create_key(
    runtime: Runtime, caller: Caller, site_id: int, fields: Mapping[str, Any], *, of_collection: bool = False
) -> tuple[Key, str]:
    """Create a key. Returns the key and its token.

    Raises:
        ApiError: 404; 400 for an expiry in the past; 403 at the plan's limit, or for rights that the caller lacks.
    """
    limits, secret = caller.account.limits, runtime.settings.secret_key
    return change(
        runtime, caller, keys.create_key, limits, secret, site_id, **fields,
        caller_rights=caller.rights, of_collection=of_collection,
    )  # fmt: skip


def add_box_key(
    session: Session, runtime: Runtime, caller: Caller, site_id: int, *, of_collection: bool = False
) -> None:
    """Create a public key for the search box of a new site or collection, unless the plan allows no more keys."""
    account = caller.account
    if account.limits.keys is not None and sites.count_keys(session, account.id) >= account.limits.keys:
        return
    keys.create_key(
        session, account.id, account.limits, runtime.settings.secret_key, site_id, **BOX_KEY,
        caller_rights=caller.rights, of_collection=of_collection,
    )  # fmt: skip


def rotate_key(
    runtime: Runtime, caller: Caller, site_id: int, key_id: str, fields: dict[str, Any], *, of_collection: bool = False
) -> tuple[Key, str]:
    """Give a key a new token.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key with more rights than the caller.
    """
    secret = runtime.settings.secret_key
    return change(
        runtime, caller, keys.rotate_key, secret, site_id, key_id, **fields,
        caller_rights=caller.rights, of_collection=of_collection,
    )  # fmt: skip
