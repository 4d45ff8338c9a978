"""Documents: the source of truth that every index is derived from."""

from __future__ import annotations

from sqlalchemy import Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class StoredDocument(Base):
    """One document of a site, or the mark that it was deleted (until the engine has been told)."""

    __tablename__ = "documents"
    __table_args__ = (
        Index(None, "site_id", "revision"),
        Index(
            "ix_documents_deleted",
            "site_id",
            "revision",
            sqlite_where=text("source IS NULL"),
            postgresql_where=text("source IS NULL"),
        ),
    )

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True)
    """No foreign key: the documents of a deleted site go in small steps, later; site ids are never reused."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    revision: Mapped[int] = mapped_column(BigId)
    """The site's revision that wrote it."""
    changed_at: Mapped[int] = mapped_column(BigId)
    """Microseconds since the Unix epoch."""
    source: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The document as a JSON object; ``NULL`` when it was deleted."""
