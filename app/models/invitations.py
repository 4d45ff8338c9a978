"""Invitations to join an account."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Invitation(Base):
    """An invitation to join an account. It ends when it is accepted, is revoked, or expires."""

    __tablename__ = "invitations"
    __table_args__ = (UniqueConstraint("account_id", "email_key"), Index(None, "expires_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """ID with the prefix ``inv_``."""
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254))
    role: Mapped[str] = mapped_column(String(16))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    is_mailed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the link was sent only to the invited address, so that accepting it proves ownership of the mailbox."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
