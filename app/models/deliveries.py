"""Tables for outgoing messages: mails, password resets, quota warnings, and webhooks with their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Mail(Base):
    """A mail that the mail server has not accepted yet. The row is deleted once the mail is accepted or expires."""

    __tablename__ = "mails"
    __table_args__ = (Index(None, "account_id"), Index(None, "expires_at"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    """The account that the mail is about, with which it is deleted; ``NULL`` if none, or not known yet."""
    kind: Mapped[str] = mapped_column(String(32))
    """Type of mail, which appears in the log. The text of some types is written only when they are sent."""
    recipient: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(Text)
    """URL for one-click unsubscribing; empty for mails without a subscription."""
    message_key: Mapped[str] = mapped_column(String(32), unique=True)
    """Identifier that is the same in every attempt, so that duplicates can be recognized."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Number of claims. A process may finish the mail only while the number is the same as when it claimed the mail."""
    due_at: Mapped[datetime]
    """Earliest time of the next claim. Claiming the mail sets this to the end of the lease."""
    expires_at: Mapped[datetime]
    """Time after which the mail is no longer sent."""
    created_at: Mapped[datetime]


class PasswordReset(Base):
    """A single-use link for setting a member's new password."""

    __tablename__ = "password_resets"
    __table_args__ = (Index(None, "member_id"), Index(None, "expires_at"))

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    member_id: Mapped[int] = mapped_column(BigId, ForeignKey("members.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]


class QuotaWarning(Base):
    """A warning sent to an account's owner."""

    __tablename__ = "quota_warnings"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    account_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    quota: Mapped[str] = mapped_column(String(16), primary_key=True)
    """``requests``, ``searches``, or ``documents``."""
    period: Mapped[str] = mapped_column(String(10), primary_key=True)
    """UTC day for searches, or end of the window in Unix seconds for requests; empty for documents."""
    allowed: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """The account's limit at the time of the warning."""
    percent: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Percentage of the limit that was reached: 80 or 100."""
    warned_at: Mapped[datetime]


class Webhook(Base):
    """A URL that receives events of an account."""

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "account_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """ID with the prefix ``whk_``. The signing secret is derived from it and the server's secret, not stored."""
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
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
