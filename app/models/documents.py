"""Tables for documents, from which all indexes are built, and for the syncs that remove outdated documents."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

API_SOURCE = "api"
"""Source name of documents that were sent without a source."""


class StoredDocument(Base):
    """A document of a site, or a tombstone, which exists until the engine has applied the deletion."""

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
    """ID of the site. Not a foreign key, because a deleted site's documents are deleted later, in batches. Site IDs are
    never reused."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    revision: Mapped[int] = mapped_column(BigId)
    """Revision of the site in which the document was last changed."""
    changed_at: Mapped[int] = mapped_column(BigId)
    """Time of the last change, in microseconds since the Unix epoch."""
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The document as a JSON object; ``NULL`` if deleted."""
    source: Mapped[str] = mapped_column(String(64), default=API_SOURCE, server_default=text("'api'"))
    """Source of the last write: ``api``, a sync's source name, or the ID of a :class:`~app.models.sources.Source`."""
    seen_by: Mapped[int | None] = mapped_column(BigId)
    """Number of the last :class:`Sync` that included the document."""


class DocumentVector(Base):
    """A document's embedding, for semantic search: see ``app.services.vectors``."""

    __tablename__ = "document_vectors"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """ID of the site; not a foreign key, for the same reason as in ``StoredDocument``."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    """ID of the document."""
    revision: Mapped[int] = mapped_column(BigId)
    """Revision of the document from which the vector was computed."""
    model: Mapped[str] = mapped_column(String(255))
    """Identity of the model that computed the vector."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """One signed byte per dimension; empty if the embedder rejected the document."""


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
