"""Accounts: the tenants."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, Date, String, text, true
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Account(Base):
    """A customer. Sites, keys and quotas belong to it; its name and e-mail are those of its first owner."""

    __tablename__ = "accounts"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - ids are never reused

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    """The e-mail trimmed and case-folded: what is compared."""
    password_hash: Mapped[str] = mapped_column(String(255), default="")
    """Empty: members have the passwords. Processes of the version before still name it while they are replaced."""
    plan: Mapped[str] = mapped_column(String(32))
    limit_overrides: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """Limit name to a number, or null for unlimited; what is absent follows the plan."""
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]
    """Since when its operator keeps everybody from it."""
    suspension_reason: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """What is told to whoever is kept from it."""
    weekly_digest: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether its owner wants a mail each week about what found nothing."""
    confirm_by: Mapped[datetime | None]
    """When its keys stop unless an owner has confirmed their e-mail; ``NULL``: that is not asked, or done."""
    digest_week: Mapped[date | None] = mapped_column(Date)
    """The Monday of the last week whose digest was seen to, sent or not worth a mail."""


class DepartureReason(Base):
    """The reason why somebody deleted an account, kept without identity."""

    __tablename__ = "departure_reasons"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    reason: Mapped[str] = mapped_column(String(2000))
    created_at: Mapped[datetime]
