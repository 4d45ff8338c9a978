"""Documents: the truth that every index is derived from, and the syncs that sweep them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

API_SOURCE = "api"
"""The source of documents that were sent without naming one."""


class StoredDocument(Base):
    """One document of a site, or the mark that it was deleted (until the engine has been told)."""

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
    """No foreign key: the documents of a deleted site go in small steps, later; site ids are never reused."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    revision: Mapped[int] = mapped_column(BigId)
    """The site's revision that wrote it."""
    changed_at: Mapped[int] = mapped_column(BigId)
    """Microseconds since the Unix epoch."""
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The document as a JSON object; ``NULL`` when it was deleted."""
    source: Mapped[str] = mapped_column(String(64), default=API_SOURCE, server_default=text("'api'"))
    """Who wrote it last: ``api``, the name a sync gave, or the id of a :class:`~app.models.sources.Source`."""
    seen_by: Mapped[int | None] = mapped_column(BigId)
    """Number of the :class:`Sync` that saw it last."""


class DocumentVector(Base):
    """A vector of a document, by which it is compared with the meaning of queries (``app.services.vectors``)."""

    __tablename__ = "document_vectors"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """No foreign key, as of documents."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    """The document's."""
    revision: Mapped[int] = mapped_column(BigId)
    """That of the document when it was made."""
    model: Mapped[str] = mapped_column(String(255))
    """Identity of the model that made it."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """One signed byte a dimension; empty where the embedder refuses the document."""


class Sync(Base):
    """A pass over all documents of one source, after which those it did not see are removed."""

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
    """What documents are marked with."""
    id: Mapped[str] = mapped_column(String(32), unique=True)
    """``sync_…``, as clients know it."""
    site_id: Mapped[int] = mapped_column(BigId)
    source: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16))
    """``running``, ``finished``, ``abandoned`` or ``lapsed``."""
    seen: Mapped[int] = mapped_column(default=0)
    """How many distinct documents it has seen."""
    removed: Mapped[int | None]
    started_at: Mapped[datetime]
    called_at: Mapped[datetime]
    """The last call of its client; it lapses 24 hours later."""
    ended_at: Mapped[datetime | None]
