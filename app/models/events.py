"""Tables for analytics: events, daily counts, visitors, usage, and ignored queries."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import Date, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

DAY_MICROSECONDS = 86_400_000_000

LONGEST_PERIOD = 90
"""Days over which visitors are distinguished, and the longest period that analytics offer by name."""
CLICK_KINDS = ("clicks", "clicked_searches", "positioned_clicks", "click_positions")
"""Counts of clicks: clicks, searches with at least one, clicks with a reported position, and the sum of these
positions. A click counts on its own day."""
VISITOR_KINDS = ("visitors", "found_visitors", "missed_visitors")
"""Counts of visitors who searched for a query: all, with results, and without results. Within :data:`LONGEST_PERIOD`
days, each visitor counts once, on the last day: see ``app.services.analytics.visitors``.
"""
QUERY_KINDS = ("searches", "zero_results", "partial_results", *CLICK_KINDS, *VISITOR_KINDS)
"""Counts for a query. Results are partial if no document contains every word."""
SITE_KINDS = (
    "searches", "zero_results", "partial_results", *CLICK_KINDS, "responses", "response_ms", "mixed_searches"
)  # fmt: skip
"""Counts of a site. Responses are searches that the service ran, with the sum of their milliseconds; mixed searches
are searches whose hits were also ranked by meaning."""
CHANNELS = ("api", "box", "gateway", "google", "algolia", "agent")
"""Channels of searches: the API, the search box, other clients of the gateway, clients of Google's and Algolia's APIs,
and AI agents."""
AGENT = "agent"
"""Channel of programs that search on behalf of a user. No person sees the result list, so these searches count in
totals, but not in lists, click rates, or suggestions.
"""
OTHER_PAGES = "*"
"""``OriginDay.page`` for searches from pages without their own row."""
PARTIAL = "some"
"""``SearchEvent.matched`` if no document has every word."""
ALL_WORDS = "all"
"""``SearchEvent.matched`` if documents have every word."""
RUN_CODES = {"all": 1, PARTIAL: 2, "corrected": 3}
"""Maps values of ``SearchEvent.matched`` to their numbers in ``QueryDay.last_run``."""
SUGGESTED_FROM = 3
"""Minimum number of visitors who searched for a query in 30 days before it is suggested to others."""

QueryText = Text().with_variant(Text(collation="C"), "postgresql")
"""A query in normal form; sorted by code point on every database."""

DocumentId = String(512).with_variant(String(512, collation="C"), "postgresql")
"""A document ID, sorted by code point."""

PagePath = String(200).with_variant(String(200, collation="C"), "postgresql")
"""Path of a page that visitors search from, sorted by code point."""

Anchor = String(200).with_variant(String(200, collation="C"), "postgresql")
"""Anchor of a section, sorted by code point."""


class SearchEvent(Base):
    """One search or search-log entry, until the retention period ends."""

    __tablename__ = "search_events"
    __table_args__ = (
        Index(
            "ix_search_events_session",
            "site_id",
            "session_id",
            "occurred_at",
            sqlite_where=text("session_id IS NOT NULL"),
            postgresql_where=text("session_id IS NOT NULL"),
        ),
        Index(None, "site_id", "occurred_at"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId)
    session_id: Mapped[str | None] = mapped_column(String(64))
    query: Mapped[str] = mapped_column(QueryText)
    results_count: Mapped[int] = mapped_column(BigId)
    response_ms: Mapped[int | None] = mapped_column(BigId)
    """Response time; ``NULL`` if the service did not run the search."""
    occurred_at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    """Time of arrival, which orders events with the same ``occurred_at``."""
    counted: Mapped[bool]
    """Whether the event counts; false if the session's next event replaces it."""
    matched: Mapped[str | None] = mapped_column(String(16))
    """``all``, ``some`` (no document has every word), or ``corrected``; ``NULL`` if unknown."""
    visitor: Mapped[int | None] = mapped_column(BigId)
    """Hashed visitor ID: see ``app.services.analytics.visitors``; ``NULL`` if unknown."""
    channel: Mapped[str | None] = mapped_column(String(8))
    """One of ``CHANNELS``; ``NULL`` in events from earlier releases."""
    page: Mapped[str | None] = mapped_column(PagePath)
    """Path of the page with the search box, if reported."""
    mixed: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    """Whether the hits were also ranked by meaning."""


class OriginDay(Base):
    """Totals of one site on one day by channel and page, of counted events with a known channel.

    A day has at most :data:`app.services.analytics.rollups.MAX_PAGES` rows with pages of their own.
    """

    __tablename__ = "origin_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    channel: Mapped[str] = mapped_column(String(8), primary_key=True)
    page: Mapped[str] = mapped_column(PagePath, primary_key=True)
    """Path of the page; ``""`` for clicks and if none was reported; ``OTHER_PAGES`` for pages without their own row."""
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)
    partial_results: Mapped[int] = mapped_column(BigId)
    clicks: Mapped[int] = mapped_column(BigId)
    clicked_searches: Mapped[int] = mapped_column(BigId)
    positioned_clicks: Mapped[int] = mapped_column(BigId)
    click_positions: Mapped[int] = mapped_column(BigId)
    responses: Mapped[int] = mapped_column(BigId)
    response_ms: Mapped[int] = mapped_column(BigId)
    mixed_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")


class VisitorKey(Base):
    """A key for hashing visitors' IP addresses, shared by all machines. It is deleted when the next period begins."""

    __tablename__ = "visitor_keys"

    period: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of the period, as in ``app.services.analytics.visitors``."""
    key: Mapped[bytes]


class VisitorErasure(Base):
    """A visitor whose events were erased. Events still in a journal are dropped when they are moved."""

    __tablename__ = "visitor_erasures"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    visitor: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """Hash of the session: see ``app.services.analytics.visitors``."""
    erased_at: Mapped[datetime]


class QueryVisit(Base):
    """Number of one visitor's counted events of one kind for one query on one day.

    The visitor counts while the number is not zero. It may fall to zero and rise again as keystrokes are merged.
    """

    __tablename__ = "query_visits"
    __table_args__ = (Index(None, "site_id", "visit", "day"), {"sqlite_with_rowid": False})

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    visit: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """Hash of visitor, query, and kind of ``VISITOR_KINDS``."""
    events: Mapped[int] = mapped_column(BigId)


class EventJournal(Base):
    """Position up to which a journal file was moved to SQL. The row is deleted with the file."""

    __tablename__ = "event_journals"
    __table_args__ = (Index(None, "directory_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    directory_id: Mapped[str] = mapped_column(String(32))
    """ID of the journal's folder, unique across machines."""
    position: Mapped[int] = mapped_column(BigId, default=0)
    """Number of bytes already moved."""


class SiteDay(Base):
    """Totals of counted events for one site and day."""

    __tablename__ = "site_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)
    responses: Mapped[int] = mapped_column(BigId)
    """Searches that the service ran."""
    response_ms: Mapped[int] = mapped_column(BigId)
    """Total response time of these searches in milliseconds."""
    partial_results: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicked_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    positioned_clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    click_positions: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    mixed_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")


class QueryDay(Base):
    """Counts of one query on one site and day."""

    __tablename__ = "query_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)
    partial_results: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicked_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    positioned_clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    click_positions: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    visitors: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    found_visitors: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    missed_visitors: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    last_run: Mapped[int | None] = mapped_column(BigId)
    """Time and match type of the last search that the service ran that day: microseconds since the Unix epoch times 8,
    plus a number from :data:`RUN_CODES`; ``NULL`` if the query was only logged."""


class EventRemoval(Base):
    """A deleted site whose events must still be deleted, in chunks."""

    __tablename__ = "event_removals"

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)


class UsageDay(Base):
    """One account's usage on one UTC day."""

    __tablename__ = "usage_days"
    __table_args__ = (Index(None, "day"),)

    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    searches: Mapped[int] = mapped_column(BigId, default=0)
    """Number of charged searches, copied from the counter store."""
    indexing_operations: Mapped[int] = mapped_column(BigId, default=0)
    """Number of indexing operations reported by clients, copied from the counter store."""
    documents_changed: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    """Number of documents that this service wrote or deleted, updated in the same transactions."""
    refused_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    """Number of searches that a limit of the plan rejected, copied from the counter store."""
    pages_crawled: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    """Number of pages that crawls indexed or confirmed as unchanged, updated in the same transactions."""
    documents_before: Mapped[int | None] = mapped_column(BigId)
    """Number of stored documents before the first change of the day; ``NULL`` on a day without changes."""
    most_documents: Mapped[int | None] = mapped_column(BigId)
    """Highest number of stored documents around the changes of the day; ``NULL`` on a day without changes."""


class UsageMonth(Base):
    """One account's final usage in one past UTC month. The row never changes."""

    __tablename__ = "usage_months"
    __table_args__ = (Index(None, "month"),)

    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    month: Mapped[date] = mapped_column(Date, primary_key=True)
    """First day of the month."""
    searches: Mapped[int] = mapped_column(BigId)
    refused_searches: Mapped[int] = mapped_column(BigId)
    indexing_operations: Mapped[int] = mapped_column(BigId)
    most_documents: Mapped[int] = mapped_column(BigId)
    pages_crawled: Mapped[int] = mapped_column(BigId)


class IgnoredQuery(Base):
    """A query that the inbox does not list."""

    __tablename__ = "ignored_queries"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    """The query in normal form."""
    ignored_at: Mapped[datetime]
