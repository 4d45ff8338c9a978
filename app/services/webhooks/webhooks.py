"""The webhooks of an account."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import Webhook
from app.services.sites import get_account
from app.services.webhooks.queue import give_up
from app.storage.database import ROW_LOCK
from app.wording import counted

MAX_WEBHOOKS = 10
"""Most webhooks of an account."""

_WEBHOOK_ID = re.compile(r"whk_[0-9a-f]{20}", re.ASCII)


def get_webhook(session: Session, account_id: int, webhook_id: str, *, lock: bool = False) -> Webhook:
    """Load a webhook for a caller.

    Raises:
        ApiError: 404 if there is none with this id, or it is another account's.
    """
    found = None
    if _WEBHOOK_ID.fullmatch(webhook_id):  # PostgreSQL takes no text with NUL.
        query = select(Webhook).where(Webhook.id == webhook_id, Webhook.account_id == account_id)
        found = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if found is None:
        raise ApiError(ErrorCode.WEBHOOK_NOT_FOUND, "Webhook not found.")
    return found


def list_webhooks(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Webhook], int]:
    """One page of the account's webhooks, oldest first, and how many there are."""
    owned = select(Webhook).where(Webhook.account_id == account_id)
    found = session.scalars(owned.order_by(Webhook.created_at, Webhook.id).limit(limit).offset(offset)).all()
    return found, _count(session, account_id)


def _count(session: Session, account_id: int) -> int:
    return session.scalar(select(func.count()).select_from(Webhook).where(Webhook.account_id == account_id)) or 0


def create_webhook(session: Session, account_id: int, *, url: str, events: list[str], active: bool) -> Webhook:
    """Add a webhook.

    Raises:
        ApiError: 403 if the account has all that it may have.
    """
    get_account(session, account_id, lock=True)
    if _count(session, account_id) >= MAX_WEBHOOKS:
        raise ApiError(
            ErrorCode.WEBHOOK_LIMIT_REACHED, f"An account can have {counted(MAX_WEBHOOKS, 'webhook')}; delete one."
        )
    moment = now()
    webhook = Webhook(
        id=f"whk_{secrets.token_hex(10)}",
        account_id=account_id,
        url=url,
        events=events,
        active=active,
        created_at=moment,
        updated_at=moment,
    )
    session.add(webhook)
    session.flush()
    return webhook


def update_webhook(session: Session, account_id: int, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook. What waits for one that is switched off is given up.

    Args:
        changes: ``url``, ``events``, and ``active``.

    Raises:
        ApiError: 404.
    """
    webhook = get_webhook(session, account_id, webhook_id, lock=True)
    for name, value in changes.items():
        setattr(webhook, name, value)
    if changes.get("active") is False:
        give_up(session, webhook)
    elif "active" in changes or "url" in changes:
        webhook.failing_since = None
    webhook.updated_at = now()
    session.flush()
    return webhook


def delete_webhook(session: Session, account_id: int, webhook_id: str) -> None:
    """Remove a webhook with its deliveries.

    Raises:
        ApiError: 404.
    """
    session.delete(get_webhook(session, account_id, webhook_id, lock=True))
    session.flush()
