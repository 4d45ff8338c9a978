"""Syncs of a source's documents."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Sync(Base):
    """A pass in which a client sends all documents of one source; at the end, documents not sent are removed."""

    __tablename__ = "syncs"
    __table_args__ = (
        Index(
            "ix_syncs_running",
            "site_id",
            "source",
            unique=True,
            sqlite_where=text("status = 'running'"),
            postgresql_where=text("status = 'running'"),
        ),
        Index(None, "status", "called_at"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(BigId, primary_key=True)
    """Number that marks the documents sent in this sync, in ``StoredDocument.seen_by``."""
    id: Mapped[str] = mapped_column(String(32), unique=True)
    """ID in the API, with the prefix ``sync_``."""
    site_id: Mapped[int] = mapped_column(BigId)
    source: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16))
    """``running``, ``finished``, ``abandoned``, or ``lapsed``."""
    seen: Mapped[int] = mapped_column(default=0)
    """Number of distinct documents sent so far."""
    removed: Mapped[int | None]
    started_at: Mapped[datetime]
    called_at: Mapped[datetime]
    """Time of the client's last request for this sync. The sync lapses 24 hours later."""
    ended_at: Mapped[datetime | None]
