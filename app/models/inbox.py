"""Decisions of a site's owner about queries of the inbox."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId
from app.models.events import QueryText


class IgnoredQuery(Base):
    """A query that the inbox no longer shows."""

    __tablename__ = "ignored_queries"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    """In normal form."""
    ignored_at: Mapped[datetime]
