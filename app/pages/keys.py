"""Keys of a site or a collection. A short-lived cookie passes a new token to the next page, which deletes it."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from app.clock import now
from app.errors import ApiError
from app.models import Key, Site
from app.operations import change, write
from app.operations import keys as operations
from app.pages.actions import Action
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import SecretCookie, View, see_other
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


def for_collection(view: View) -> View:
    """Return a view of a site's keys as a view of a collection's keys."""

    def view_collection(collection_id: int, collection_key_id: str | None = None) -> Any:
        key = () if collection_key_id is None else (collection_key_id,)
        return view(collection_id, *key, of_collection=True)

    return view_collection


def list_keys(site_id: int, *, of_collection: bool = False) -> Response:
    """Show a site's keys and, once, the token of a new key."""
    return TOKEN.show(_keys(site_id, of_collection), _path(site_id, of_collection))


def _keys(site_id: int, of_collection: bool, error: ApiError | None = None) -> str:
    caller = current_caller()
    paging = read_paging()
    secret = runtime().settings.secret_key
    token = TOKEN.read()
    with runtime().database.read() as session:
        site = keys.get_holder(session, caller.account.id, site_id, of_collection=of_collection)
        listed, total = keys.list_keys(session, caller.account.id, site_id, **paging, of_collection=of_collection)
        used = sites.count_keys(session, caller.account.id)
        new_key = (
            keys.find_key_by_hash(session, caller.account.id, site_id, hash_token(token, secret)) if token else None
        )
    is_submitted = "name" in request.form
    values = {"type": "search", "scopes": None, "site_only": False, "allowed_origins": None}
    left_out = ("scopes", "site_only") if of_collection else ()
    fields = shown_fields(KeyCreateSchema(), values, error if is_submitted else None, leave_out=left_out)
    for entry in fields:
        if of_collection and entry["name"] == "type":
            entry["options"].remove("private")
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
        path=_path(site_id, of_collection),
        only_types=FIELDS_OF_TYPES,
        banner=banner_of(error, fields),
        new_key=new_key,
        token=token,
        base_url=base_url(),
        today=now().date(),
    )


def create_key(site_id: int, *, of_collection: bool = False) -> Response:
    """Add a key."""
    refill_on_error(lambda error: _keys(site_id, of_collection, error))
    form = read_form(KeyCreateSchema())
    _, token = operations.create_key(runtime(), current_caller(), site_id, form, of_collection=of_collection)
    return TOKEN.see_other(_path(site_id, of_collection), token)


def rotate_key(site_id: int, key_id: str, *, of_collection: bool = False) -> Response:
    """Replace the token of a key."""
    refill_on_error(lambda error: _keys(site_id, of_collection, error))
    form = read_form(KeyRotateSchema())
    _, token = operations.rotate_key(runtime(), current_caller(), site_id, key_id, form, of_collection=of_collection)
    return TOKEN.see_other(_path(site_id, of_collection), token)


def toggle_key(key_id: str) -> Response:
    """Disable or enable a key."""
    caller, active = current_caller(), read_form(KeyToggleSchema())["active"]
    key = change(runtime(), caller, keys.toggle_key, key_id, active=active, caller_rights=caller.rights)
    with runtime().database.read() as session:
        site = sites.get_site(session, caller.account.id, key.site_id, or_collection=True)
    path = _path(site.id, site.searched_sites is not None)
    return see_other(path, notice="key-enabled" if key.is_usable else "key-disabled")


def show_edit_form(site_id: int, key_id: str, error: ApiError | None = None, *, of_collection: bool = False) -> str:
    """Show the form that edits a key."""
    site, key = _load(site_id, key_id, of_collection)
    values = {
        "name": key.name,
        "expires_at": _minute(key),
        "scopes": key.scopes,
        "site_only": key.site_only,
        "allowed_origins": key.allowed_origins,
    }
    fields = shown_fields(KeyUpdateSchema(), values, error, leave_out=unsuitable_fields(key.type))
    path = _path(site_id, of_collection)
    return render("key_edit.html", site=site, key=key, fields=fields, path=path, banner=banner_of(error, fields))


def _load(site_id: int, key_id: str, of_collection: bool) -> tuple[Site, Key]:
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        site = keys.get_holder(session, account_id, site_id, of_collection=of_collection)
        return site, keys.get_key(session, account_id, key_id, site_id=site_id, of_collection=of_collection)


def _minute(key: Key) -> str | None:
    """Return a key's expiry as the form shows it: UTC, to the minute."""
    return None if key.expires_at is None else f"{key.expires_at:%Y-%m-%dT%H:%M}"


def update_key(site_id: int, key_id: str, *, of_collection: bool = False) -> Response:
    """Save a key. An unchanged expiry keeps its seconds, which the form doesn't show."""
    refill_on_error(lambda error: show_edit_form(site_id, key_id, error, of_collection=of_collection))
    _, key = _load(site_id, key_id, of_collection)
    changes = read_form(KeyUpdateSchema())
    if request.form.get("expires_at") == (_minute(key) or ""):
        changes.pop("expires_at", None)
    if changes:
        caller = current_caller()
        change(
            runtime(), caller, keys.update_key, site_id, key_id, changes,
            caller_rights=caller.rights, of_collection=of_collection,
        )  # fmt: skip
    return see_other(_path(site_id, of_collection), notice="key-updated")


def delete_key(site_id: int, key_id: str, *, of_collection: bool = False) -> Response:
    """Delete a key."""
    change(runtime(), current_caller(), keys.delete_key, site_id, key_id, of_collection=of_collection)
    return see_other(_path(site_id, of_collection), notice="key-deleted")


dismiss_exposure = Action(write, "/dashboard", "exposure-dismissed", step=keys.dismiss_exposure)


def _path(site_id: int, of_collection: bool) -> str:
    return f"/api/{'collections' if of_collection else 'sites'}/{site_id}/keys"
