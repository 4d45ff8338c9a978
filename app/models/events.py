"""x"""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import Date, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

DAY_MICROSECONDS = 86_400_000_000

LONGEST_PERIOD = 90
"""Days over which visitors are told apart, and the longest period that analytics offer by name."""
CLICK_KINDS = ("clicks", "clicked_searches", "positioned_clicks", "click_positions")
"""What is counted of clicks: clicks, searches with at least one, clicks that told a position, those positions added up.
A click counts on its own day."""
VISITOR_KINDS = ("visitors", "found_visitors", "missed_visitors")
"""Visitors who searched a query, who did so with results, and who did so without. Each counts once, on the last day on
which they did so in :data:`LONGEST_PERIOD` days: see ``app.services.analytics.visits``."""
QUERY_KINDS = ("searches", "zero_results", "partial_results", *CLICK_KINDS, *VISITOR_KINDS)
"""What is counted of a query. Partial results are those of which none has every word."""
SITE_KINDS = (
    "searches", "zero_results", "partial_results", *CLICK_KINDS, "responses", "response_ms", "mixed_searches"
)  # fmt: skip
"""What is counted of a site: responses are searches the service ran, with their milliseconds added up; mixed searches
those whose hits were ordered by meaning, too."""
CHANNELS = ("api", "box", "gateway", "google", "algolia", "agent")
"""Ways by which searches come: the API, the search box, other clients of the gateway, those of Google's and Algolia's
APIs, and agents."""
AGENT = "agent"
"""The channel of programs that search for somebody. Nobody sees a list then, so what they search counts in totals, and
in no list, rate of clicks, or suggestion."""
OTHER_PAGES = "*"
"""``OriginDay.page`` of searches from pages that have no row of their own."""
PARTIAL = "some"
"""``SearchEvent.matched`` where no document has every word."""
ALL_WORDS = "all"
"""``SearchEvent.matched`` where documents have every word."""
RUN_CODES = {"all": 1, PARTIAL: 2, "corrected": 3}
"""``SearchEvent.matched`` to the number that stands for it in ``QueryDay.last_run``."""
SUGGESTED_FROM = 3
"""Visitors who must have searched a query in 30 days before it may be shown to others."""

QueryText = Text().with_variant(Text(collation="C"), "postgresql")
"""A query in normal form; sorted by code point on every database."""

DocumentId = String(512).with_variant(String(512, collation="C"), "postgresql")
"""The id of a document, sorted likewise."""

PagePath = String(200).with_variant(String(200, collation="C"), "postgresql")
"""The path of a page from which somebody searched, sorted likewise."""

Anchor = String(200).with_variant(String(200, collation="C"), "postgresql")
"""The anchor of a section, sorted likewise."""


class SearchEvent(Base):
    """One search or search-log entry, as long as the retention lasts."""

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
    """How long the service took; ``NULL`` when it did not run the search."""
    occurred_at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    """When it arrived: settles the order of events with one ``occurred_at``."""
    counted: Mapped[bool]
    """False when the next entry of its session replaces it."""
    matched: Mapped[str | None] = mapped_column(String(16))
    """``all``, ``some`` (no document has every word) or ``corrected``; ``NULL`` where it is not known."""
    visitor: Mapped[int | None] = mapped_column(BigId)
    """Who searched: see ``app.services.analytics.visitors``; ``NULL`` where visitors are not told apart."""
    channel: Mapped[str | None] = mapped_column(String(8))
    """Of ``CHANNELS``; ``NULL`` in events of earlier releases."""
    page: Mapped[str | None] = mapped_column(PagePath)
    """Path of the page from which it was searched, if it was told."""
    mixed: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    """Whether its hits were ordered by meaning, too."""


class SearchClick(Base):
    """A click on a document that a search found, as long as the retention lasts; the same one twice is one."""

    __tablename__ = "search_clicks"
    __table_args__ = (
        UniqueConstraint("site_id", "search_key", "document_id"),
        Index(None, "site_id", "occurred_at"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    site_id: Mapped[int] = mapped_column(BigId)
    search_key: Mapped[int] = mapped_column(BigId)
    """The search that found it: see ``app.services.analytics.clicks``."""
    query: Mapped[str] = mapped_column(QueryText)
    document_id: Mapped[str] = mapped_column(DocumentId)
    """As sent: there may be no such document."""
    position: Mapped[int | None] = mapped_column(BigId)
    """Its place among the results, from 1."""
    occurred_at: Mapped[datetime]
    visitor: Mapped[int | None] = mapped_column(BigId)
    """Who clicked, as ``SearchEvent.visitor``."""
    channel: Mapped[str | None] = mapped_column(String(8))
    """As ``SearchEvent.channel``."""
    session_id: Mapped[str | None] = mapped_column(String(64))
    """The session that was named; ``NULL`` in clicks of earlier releases, too."""


class ClickDay(Base):
    """The number of times one document was clicked among the results of one query at one site on one day."""

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
    """The number of clicks of a :class:`ClickDay` that led to one section of the document."""

    __tablename__ = "click_anchor_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    document_key: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """A digest of the document's id: with the id itself, a key could be longer than PostgreSQL's indexes take."""
    anchor: Mapped[str] = mapped_column(Anchor, primary_key=True)
    """As sent: there may be no such section."""
    clicks: Mapped[int] = mapped_column(BigId)


class OriginDay(Base):
    """Totals of one site on one day by channel and page, of counted events whose channel is known.

    A day has at most :data:`app.services.analytics.visits.MAX_PAGES` rows with pages of their own.
    """

    __tablename__ = "origin_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    channel: Mapped[str] = mapped_column(String(8), primary_key=True)
    page: Mapped[str] = mapped_column(PagePath, primary_key=True)
    """Path of the page; ``""`` where none was told, and for clicks; ``OTHER_PAGES`` for those without a row."""
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
    """The key with which addresses of visitors are hashed for some days, by all machines; gone when the next is."""

    __tablename__ = "visitor_keys"

    period: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """The days it is for, as ``app.services.analytics.visitors`` numbers them."""
    key: Mapped[bytes]


class VisitorErasure(Base):
    """A visitor whose events were erased; those that were still in a journal are dropped when they are moved."""

    __tablename__ = "visitor_erasures"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    visitor: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """A digest of the session, as ``app.services.analytics.visitors`` makes it."""
    erased_at: Mapped[datetime]


class QueryVisit(Base):
    """The number of counted events of one kind that one visitor has of one query on one day.

    It goes to zero and back as keystrokes merge: a visitor is counted as long as it is not zero.
    """

    __tablename__ = "query_visits"
    __table_args__ = (Index(None, "site_id", "visit", "day"), {"sqlite_with_rowid": False})

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    visit: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """A digest of visitor, query, and kind of ``VISITOR_KINDS``."""
    events: Mapped[int] = mapped_column(BigId)


class EventJournal(Base):
    """The point up to which a journal file has been moved into the tables; lives as long as the file."""

    __tablename__ = "event_journals"
    __table_args__ = (Index(None, "directory_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    directory_id: Mapped[str] = mapped_column(String(32))
    """The folder it lies in, on whichever machine."""
    position: Mapped[int] = mapped_column(BigId, default=0)
    """Bytes moved."""


class SiteDay(Base):
    """Totals of one site on one day, of counted events."""

    __tablename__ = "site_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)
    responses: Mapped[int] = mapped_column(BigId)
    """Searches the service ran."""
    response_ms: Mapped[int] = mapped_column(BigId)
    """Their response times added up."""
    partial_results: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    clicked_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    positioned_clicks: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    click_positions: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    mixed_searches: Mapped[int] = mapped_column(BigId, default=0, server_default="0")


class QueryDay(Base):
    """The number of times one query was counted at one site on one day."""

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
    """The last time on this day that the service ran a search of it, and what that matched: microseconds since
    1970-01-01, times 8, plus a number of :data:`RUN_CODES`; ``NULL`` if the query was only logged."""


class EventRemoval(Base):
    """A deleted site whose events must still be deleted; the work is done in chunks."""

    __tablename__ = "event_removals"

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)


class UsageDay(Base):
    """One account's use on one UTC day."""

    __tablename__ = "usage_days"
    __table_args__ = (Index(None, "day"),)

    account_id: Mapped[int] = mapped_column(BigId, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    searches: Mapped[int] = mapped_column(BigId, default=0)
    """Searches charged; a copy."""
    indexing_operations: Mapped[int] = mapped_column(BigId, default=0)
    """Indexing operations that clients reported; a copy."""
    documents_changed: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    """Documents this service wrote or removed, counted in the transactions that did."""


class IgnoredQuery(Base):
    """A query that the inbox no longer shows."""

    __tablename__ = "ignored_queries"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    """In normal form."""
    ignored_at: Mapped[datetime]
