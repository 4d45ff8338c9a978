"""Events: queued for the webhooks that are told of them, in the transaction that causes them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import isoformat, now
from app.models import Webhook, WebhookDelivery
from app.services.webhooks.queue import bound_waiting


def announce(session: Session, account_id: int, event: str, data: Mapping[str, Any]) -> None:
    """Tell an account's webhooks of an event, if and when the transaction commits.

    Nothing is sent in this process's present work: a background job of any process sends it.

    Args:
        event: One of :data:`schemas.validation.webhooks.EVENTS`.
        data: What happened, fit for JSON.
    """
    # None of them may be deleted before its delivery is there.
    webhooks = session.scalars(
        select(Webhook)
        .where(Webhook.account_id == account_id, Webhook.active)
        .order_by(Webhook.id)
        .with_for_update(read=True, key_share=True)
    ).all()
    moment = now()
    payload = {"type": event, "timestamp": isoformat(moment), "data": dict(data)}
    receivers = [webhook.id for webhook in webhooks if event in webhook.events]
    session.add_all(
        WebhookDelivery(
            id=f"msg_{secrets.token_hex(12)}",
            webhook_id=webhook_id,
            event=event,
            payload=payload,
            status="waiting",
            due_at=moment,
            created_at=moment,
        )
        for webhook_id in receivers
    )
    session.flush()
    for webhook_id in receivers:
        bound_waiting(session, webhook_id)
