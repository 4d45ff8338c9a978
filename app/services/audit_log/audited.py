"""The things that the audit log keeps, and their fields. What is not named here is not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Account, Identity, Invitation, Key, Member, Site, Source, Webhook
from app.services.search_settings import shown_settings
from app.tokens import PREFIXES


@dataclass(frozen=True, slots=True)
class Audited:
    """The way in which changes of one table's rows are logged.

    Attributes:
        kind: What the log calls such a thing.
        name: What it calls one of them.
        fields: Columns whose values are kept, before and after.
        secrets: Columns of which only is kept that they changed, and what the log calls them.
        settings: A column of settings, which are a kind of their own, and what reads their fields from it.
        comes_and_goes: Whether it is logged that one is made or deleted.
    """

    kind: str
    name: Callable[[Any], str]
    fields: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = field(default_factory=dict)
    comes_and_goes: bool = True


AUDITED: dict[type[Any], Audited] = {
    # An account that is deleted takes its log with it; the first owner tells that it was made.
    Account: Audited(
        "account",
        lambda account: account.name,
        ("plan", "limit_overrides", "suspended_at", "suspension_reason"),
        comes_and_goes=False,
    ),
    Member: Audited(
        "member",
        lambda member: member.email,
        ("name", "email", "email_confirmed", "role", "codes_since"),
        secrets={"password_hash": "password", "recovery_hashes": "recovery_codes"},
    ),
    Identity: Audited("identity", lambda identity: identity.member.email, ("issuer",)),
    Invitation: Audited("invitation", lambda invitation: invitation.email, ("email", "role"), {"token_hash": "link"}),
    Site: Audited(
        "site",
        lambda site: site.name,
        ("name", "url", "domains", "active", "agents", "description", "deleted_at"),
        settings={"search_settings": ("search_settings", shown_settings)},
    ),
    Key: Audited(
        "key",
        lambda key: key_name(key.name, key.type, key.last4),
        ("name", "type", "active", "expires_at", "scopes", "site_only", "allowed_origins"),
        {"token_hash": "token"},
    ),
    Source: Audited(
        "source",
        lambda source: source.url,
        ("kind", "url", "schedule", "include", "exclude", "selectors", "fields", "max_pages", "max_depth"),
        {"headers": "headers", "hook_salt": "hook"},
    ),
    Webhook: Audited("webhook", lambda webhook: webhook.url, ("url", "events", "active")),
}
"""Table to what is logged of its rows."""


def key_name(name: str, type: str, last4: str) -> str:
    """A key as the log calls it: its name, and what is shown of its token."""
    return f"{name} ({PREFIXES[type]}…{last4})"


def account_of(session: Session, thing: Any) -> int:
    """The account that a row belongs to."""
    if isinstance(thing, Account):
        return thing.id
    if isinstance(thing, Identity):
        return thing.member.account_id
    if isinstance(thing, Source):
        found = session.connection().execute(select(Site.account_id).where(Site.id == thing.site_id)).scalar_one()
        return int(found)
    return int(thing.account_id)


def site_of(thing: Any) -> int | None:
    """The site that a row is, or belongs to."""
    return thing.id if isinstance(thing, Site) else getattr(thing, "site_id", None)
