"""What several blueprints answer with."""

from __future__ import annotations

from typing import Any

from app.models import Account, Site
from app.web.auth import Caller


def site_answer(site: Site, caller: Caller) -> dict[str, Any]:
    """A site as answers show it."""
    return {
        "id": site.id,
        "name": site.name,
        "url": site.url,
        "domain": site.domain,
        "index": site.index,
        "active": site.active,
        "plan": caller.account.plan,
        "document_count": site.document_count,
        "created_at": site.created_at,
        "updated_at": site.updated_at,
    }


def user_answer(account: Account) -> dict[str, Any]:
    """An account's user as answers show them."""
    return {
        "id": account.id,
        "name": account.name,
        "email": account.email,
        "plan": account.plan,
        "created_at": account.created_at,
    }
