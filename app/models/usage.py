"""Usage, per account and day: a copy of the counter store that outlives it, and what is counted here alone."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Date, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class UsageDay(Base):
    """One account's use on one UTC day."""

    __tablename__ = "usage_days"
    __table_args__ = (Index(None, "day"),)

    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    searches: Mapped[int] = mapped_column(BigId, default=0)
    """Searches charged; a copy."""
    indexing_operations: Mapped[int] = mapped_column(BigId, default=0)
    """Indexing operations that clients reported; a copy."""
    documents_changed: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    """Documents this service wrote or removed, counted in the transactions that did."""
