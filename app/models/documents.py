"""Documents, from which every index is derived, and the syncs that remove outdated ones."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

API_SOURCE = "api"
"""Source of documents that were sent without a source."""


class StoredDocument(Base):
    """A document of a site, or a marker of its deletion (until the engine has applied it)."""

    __tablename__ = "documents"
    __table_args__ = (
        Index(None, "site_id", "revision"),
        Index(
            "ix_documents_deleted",
            "site_id",
            "revision",
            sqlite_where=text("body IS NULL"),
            postgresql_where=text("body IS NULL"),
        ),
        Index(
            "ix_documents_source",
            "site_id",
            "source",
            "revision",
            sqlite_where=text("source <> 'api'"),
            postgresql_where=text("source <> 'api'"),
        ),
    )

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True)
    """Without a foreign key, because a deleted site's documents are deleted later in small steps. Site IDs are not
    reused."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    revision: Mapped[int] = mapped_column(BigId)
    """Revision of the site that wrote it."""
    changed_at: Mapped[int] = mapped_column(BigId)
    """Microseconds since the Unix epoch."""
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The document as a JSON object; ``NULL`` if it was deleted."""
    source: Mapped[str] = mapped_column(String(64), default=API_SOURCE, server_default=text("'api'"))
    """Last writer: ``api``, the name of a sync's source, or the ID of a :class:`~app.models.sources.Source`."""
    seen_by: Mapped[int | None] = mapped_column(BigId)
    """Number of the :class:`Sync` that saw it last."""


class DocumentVector(Base):
    """A vector of a document, which is compared with the meaning of queries (``app.services.vectors``)."""

    __tablename__ = "document_vectors"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """Without a foreign key, as for documents."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    """ID of the document."""
    revision: Mapped[int] = mapped_column(BigId)
    """Revision of the document for which it was computed."""
    model: Mapped[str] = mapped_column(String(255))
    """Identity of the model that computed it."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """One signed byte per dimension; empty if the embedder rejected the document."""


class Sync(Base):
    """A pass over all documents of one source, after which unseen documents are removed."""

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
    """Number with which documents are marked."""
    id: Mapped[str] = mapped_column(String(32), unique=True)
    """``sync_…``, the ID for clients."""
    site_id: Mapped[int] = mapped_column(BigId)
    source: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16))
    """``running``, ``finished``, ``abandoned``, or ``lapsed``."""
    seen: Mapped[int] = mapped_column(default=0)
    """Number of distinct documents seen."""
    removed: Mapped[int | None]
    started_at: Mapped[datetime]
    called_at: Mapped[datetime]
    """Last call of its client. It lapses 24 hours later."""
    ended_at: Mapped[datetime | None]
