"""x"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Mail(Base):
    """A mail that the mail server has not taken yet. It is deleted when it has, or when it is given up."""

    __tablename__ = "mails"
    __table_args__ = (Index(None, "account_id"), Index(None, "expires_at"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    """Whom it is about: it goes with the account. ``NULL``: nobody, or not known yet."""
    kind: Mapped[str] = mapped_column(String(32))
    """Names it in the log; some kinds are written only when they are sent."""
    recipient: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(Text)
    """Where the mail's programs unsubscribe with one request; empty if it is not part of a series."""
    message_key: Mapped[str] = mapped_column(String(32), unique=True)
    """The same in every attempt, so that a mail that was sent twice can be recognised."""
    attempts: Mapped[int] = mapped_column(default=0)
    """How often it was claimed. Who has claimed it may finish it as long as this is the number they know."""
    due_at: Mapped[datetime]
    """When it may be claimed: a claim moves it to when the claim lapses."""
    expires_at: Mapped[datetime]
    """When it is given up."""
    created_at: Mapped[datetime]


class PasswordReset(Base):
    """A link that sets a member's new password, once."""

    __tablename__ = "password_resets"
    __table_args__ = (Index(None, "member_id"), Index(None, "expires_at"))

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    member_id: Mapped[int] = mapped_column(BigId, ForeignKey("members.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]


class QuotaWarning(Base):
    """A warning that an account's owner was sent."""

    __tablename__ = "quota_warnings"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    account_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    quota: Mapped[str] = mapped_column(String(16), primary_key=True)
    """``requests``, ``searches`` or ``documents``."""
    period: Mapped[str] = mapped_column(String(10), primary_key=True)
    """The UTC day of searches, or the end of the window of requests in Unix seconds; empty for a quota in total."""
    allowed: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """What the plan allowed."""
    percent: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """80 or 100."""
    warned_at: Mapped[datetime]


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
