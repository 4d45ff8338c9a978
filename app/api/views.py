"""Parts of answers that several blueprints share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from app.crawl.sources.sources import SourceView
from app.errors import field_error
from app.models import Member, Site
from app.services.access.callers import Caller
from app.services.access.rights import Role
from app.web.hosts import hook_url


def agree(query: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a DELETE may have as query parameters or in its body, which some clients and proxies drop.

    Raises:
        ApiError: 400 for an option that is in both and differs.
    """
    for name in query.keys() & body.keys():
        if query[name] != body[name]:
            raise field_error(name, "conflict", "in the query and in the body differ")
    return {**query, **body}


def site_answer(site: Site, caller: Caller) -> dict[str, Any]:
    """A site as answers show it."""
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


def source_answer(source: SourceView, caller: Caller) -> dict[str, Any]:
    """A source as answers show it; the address of its hook to whoever may start its runs."""
    may_run = caller.member is None or caller.member.role.covers(Role.EDITOR)
    shown = {member.name: getattr(source, member.name) for member in fields(source) if member.name != "hook_salt"}
    return {**shown, "hook_url": hook_url(source.id, source.hook_salt) if may_run else None}


def user_answer(user: Member) -> dict[str, Any]:
    """The caller's user as answers show them: a member, with the account's id, plan, and age."""
    return {
        "id": user.account.id,
        "name": user.name,
        "email": user.email,
        "plan": user.account.plan,
        "created_at": user.account.created_at,
    }
