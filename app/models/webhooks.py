"""Webhooks, and what was and is still to be sent to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Webhook(Base):
    """An address of an account's owner that is told of events."""

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "account_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``whk_…``; its secret follows from it and the installation's, and is kept nowhere."""
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    url: Mapped[str] = mapped_column(String(2048))
    events: Mapped[list[str]] = mapped_column(JSON)
    """Events that it is told of."""
    active: Mapped[bool]
    failing_since: Mapped[datetime | None]
    """When the first attempt after the last delivery failed; ``NULL`` if none has."""
    lease: Mapped[str | None] = mapped_column(String(32))
    """Whoever sends something to it; at most one does."""
    lease_until: Mapped[datetime | None]
    """When that claim lapses."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class WebhookDelivery(Base):
    """An event for a webhook: the entry in the queue, then what became of it."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index(None, "webhook_id", "created_at"), Index(None, "due_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``msg_…``: the ``webhook-id`` of all its attempts."""
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(32))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    """The body that is sent."""
    status: Mapped[str] = mapped_column(String(16))
    """``waiting``, ``delivered`` or ``failed``."""
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime | None]
    """When it is tried next; ``NULL`` unless it waits."""
    attempted_at: Mapped[datetime | None]
    response_status: Mapped[int | None]
    """HTTP status of the last answer; ``NULL`` if there was none."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why it is not delivered."""
    created_at: Mapped[datetime]
