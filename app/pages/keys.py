"""Keys of a site. A short-lived cookie passes a new token to the next page, which deletes the cookie."""

from __future__ import annotations

from flask import Response, request

from app.clock import now
from app.errors import ApiError
from app.models import Key, Site
from app.operations import change, write
from app.operations import keys as operations
from app.pages.actions import Action
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import SecretCookie, see_other
from app.pages.sites import read_paging
from app.runtime import runtime
from app.services import sites
from app.services.access import keys
from app.tokens import hash_token
from app.web.callers import current_caller
from app.web.hosts import base_url
from schemas.keys import (
    FIELDS_OF_TYPES,
    KeyCreateSchema,
    KeyRotateSchema,
    KeyToggleSchema,
    KeyUpdateSchema,
    unsuitable_fields,
)

TOKEN = SecretCookie("new_token")


def list_keys(site_id: int) -> Response:
    """Show a site's keys and, once, the token of a new key."""
    return TOKEN.show(_keys(site_id), _path(site_id))


def _keys(site_id: int, error: ApiError | None = None) -> str:
    caller = current_caller()
    paging = read_paging()
    secret = runtime().settings.secret_key
    token = TOKEN.read()
    with runtime().database.read() as session:
        site = sites.get_site(session, caller.account.id, site_id)
        listed, total = keys.list_keys(
            session, caller.account.id, site_id, limit=paging["limit"], offset=paging["offset"]
        )
        used = sites.count_keys(session, caller.account.id)
        new_key = (
            keys.find_key_by_hash(session, caller.account.id, site_id, hash_token(token, secret)) if token else None
        )
    is_submitted = "name" in request.form
    values = {"type": "search", "scopes": None, "site_only": False, "allowed_origins": None}
    fields = shown_fields(KeyCreateSchema(), values, error if is_submitted else None)
    limit = caller.account.limits.keys
    return render(
        "keys.html",
        site=site,
        keys=listed,
        total=total,
        paging=paging,
        used=used,
        limit=limit,
        is_open=is_submitted or limit is None or used < limit,
        fields=fields,
        only_types=FIELDS_OF_TYPES,
        banner=banner_of(error, fields),
        new_key=new_key,
        token=token,
        base_url=base_url(),
        today=now().date(),
    )


def create_key(site_id: int) -> Response:
    """Add a key."""
    refill_on_error(lambda error: _keys(site_id, error))
    _, token = operations.create_key(runtime(), current_caller(), site_id, read_form(KeyCreateSchema()))
    return TOKEN.see_other(_path(site_id), token)


def rotate_key(site_id: int, key_id: str) -> Response:
    """Replace the token of a key."""
    refill_on_error(lambda error: _keys(site_id, error))
    _, token = operations.rotate_key(runtime(), current_caller(), site_id, key_id, read_form(KeyRotateSchema()))
    return TOKEN.see_other(_path(site_id), token)


def toggle_key(key_id: str) -> Response:
    """Disable or enable a key."""
    caller, active = current_caller(), read_form(KeyToggleSchema())["active"]
    key = change(runtime(), caller, keys.toggle_key, key_id, active=active, caller_rights=caller.rights)
    return see_other(_path(key.site_id), notice="key-enabled" if key.is_usable else "key-disabled")


def show_edit_form(site_id: int, key_id: str, error: ApiError | None = None) -> str:
    """Show the form that edits a key."""
    site, key = _load(site_id, key_id)
    values = {
        "name": key.name,
        "expires_at": _minute(key),
        "scopes": key.scopes,
        "site_only": key.site_only,
        "allowed_origins": key.allowed_origins,
    }
    fields = shown_fields(KeyUpdateSchema(), values, error, leave_out=unsuitable_fields(key.type))
    return render("key_edit.html", site=site, key=key, fields=fields, banner=banner_of(error, fields))


def _load(site_id: int, key_id: str) -> tuple[Site, Key]:
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        site = sites.get_site(session, account_id, site_id)
        return site, keys.get_key(session, account_id, key_id, site_id=site_id)


def _minute(key: Key) -> str | None:
    """Return a key's expiry as the form shows it: UTC, to the minute."""
    return None if key.expires_at is None else f"{key.expires_at:%Y-%m-%dT%H:%M}"


def update_key(site_id: int, key_id: str) -> Response:
    """Save a key. An unchanged expiry keeps its seconds, which the form doesn't show."""
    refill_on_error(lambda error: show_edit_form(site_id, key_id, error))
    _, key = _load(site_id, key_id)
    changes = read_form(KeyUpdateSchema())
    if request.form.get("expires_at") == (_minute(key) or ""):
        changes.pop("expires_at", None)
    if changes:
        caller = current_caller()
        change(runtime(), caller, keys.update_key, site_id, key_id, changes, caller_rights=caller.rights)
    return see_other(_path(site_id), notice="key-updated")


delete_key = Action(change, "/api/sites/{site_id}/keys", "key-deleted", step=keys.delete_key)
dismiss_exposure = Action(write, "/dashboard", "exposure-dismissed", step=keys.dismiss_exposure)


def _path(site_id: int) -> str:
    return f"/api/sites/{site_id}/keys"
