"""The audited tables and their logged fields. Fields that are not listed here are not logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Account, Identity, Invitation, Key, Member, Site, Source, Webhook
from app.services.search_settings import settings_with_defaults
from app.tokens import PREFIXES


@dataclass(frozen=True, slots=True)
class Audited:
    """Rules for logging changes of a table's rows.

    Attributes:
        kind: Kind of object in the log.
        name: Returns the name of a row in the log.
        fields: Columns whose old and new values are logged.
        secrets: Columns whose changes are logged without values, with their names in the log.
        settings: Columns of settings, each with the kind that it is logged as and the function that reads its fields.
        logs_existence: Whether creating and deleting a row is logged.
    """

    kind: str
    name: Callable[[Any], str]
    fields: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = field(default_factory=dict)
    logs_existence: bool = True


AUDITED: dict[type[Any], Audited] = {
    # Deleting an account deletes its log, and the entry of its first owner shows its creation.
    Account: Audited(
        "account",
        lambda account: account.name,
        ("plan", "limit_overrides", "suspended_at", "suspension_reason"),
        logs_existence=False,
    ),
    Member: Audited(
        "member",
        lambda member: member.email,
        ("name", "email", "email_confirmed", "role", "codes_since", "operator_since"),
        secrets={"password_hash": "password", "recovery_hashes": "recovery_codes"},
    ),
    Identity: Audited("identity", lambda identity: identity.member.email, ("issuer",)),
    Invitation: Audited("invitation", lambda invitation: invitation.email, ("email", "role"), {"token_hash": "link"}),
    Site: Audited(
        "site",
        lambda site: site.name,
        ("name", "url", "domains", "active", "agents", "description", "deleted_at", "searched_sites"),
        settings={"search_settings": ("search_settings", settings_with_defaults)},
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
        ("kind", "url", "schedule", "include", "exclude", "selectors", "fields", "max_pages", "max_depth", "render"),
        {"headers": "headers", "hook_salt": "hook"},
    ),
    Webhook: Audited("webhook", lambda webhook: webhook.url, ("url", "events", "active")),
}
"""Logging rules by table."""


def key_name(name: str, type: str, last4: str) -> str:
    """Return the name of a key in the log: its name and the visible parts of its token."""
    return f"{name} ({PREFIXES[type]}…{last4})"


def account_of(session: Session, thing: Any) -> int:
    """Return the account that a row belongs to."""
    if isinstance(thing, Account):
        return thing.id
    if isinstance(thing, Identity):
        return thing.member.account_id
    if isinstance(thing, Source):
        account_id = session.connection().execute(select(Site.account_id).where(Site.id == thing.site_id)).scalar_one()
        return int(account_id)
    return int(thing.account_id)


def site_of(thing: Any) -> int | None:
    """Return the ID of the row's site, or the row's own ID if it is a site."""
    return thing.id if isinstance(thing, Site) else getattr(thing, "site_id", None)
