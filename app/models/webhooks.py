"""Webhooks and their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Webhook(Base):
    """A URL that receives events of an account, or the operator's webhook, whose URL is a setting."""

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "account_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """ID with the prefix ``whk_``. The signing secret is derived from it and the server's secret, not stored."""
    account_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    """``NULL`` for the operator's webhook."""
    url: Mapped[str] = mapped_column(String(2048))
    events: Mapped[list[str]] = mapped_column(JSON)
    """Names of the events that the webhook receives."""
    active: Mapped[bool]
    failing_since: Mapped[datetime | None]
    """Time of the first failed attempt since the last successful delivery; ``NULL`` if none failed."""
    lease: Mapped[str | None] = mapped_column(String(32))
    """Token of the process that is sending deliveries; at most one process sends to a webhook."""
    lease_until: Mapped[datetime | None]
    """Expiry of the lease."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class WebhookDelivery(Base):
    """An event for a webhook. The row queues the delivery, and later records its outcome."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index(None, "webhook_id", "created_at"), Index(None, "due_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """ID with the prefix ``msg_``, sent as ``webhook-id`` with every attempt."""
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(32))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    """The body to send."""
    status: Mapped[str] = mapped_column(String(16))
    """``waiting``, ``delivered``, or ``failed``."""
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime | None]
    """Time of the next attempt; ``NULL`` unless the delivery is waiting."""
    attempted_at: Mapped[datetime | None]
    response_status: Mapped[int | None]
    """HTTP status of the last response; ``NULL`` if there was none."""
    error: Mapped[str | None] = mapped_column(Text)
    """Reason for the last failure."""
    created_at: Mapped[datetime]
