"""Clicks on results, and the ranking learned from them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId
from app.models.events import Anchor, DocumentId, QueryText


class SearchClick(Base):
    """A click on a document in search results, until the retention period ends. A repeated click does not count."""

    __tablename__ = "search_clicks"
    __table_args__ = (
        UniqueConstraint("site_id", "search_key", "document_id"),
        Index(None, "site_id", "occurred_at"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId)
    search_key: Mapped[int] = mapped_column(BigId)
    """Key of the search: see ``app.services.analytics.clicks``."""
    query: Mapped[str] = mapped_column(QueryText)
    document_id: Mapped[str] = mapped_column(DocumentId)
    """Document ID as sent by the client; the document may not exist."""
    position: Mapped[int | None] = mapped_column(BigId)
    """Position of the document in the results, from 1."""
    occurred_at: Mapped[datetime]
    visitor: Mapped[int | None] = mapped_column(BigId)
    """As ``SearchEvent.visitor``."""
    channel: Mapped[str | None] = mapped_column(String(8))
    """As ``SearchEvent.channel``."""
    session_id: Mapped[str | None] = mapped_column(String(64))
    """Session ID from the client; ``NULL`` if none was sent, and in clicks from earlier releases."""


class ClickDay(Base):
    """Clicks on one document in the results of one query on one site and day."""

    __tablename__ = "click_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    document_id: Mapped[str] = mapped_column(DocumentId, primary_key=True)
    clicks: Mapped[int] = mapped_column(BigId)
    positioned_clicks: Mapped[int] = mapped_column(BigId)
    click_positions: Mapped[int] = mapped_column(BigId)


class ClickAnchorDay(Base):
    """Clicks of a :class:`ClickDay` that led to one section of the document."""

    __tablename__ = "click_anchor_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    document_key: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """Hash of the document's ID, because a key with the ID could exceed the limit of PostgreSQL's indexes."""
    anchor: Mapped[str] = mapped_column(Anchor, primary_key=True)
    """Anchor as sent by the client; the section may not exist."""
    clicks: Mapped[int] = mapped_column(BigId)


class ClickLessons(Base):
    """The ranking that a site has learned from clicks; see ``app.operations.learning``."""

    __tablename__ = "click_lessons"

    site_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    learned_day: Mapped[int | None]
    """UTC day of the last update, in days since 1970-01-01; ``NULL`` before the first."""
    clicks_since: Mapped[datetime | None]
    """Time of the last reset; earlier clicks are ignored."""
    gains: Mapped[dict[str, dict[str, float]]] = mapped_column(JSON, default=dict)
    """Maps each query in normal form to document IDs and the number of positions that each document moves up."""
