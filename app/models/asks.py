"""Questions that visitors asked a language model."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId
from app.models.events import QueryText


class Ask(Base):
    """A question that was answered, or that the site's pages do not answer, until the retention period ends."""

    __tablename__ = "asks"
    __table_args__ = (Index(None, "site_id", "occurred_at"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId)
    question: Mapped[str] = mapped_column(QueryText)
    """The question as typed."""
    occurred_at: Mapped[datetime]
    answered: Mapped[bool]
    helpful: Mapped[bool | None]
    """The visitor's feedback; ``NULL`` without feedback."""
    reason: Mapped[str | None] = mapped_column(String(500))
    """The visitor's explanation of the feedback."""
    session_id: Mapped[str | None] = mapped_column(String(64))
    visitor: Mapped[int | None] = mapped_column(BigId)
    """As ``SearchEvent.visitor``."""
