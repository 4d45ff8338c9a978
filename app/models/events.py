"""Search events, their roll-ups and the journals they come from.

None of these tables refers to ``sites``: a deleted site's events are taken out in chunks, not in
one long transaction. A *scope* is a site's id, or minus an account's id (all sites of the account).
Days are whole UTC days since 1970-01-01. Queries are in normal form, compared by code point.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String, Text, desc, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId

DAY_MICROSECONDS = 86_400_000_000

QueryText = Text().with_variant(Text(collation="C"), "postgresql")
"""A query in normal form; sorted by code point on every database."""


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


class EventJournal(Base):
    """How far a journal file has been moved into the tables; lives as long as the file."""

    __tablename__ = "event_journals"
    __table_args__ = (Index(None, "directory_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    directory_id: Mapped[str] = mapped_column(String(32))
    """The folder it lies in, on whichever machine."""
    position: Mapped[int] = mapped_column(BigId, default=0)
    """Bytes moved."""


class ScopeDay(Base):
    """Totals of one scope on one day, of counted events."""

    __tablename__ = "scope_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    scope: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)
    responses: Mapped[int] = mapped_column(BigId)
    """Searches the service ran."""
    response_ms: Mapped[int] = mapped_column(BigId)
    """Their response times added up."""


class QueryDay(Base):
    """How often one query was counted at one site on one day."""

    __tablename__ = "query_days"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    searches: Mapped[int] = mapped_column(BigId)
    zero_results: Mapped[int] = mapped_column(BigId)


def _ranking(column: str, *, only_positive: bool) -> Index:
    condition = text(f"{column} > 0") if only_positive else None
    return Index(
        f"ix_query_windows_{column}",
        "scope",
        desc(text(column)),  # type: ignore[arg-type]  # SQLAlchemy's types know no expressions here.
        "query",
        sqlite_where=condition,
        postgresql_where=condition,
    )


class QueryWindow(Base):
    """How often one query was counted in a scope, in each of the three windows.

    A window of a site holds every ``QueryDay`` after the site's ``WindowStart`` (in order of day, then query);
    an account's holds the sum of its sites'. See ``app.services.analytics.rollups``.
    """

    __tablename__ = "query_windows"
    __table_args__ = (
        *(_ranking(f"searches_{days}", only_positive=False) for days in (7, 30, 90)),
        *(_ranking(f"zero_results_{days}", only_positive=True) for days in (7, 30, 90)),
        {"sqlite_with_rowid": False},
    )

    scope: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    query: Mapped[str] = mapped_column(QueryText, primary_key=True)
    searches_7: Mapped[int] = mapped_column(BigId)
    searches_30: Mapped[int] = mapped_column(BigId)
    searches_90: Mapped[int] = mapped_column(BigId)
    zero_results_7: Mapped[int] = mapped_column(BigId)
    zero_results_30: Mapped[int] = mapped_column(BigId)
    zero_results_90: Mapped[int] = mapped_column(BigId)


class ScopeWindow(Base):
    """How many different queries a scope has in each of the three windows."""

    __tablename__ = "scope_windows"

    scope: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    queries_7: Mapped[int] = mapped_column(BigId)
    queries_30: Mapped[int] = mapped_column(BigId)
    queries_90: Mapped[int] = mapped_column(BigId)


class WindowStart(Base):
    """Where a site's window begins: it holds the ``QueryDay`` rows with (day, query) after this point."""

    __tablename__ = "window_starts"
    __table_args__ = (Index(None, "account_id", "period"),)

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    period: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """7, 30 or 90."""
    account_id: Mapped[int] = mapped_column(BigId)
    day: Mapped[int]
    query: Mapped[str] = mapped_column(QueryText)


class EventRemoval(Base):
    """A deleted site whose events must still be deleted; the work is done in chunks."""

    __tablename__ = "event_removals"

    site_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    account_id: Mapped[int] = mapped_column(BigId)
