"""The forms of sites, keys and the profile: the same description for JSON and for pages."""

from __future__ import annotations

from typing import Any

from app.clock import isoformat
from app.models import Key, Member, Site
from app.services.access.callers import Caller
from schemas.accounts import ProfileUpdateSchema
from schemas.forms import describe_form
from schemas.keys import KeyUpdateSchema, unsuitable_fields
from schemas.sites import SiteCreateSchema, SiteUpdateSchema


def _form(caller: Caller, method: str, action: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    form: dict[str, Any] = {"method": method, "action": action, "fields": fields}
    if caller.csrf_token:
        form["csrf_token"] = caller.csrf_token
    return form


def site_form(caller: Caller, site: Site | None) -> dict[str, Any]:
    """The form that creates a site, or edits ``site``."""
    if site is None:
        return _form(caller, "POST", "/sites", describe_form(SiteCreateSchema(), {}))
    values = {name: getattr(site, name) for name in SiteUpdateSchema().fields}
    return _form(caller, "PUT", f"/sites/{site.id}", describe_form(SiteUpdateSchema(), values))


def key_form(caller: Caller, site_id: int, key: Key) -> dict[str, Any]:
    """The form that edits a key."""
    values = {
        "name": key.name,
        "expires_at": None if key.expires_at is None else isoformat(key.expires_at),
        "scopes": key.scopes,
        "site_only": key.site_only,
        "allowed_origins": key.allowed_origins,
    }
    fields = describe_form(KeyUpdateSchema(), values, leave_out=unsuitable_fields(key.type))
    return _form(caller, "PUT", f"/api/sites/{site_id}/keys/{key.id}", fields)


def profile_form(caller: Caller, user: Member) -> dict[str, Any]:
    """The form that edits the profile."""
    values = {"name": user.name, "email": user.email, "weekly_digest": user.account.weekly_digest}
    leave_out: tuple[str, ...] = () if caller.is_owner else ("weekly_digest",)
    if caller.member is None:
        leave_out = ("current_password", "new_password")
    return _form(caller, "PUT", "/profile", describe_form(ProfileUpdateSchema(), values, leave_out=leave_out))
