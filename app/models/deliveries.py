"""Tables of outgoing messages: mails, password resets, quota warnings, and webhooks with their deliveries."""

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
    """The account that it concerns; deleted with the account. ``NULL`` if there is none, or it is not known yet."""
    kind: Mapped[str] = mapped_column(String(32))
    """Name in the log. Some kinds are written only when they are sent."""
    recipient: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    unsubscribe_url: Mapped[str] = mapped_column(Text)
    """URL for one-click unsubscribing; empty for a single mail."""
    message_key: Mapped[str] = mapped_column(String(32), unique=True)
    """The same in every attempt, so that a mail that was sent twice can be recognized."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Number of claims. The claiming process may finish the mail as long as this number is unchanged."""
    due_at: Mapped[datetime]
    """Earliest time of the next claim. Claiming the mail sets it to the end of the claim."""
    expires_at: Mapped[datetime]
    """Time after which the mail is not sent any more."""
    created_at: Mapped[datetime]


class PasswordReset(Base):
    """A link that sets a member's new password once."""

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
    """UTC day of searches, or end of the request window in Unix seconds; empty for a total quota."""
    allowed: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """Limit of the plan at that time."""
    percent: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """80 or 100."""
    warned_at: Mapped[datetime]


class Webhook(Base):
    """A URL that receives events of an account."""

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "account_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``whk_…``. Its secret derives from it and the server's secret, and is not stored."""
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    url: Mapped[str] = mapped_column(String(2048))
    events: Mapped[list[str]] = mapped_column(JSON)
    """Events that it receives."""
    active: Mapped[bool]
    failing_since: Mapped[datetime | None]
    """First failed attempt after the last delivery; ``NULL`` if none failed."""
    lease: Mapped[str | None] = mapped_column(String(32))
    """Claim of the process that is sending to it; there is at most one."""
    lease_until: Mapped[datetime | None]
    """End of that claim."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class WebhookDelivery(Base):
    """An event for a webhook: first its place in the queue, then its outcome."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index(None, "webhook_id", "created_at"), Index(None, "due_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``msg_…``: the ``webhook-id`` of all its attempts."""
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(32))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    """The body to send."""
    status: Mapped[str] = mapped_column(String(16))
    """``waiting``, ``delivered``, or ``failed``."""
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime | None]
    """Time of the next attempt; ``NULL`` unless it is waiting."""
    attempted_at: Mapped[datetime | None]
    response_status: Mapped[int | None]
    """HTTP status of the last response; ``NULL`` without one."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why it was not delivered."""
    created_at: Mapped[datetime]
