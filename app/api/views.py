"""Response members and forms that several blueprints share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from app.clock import isoformat
from app.crawl.sources.sources import SourceView
from app.errors import field_error
from app.models import Key, Member, Site
from app.services.access.callers import Caller
from app.services.access.rights import Role
from app.web.hosts import hook_url
from schemas.accounts import ProfileUpdateSchema
from schemas.forms import describe_form
from schemas.keys import KeyUpdateSchema, unsuitable_fields
from schemas.sites import SiteCreateSchema, SiteUpdateSchema


def merge_options(query: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the options of a DELETE from the query and the body, since some clients and proxies drop bodies.

    Raises:
        ApiError: 400 for conflicting values.
    """
    for name in query.keys() & body.keys():
        if query[name] != body[name]:
            raise field_error(name, "conflict", "has different values in the query and in the body")
    return {**query, **body}


def describe_site(site: Site, caller: Caller) -> dict[str, Any]:
    """Return the representation of a site in responses."""
    return {
        "id": site.id,
        "name": site.name,
        "url": site.url,
        "domain": site.domain,
        "domains": site.domains,
        "index": site.index,
        "active": site.active,
        "agents": site.agents,
        "description": site.description,
        "plan": caller.account.plan,
        "document_count": site.document_count,
        "created_at": site.created_at,
        "updated_at": site.updated_at,
    }


def describe_source(source: SourceView, caller: Caller) -> dict[str, Any]:
    """Return the representation of a source in responses, with its deploy hook's URL if the caller may start runs."""
    may_run = caller.member is None or caller.member.role.covers(Role.EDITOR)
    values = {member.name: getattr(source, member.name) for member in fields(source) if member.name != "hook_salt"}
    return {**values, "hook_url": hook_url(source.id, source.hook_salt) if may_run else None}


def describe_user(user: Member) -> dict[str, Any]:
    """Return the representation of a user in responses: a member, with the account's ID, plan, and creation time."""
    return {
        "id": user.account.id,
        "name": user.name,
        "email": user.email,
        "plan": user.account.plan,
        "created_at": user.account.created_at,
    }


def _form(caller: Caller, method: str, action: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    form: dict[str, Any] = {"method": method, "action": action, "fields": fields}
    if caller.csrf_token:
        form["csrf_token"] = caller.csrf_token
    return form


def site_form(caller: Caller, site: Site | None) -> dict[str, Any]:
    """Return the form that edits ``site``, or creates a site if ``site`` is ``None``."""
    if site is None:
        return _form(caller, "POST", "/sites", describe_form(SiteCreateSchema(), {}))
    values = {name: getattr(site, name) for name in SiteUpdateSchema().fields}
    return _form(caller, "PUT", f"/sites/{site.id}", describe_form(SiteUpdateSchema(), values))


def key_form(caller: Caller, site_id: int, key: Key) -> dict[str, Any]:
    """Return the form that edits a key."""
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
    """Return the form that edits the profile."""
    values = {"name": user.name, "email": user.email, "weekly_digest": user.account.weekly_digest}
    leave_out: tuple[str, ...] = () if caller.has_owner_rights else ("weekly_digest",)
    if caller.member is None:
        leave_out = ("current_password", "new_password")
    return _form(caller, "PUT", "/profile", describe_form(ProfileUpdateSchema(), values, leave_out=leave_out))
