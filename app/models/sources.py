"""Sources: where a site's pages are crawled, the runs that do it, and what is known of each page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

_OPEN = text("status IN ('queued', 'running')")


class Source(Base):
    """The place where pages of a site are: a web site, a sitemap, a feed or a WordPress blog."""

    __tablename__ = "sources"
    __table_args__ = (UniqueConstraint("site_id", "kind", "url"), Index(None, "next_run_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``src_…``; also the source of its documents."""
    site_id: Mapped[int] = mapped_column(BigId, ForeignKey("sites.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(16))
    """``website``, ``sitemap``, ``feed`` or ``wordpress``."""
    url: Mapped[str] = mapped_column(String(2048))
    schedule: Mapped[str] = mapped_column(String(16))
    """``none``, ``hourly``, ``daily`` or ``weekly``."""
    include: Mapped[list[str]] = mapped_column(JSON, default=list)
    exclude: Mapped[list[str]] = mapped_column(JSON, default=list)
    selectors: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    fields: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Rules for further fields of its pages; of several that give a field a value, the first counts."""
    headers: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    """Sent to the source's host alone; never shown."""
    max_pages: Mapped[int | None]
    max_depth: Mapped[int | None]
    title_suffix: Mapped[str | None] = mapped_column(String(1024))
    """What the titles of its pages have in common at their end; documents go without."""
    next_run_at: Mapped[datetime | None]
    """When the schedule wants the next run; ``NULL`` without one."""
    hook_salt: Mapped[str] = mapped_column(String(32), default="", server_default=text("''"))
    """With the source's id, what the token of its hook is made of; another one makes another token."""
    next_options: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    """Options of the run that follows the one under way; ``NULL`` if nobody has asked for one since that began."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SourceRun(Base):
    """One crawl of a source: the entry in the queue, then the report."""

    __tablename__ = "source_runs"
    __table_args__ = (
        Index("ix_source_runs_open", "source_id", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
        Index(None, "source_id", "queued_at"),
        Index(None, "status", "waiting_since"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``run_…``."""
    source_id: Mapped[str] = mapped_column(ForeignKey("sources.id", ondelete="CASCADE"))
    status: Mapped[str] = mapped_column(String(16))
    """``queued``, ``running``, ``finished``, ``failed`` or ``cancelled``."""
    options: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """What was asked for this run alone: ``urls``, ``max_removed_percent``."""
    error: Mapped[dict[str, str] | None] = mapped_column(JSON)
    """``code`` and ``message`` of why it failed."""
    queued_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    waiting_since: Mapped[datetime]
    """When it was queued, or handed back by a process that had it: who waits longest is next."""
    lease: Mapped[str | None] = mapped_column(String(32))
    """Names the claim of the process that works on it; another claim has another name."""
    lease_until: Mapped[datetime | None]
    """Until when the claim holds; after that, another process continues the run."""
    lapses: Mapped[int] = mapped_column(default=0)
    """How often a claim lapsed because its process was killed."""
    cancelled: Mapped[bool] = mapped_column(default=False)
    """Whether a user requested that the run stop."""
    sync_id: Mapped[str | None] = mapped_column(String(32))
    seeded: Mapped[bool] = mapped_column(default=False)
    """Whether all addresses are known from which others are found."""
    complete: Mapped[bool] = mapped_column(default=True)
    """Whether, as far as is known, it sees all there is, so that the source's other documents may go."""
    found: Mapped[int] = mapped_column(default=0)
    """Addresses known so far; at the end, the sum of the others but ``removed``."""
    indexed: Mapped[int] = mapped_column(default=0)
    unchanged: Mapped[int] = mapped_column(default=0)
    removed: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[int] = mapped_column(default=0)


class RunPage(Base):
    """An address that a run found: waiting, or with what became of it."""

    __tablename__ = "run_pages"
    __table_args__ = (Index(None, "run_id", "status", "position"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("source_runs.id", ondelete="CASCADE"), primary_key=True)
    url: Mapped[str] = mapped_column(String(2048), primary_key=True)
    position: Mapped[int] = mapped_column(BigId)
    """The lower, the sooner: as found, but before those that sitemaps date, the newest first."""
    depth: Mapped[int]
    """Links from the start page."""
    status: Mapped[str] = mapped_column(String(16))
    """``waiting``, ``indexed``, ``unchanged``, ``skipped`` or ``failed``; ``removed`` if nothing led to it."""
    reason: Mapped[str | None] = mapped_column(String(32))
    found_on: Mapped[str | None] = mapped_column(String(2048))
    """The page, sitemap, or feed that led to it first, if any did."""
    removed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it was a document until then."""


class SourcePage(Base):
    """Knowledge of a page that a source's next run needs, to ask whether it changed, and to do without its body."""

    __tablename__ = "source_pages"
    __table_args__ = (Index(None, "source_id", "text_digest"), Index(None, "source_id", "document_id"))

    source_id: Mapped[str] = mapped_column(ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True)
    url: Mapped[str] = mapped_column(String(2048), primary_key=True)
    document_id: Mapped[str | None] = mapped_column(String(512))
    """The document that it became; ``NULL`` if none."""
    reason: Mapped[str | None] = mapped_column(String(32))
    """Why it became none."""
    etag: Mapped[str | None] = mapped_column(String(512))
    last_modified: Mapped[str | None] = mapped_column(String(64))
    digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Of all that was read from it: an unchanged page is not written again."""
    text_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Of its title and text: of pages with the same ones, one is indexed."""
    title: Mapped[str | None] = mapped_column(String(1024))
    """As the page has it, with what the site's titles share."""
    document_title: Mapped[str | None] = mapped_column(String(1024))
    """As the document has it."""
    path_section: Mapped[str | None] = mapped_column(String(255))
    """The ``section`` that its document has by its address, ``""`` if none; ``NULL`` if the page names one itself."""
    links: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Where it leads, compressed: an unchanged page has no body to find them in."""
    fetched_at: Mapped[datetime]


class CrawlHost(Base):
    """The moment from which a host may be asked again, as all processes of the installation see it."""

    __tablename__ = "crawl_hosts"
    __table_args__ = (Index(None, "next_at"),)

    host: Mapped[str] = mapped_column(String(255), primary_key=True)
    next_at: Mapped[float]
    """Unix seconds before which no request may begin."""
    slowness: Mapped[float]
    """Seconds that it takes to answer."""
    taken: Mapped[dict[str, float]] = mapped_column(JSON)
    """The requests under way: a token for each, and when it was given."""
