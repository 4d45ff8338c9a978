"""Tables for sites: settings, index state, documents, and the outbox."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, text, true
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Site(Base):
    """A site of a customer, with one search index and its own keys; or a collection, which searches several sites.

    A collection has keys, searches, and analytics of its own like a site, but no documents and no index.
    """

    __tablename__ = "sites"
    __table_args__ = (Index(None, "account_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    url: Mapped[str] = mapped_column(String(2048))
    domain: Mapped[str] = mapped_column(String(255))
    domains: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Additional URLs whose hosts sources may crawl. If there are any, pages have the field ``domain``."""
    active: Mapped[bool] = mapped_column(default=True)
    deleted_at: Mapped[datetime | None]
    """Time at which the site was moved to the trash, where it is inactive: see ``app.services.sites``."""
    was_active: Mapped[bool] = mapped_column(default=True, server_default=true())
    """Whether the site was active when it was deleted."""
    agents: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    """Whether AI agents may search and read the site; see ``app.compat.agents``."""
    description: Mapped[str] = mapped_column(String(500), default="", server_default=text("''"))
    """Description for AI agents."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    document_count: Mapped[int] = mapped_column(default=0)
    field_kinds: Mapped[dict[str, list[str]]] = mapped_column(JSON, default=dict)
    """Maps custom fields of the site's documents to their kinds of values."""
    search_settings: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    searched_sites: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    """Sites that a collection searches: ``site_id``, ``weight``, ``filters``, and ``label``; ``NULL`` for a site."""
    public_epoch: Mapped[int] = mapped_column(default=1)
    """Version number, incremented to revoke all public engine keys of the site."""

    revision: Mapped[int] = mapped_column(BigId, default=0)
    """Version number, incremented with every change to the documents."""
    applied_revision: Mapped[int] = mapped_column(BigId, default=0)
    """Last revision whose changes are in the engine's index."""
    indexing_failed_at: Mapped[datetime | None]
    """Time of the last failed attempt to update the index; ``NULL`` if an attempt has succeeded since."""
    indexing_error: Mapped[str | None] = mapped_column(String(500))
    """Error of the failed attempt, for the operator; may quote the engine."""
    engine: Mapped[str] = mapped_column(String(255))
    """Identity of the engine with the index: its kind, and its name if the URL gives one."""
    engine_index: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    """Name of the index in the engine."""
    index_generation: Mapped[int] = mapped_column(default=1)
    """Number of the current index, incremented with every index built for the site."""
    index_tag: Mapped[str] = mapped_column(String(16), default=lambda: secrets.token_hex(5), server_default=text("''"))
    """Random part of the names of the site's indexes, which distinguishes them from other installations' indexes."""
    vectors_revision: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))
    """Last revision whose documents have vectors."""
    vectors_model: Mapped[str] = mapped_column(String(255), default="", server_default=text("''"))
    """Identity of the model that computes the vectors; empty if none."""
    vectors_wanted_until: Mapped[datetime | None]
    """Time until which vectors are computed for a preview, even if the settings do not require them."""
    rebuilding: Mapped[bool] = mapped_column(default=False)
    """Whether a second index is being built. Tombstones stay in ``documents`` until it has applied them."""

    @property
    def index(self) -> str:
        """Permanent name of the index for customers."""
        return f"site_{self.id}"

    def index_name(self, generation: int) -> str:
        """Return the name that one generation of the site's index has in the engine."""
        return f"site_{self.id}_{generation}_{self.index_tag}"


class EngineTask(Base):
    """A task for an engine, retried until it succeeds: a row of the outbox."""

    __tablename__ = "engine_tasks"
    __table_args__ = (Index(None, "due_at"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    engine: Mapped[str] = mapped_column(String(255))
    action: Mapped[str] = mapped_column(String(32))
    """``delete_index``, ``revoke_credential``, ``purge_site``, ``remove_source``, or ``release_source``."""
    subject: Mapped[str] = mapped_column(String(255))
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime]
    created_at: Mapped[datetime]


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
    """The embeddings of a document's chunks, for semantic search: see ``app.services.embedding``."""

    __tablename__ = "document_vectors"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """ID of the site; not a foreign key, for the same reason as in ``StoredDocument``."""
    id: Mapped[str] = mapped_column(String(512), primary_key=True)
    """ID of the document."""
    revision: Mapped[int] = mapped_column(BigId)
    """Revision of the document from which the vectors were computed."""
    model: Mapped[str] = mapped_column(String(255))
    """Identity of the model that computed the vectors."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """The vectors of its chunks, one signed byte per dimension; empty if the embedder rejected the document."""
