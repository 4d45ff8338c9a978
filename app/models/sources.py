"""Tables for sources, which tell the crawler where to find a site's pages, their runs, and the state of each page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

_OPEN = text("status IN ('queued', 'running')")


class Source(Base):
    """A website, sitemap, feed, or WordPress blog from which a site's pages are crawled."""

    __tablename__ = "sources"
    __table_args__ = (UniqueConstraint("site_id", "kind", "url"), Index(None, "next_run_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """ID with the prefix ``src_``, which is also the source name of its documents."""
    site_id: Mapped[int] = mapped_column(BigId, ForeignKey("sites.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(16))
    """``website``, ``sitemap``, ``feed``, or ``wordpress``."""
    url: Mapped[str] = mapped_column(String(2048))
    schedule: Mapped[str] = mapped_column(String(16))
    """``none``, ``hourly``, ``daily``, or ``weekly``."""
    include: Mapped[list[str]] = mapped_column(JSON, default=list)
    exclude: Mapped[list[str]] = mapped_column(JSON, default=list)
    selectors: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    fields: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    """Rules for custom fields of the source's pages. If several rules set a field, the first one applies."""
    headers: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    """Request headers, which are sent only to the source's host and never displayed."""
    max_pages: Mapped[int | None]
    max_depth: Mapped[int | None]
    render: Mapped[str] = mapped_column(String(8), default="auto", server_default=text("'auto'"))
    """Which pages a browser renders, if there is one: ``never``, ``auto``, or ``always``."""
    title_suffix: Mapped[str | None] = mapped_column(String(1024))
    """Common ending of page titles, which is removed from document titles."""
    title_prefix: Mapped[str | None] = mapped_column(String(1024))
    """Common beginning of page titles, which is removed, too."""
    next_run_at: Mapped[datetime | None]
    """Time of the next scheduled run; ``NULL`` without a schedule."""
    hook_salt: Mapped[str] = mapped_column(String(32), default="", server_default=text("''"))
    """Salt of the deploy hook's token. Changing it changes the token."""
    next_options: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    """Options of the run queued behind the current one; ``NULL`` without one."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SourceRun(Base):
    """One crawl of a source. The row queues the run, and later records its progress and report."""

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
    """``queued``, ``running``, ``finished``, ``failed``, or ``cancelled``."""
    options: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """Options for this run only: ``urls``, ``max_removed_percent``."""
    error: Mapped[dict[str, str] | None] = mapped_column(JSON)
    """``code`` and ``message`` of a failure."""
    queued_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    waiting_since: Mapped[datetime]
    """Time at which the run was queued, or returned to the queue. The run that has waited longest is next."""
    lease: Mapped[str | None] = mapped_column(String(32))
    """Token of the current lease; each claim has a new one."""
    lease_until: Mapped[datetime | None]
    """Expiry of the lease, after which another process continues the run."""
    lapses: Mapped[int] = mapped_column(default=0)
    """Number of leases that expired because their process died."""
    cancelled: Mapped[bool] = mapped_column(default=False)
    """Whether cancellation was requested."""
    sync_id: Mapped[str | None] = mapped_column(String(32))
    seeded: Mapped[bool] = mapped_column(default=False)
    """Whether all start URLs are known."""
    complete: Mapped[bool] = mapped_column(default=True)
    """Whether the run has discovered every page so far. Otherwise, it must not remove the source's other documents."""
    found: Mapped[int] = mapped_column(default=0)
    """URLs found so far; at the end, the sum of the other counts except ``removed``."""
    indexed: Mapped[int] = mapped_column(default=0)
    unchanged: Mapped[int] = mapped_column(default=0)
    removed: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[int] = mapped_column(default=0)
    rendered: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    """Number of pages that the browser rendered."""
    slow_seconds: Mapped[float] = mapped_column(default=0.0, server_default=text("0"))
    """Browser time that the run has spent on slow pages, in seconds."""


class RunPage(Base):
    """A URL that a run found: waiting, or with its outcome."""

    __tablename__ = "run_pages"
    __table_args__ = (Index(None, "run_id", "status", "position"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("source_runs.id", ondelete="CASCADE"), primary_key=True)
    url: Mapped[str] = mapped_column(String(2048), primary_key=True)
    position: Mapped[int] = mapped_column(BigId)
    """Lower positions come first: in the order of discovery, but URLs dated by sitemaps come before, newest first."""
    depth: Mapped[int]
    """Number of links from the start page."""
    status: Mapped[str] = mapped_column(String(16))
    """``waiting``, ``indexed``, ``unchanged``, ``skipped``, or ``failed``; ``removed`` if no link led to it."""
    reason: Mapped[str | None] = mapped_column(String(32))
    found_on: Mapped[str | None] = mapped_column(String(2048))
    """The page, sitemap, or feed that first linked to it, if any."""
    removed: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the URL had a document before this run, which was removed."""


class SourcePage(Base):
    """State of a page for a source's next run, which uses it for conditional requests and unchanged pages."""

    __tablename__ = "source_pages"
    __table_args__ = (Index(None, "source_id", "text_digest"), Index(None, "source_id", "document_id"))

    source_id: Mapped[str] = mapped_column(ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True)
    url: Mapped[str] = mapped_column(String(2048), primary_key=True)
    document_id: Mapped[str | None] = mapped_column(String(512))
    """ID of its document; ``NULL`` without one."""
    reason: Mapped[str | None] = mapped_column(String(32))
    """Reason why the page has no document."""
    etag: Mapped[str | None] = mapped_column(String(512))
    last_modified: Mapped[str | None] = mapped_column(String(64))
    digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Hash of everything read from the page. Unchanged pages are not written again."""
    text_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Hash of the page's title and text. Only one of several pages with the same hash is indexed."""
    title: Mapped[str | None] = mapped_column(String(1024))
    """Title of the page, including the common ending of the site's titles."""
    headings: Mapped[str | None] = mapped_column(String(1024))
    """Alternative titles in case other pages have the same title, one per line."""
    document_title: Mapped[str | None] = mapped_column(String(1024))
    """Title of the document."""
    path_section: Mapped[str | None] = mapped_column(String(255))
    """The document's ``section`` according to its URL, ``""`` if none; ``NULL`` if the page defines one itself."""
    links: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Compressed links of the page, because the body of an unchanged page is not fetched."""
    fetched_at: Mapped[datetime]


class CrawlHost(Base):
    """Rate limit for requests to one host, shared by all processes of the installation."""

    __tablename__ = "crawl_hosts"
    __table_args__ = (Index(None, "next_at"),)

    host: Mapped[str] = mapped_column(String(255), primary_key=True)
    next_at: Mapped[float]
    """Unix seconds before which no request may begin."""
    slowness: Mapped[float]
    """Response time of the host in seconds."""
    taken: Mapped[dict[str, float]] = mapped_column(JSON)
    """Requests in progress: maps each request's token to the time it was issued."""
