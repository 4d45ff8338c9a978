"""Analytics reports, computed from the roll-ups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app import clock
from app.models import SiteDay
from app.models.events import AGENT, CLICK_KINDS, DAY_MICROSECONDS, SITE_KINDS
from app.services.analytics.report_parts import (
    QUERIES_OF_CHANNEL,
    ChannelCount,
    ClickedPage,
    PageCount,
    RecentResults,
    Span,
    channel_days,
    count_channels,
    list_clicked_pages,
    list_pages,
    mean,
    share_of,
    sites_of,
)
from app.wording import csv_lines

LIST_LENGTH = 10
"""Default length of the lists of queries."""
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class QueryCount:
    """A query in normal form with its counts.

    Attributes:
        count: Number by which the list is sorted, for example searches without results.
        clicks: Clicks on its results.
        clicked_searches: Searches with at least one click.
        positioned_clicks: Clicks with a reported position.
        click_positions: Sum of these positions.
        searches: Total number of searches.
    """

    query: str
    count: int
    clicks: int = 0
    clicked_searches: int = 0
    positioned_clicks: int = 0
    click_positions: int = 0
    searches: int = 0

    @property
    def click_through_rate(self) -> float | None:
        """Share of searches with a click, from 0 to 1; ``None`` without searches."""
        return share_of(self.clicked_searches, self.searches)

    @property
    def average_click_position(self) -> float | None:
        """Mean position of clicked results, from 1; ``None`` if no click reported its position."""
        return mean(self.click_positions, self.positioned_clicks)


@dataclass(frozen=True, slots=True)
class DayCount:
    """Counts for one UTC day.

    Attributes:
        clicked_searches: Searches with at least one click.
        agent_searches: Searches by AI agents, whose users see no list to click on.
    """

    date: date
    searches: int
    zero_results: int
    clicks: int = 0
    clicked_searches: int = 0
    agent_searches: int = 0

    @property
    def zero_result_rate(self) -> float | None:
        """Share of searches without results, from 0 to 1; ``None`` without searches."""
        return share_of(self.zero_results, self.searches)

    @property
    def click_through_rate(self) -> float | None:
        """Share of searches with a click, from 0 to 1; ``None`` without searches."""
        return share_of(self.clicked_searches, self.searches - self.agent_searches)


@dataclass(frozen=True, slots=True)
class Totals:
    """Searches and clicks of a period.

    Attributes:
        total_searches: Searches and search-log entries, with keystrokes merged.
        zero_results: Searches without results.
        measured_searches: Searches that the service ran.
        response_ms: Sum of their response times.
        clicks: Clicks on results.
        clicked_searches: Searches with at least one click.
        positioned_clicks: Clicks with a reported position.
        click_positions: Sum of these positions.
        mixed_searches: Searches whose hits were also ranked by meaning.
        agent_searches: Searches by AI agents, whose users see no list to click on.
    """

    total_searches: int
    zero_results: int
    measured_searches: int
    response_ms: int
    clicks: int
    clicked_searches: int
    positioned_clicks: int
    click_positions: int
    mixed_searches: int = 0
    agent_searches: int = 0

    @property
    def avg_response_time_ms(self) -> int:
        """Rounded mean response time of the searches that the service ran; 0 if there were none."""
        count = self.measured_searches
        return (2 * self.response_ms + count) // (2 * count) if count else 0

    @property
    def zero_result_rate(self) -> float | None:
        """Share of searches without results, from 0 to 1; ``None`` without searches."""
        return share_of(self.zero_results, self.total_searches)

    @property
    def click_through_rate(self) -> float | None:
        """Share of searches with a click, from 0 to 1; ``None`` without searches."""
        return share_of(self.clicked_searches, self.total_searches - self.agent_searches)

    @property
    def average_click_position(self) -> float | None:
        """Mean position of clicked results, from 1; ``None`` if no click reported its position."""
        return mean(self.click_positions, self.positioned_clicks)


@dataclass(frozen=True, slots=True)
class Analytics:
    """Searches in a period of UTC calendar days.

    Attributes:
        totals: Totals of the period.
        previous: Totals of the preceding period of the same length.
        unique_queries: Number of different normal forms.
        top_queries: By count, then text.
        zero_result_queries: Queries by number of searches without results, then text.
        partial_queries: Queries by number of searches for which no document has every word, then text.
        no_click_queries: Queries with results and without clicks, by count, then text.
        series: One entry per day, oldest first.
        channels: Searches and clicks by channel. Events from before channels were recorded are not included.
        clicked_pages: The most clicked documents; empty unless requested.
        pages: The pages with the most searches; empty unless requested.
        previous_series: One entry per day of the preceding period, oldest first.
    """

    totals: Totals
    previous: Totals
    unique_queries: int
    top_queries: Sequence[QueryCount]
    zero_result_queries: Sequence[QueryCount]
    partial_queries: Sequence[QueryCount]
    no_click_queries: Sequence[QueryCount]
    series: Sequence[DayCount]
    channels: Sequence[ChannelCount] = ()
    clicked_pages: Sequence[ClickedPage] = ()
    pages: Sequence[PageCount] = ()
    previous_series: Sequence[DayCount] = ()

    @property
    def from_date(self) -> date:
        """First day of the period."""
        return self.series[0].date

    @property
    def to_date(self) -> date:
        """Last day of the period."""
        return self.series[-1].date

    @property
    def total_searches(self) -> int:
        """Number of searches in the period."""
        return self.totals.total_searches


_COUNTED = ("searches", "zero_results", "partial_results", *CLICK_KINDS)
"""Columns in the lists of queries."""
NO_CLICKS = "clicks = 0 AND searches > zero_results"
"""SQL condition that a query had results and no click."""
_RANKINGS = (
    ("searches", "searches > 0"),
    ("zero_results", "zero_results > 0"),
    ("partial_results", "partial_results > 0"),
    ("searches", NO_CLICKS),
)
"""Lists of queries: for each, the column by which it is sorted, and the SQL condition that selects its queries."""


def get_analytics(
    session: Session,
    account_id: int,
    period_days: int,
    *,
    site_id: int | None = None,
    today: date | None = None,
    limit: int = LIST_LENGTH,
    channel: str | None = None,
    details: bool = False,
    recent: RecentResults | None = None,
) -> Analytics:
    """Return the analytics of one site or of all sites of an account.

    Args:
        account_id: The caller's account.
        period_days: UTC calendar days including the last one.
        site_id: A site of the account, which the caller has checked; ``None`` for all its sites.
        today: Last day of the period; the current UTC day by default.
        limit: Maximum length of each list.
        channel: One of ``CHANNELS``; ``None`` for all. The lists of queries then omit agents' searches.
        details: Whether to also list pages and clicked pages.
        recent: Cache for the results of large sites. ``None`` always computes the result, from every event moved to SQL
            so far.
    """
    if period_days < 1:
        raise ValueError("period_days must be at least 1")
    last = ((today or clock.today()) - EPOCH).days
    span = Span(sites_of(session, account_id, site_id), last - period_days + 1, last, channel)

    def compute() -> Analytics:
        with snapshot(session) as reader:
            return _read_analytics(reader, span, limit, details=details)

    if recent is None:
        return compute()
    return recent.get(("analytics", span, limit, details), compute, lambda analytics: analytics.total_searches)


def _read_analytics(session: Session, span: Span, limit: int, *, details: bool) -> Analytics:
    # Also covers the previous period of the same length.
    both = replace(span, first=2 * span.first - span.last - 1)
    origins = channel_days(session, both)
    days = _site_days(session, both) if span.channel is None else origins.get(span.channel, {})
    unique, (top, zero_results, partial, no_click) = _query_counts(session, span, limit)
    agents = {day: int(row.searches) for day, row in origins.get(AGENT, {}).items() if span.channel in (None, AGENT)}
    return Analytics(
        _totals((row for day, row in days.items() if day >= span.first), agents),
        _totals((row for day, row in days.items() if day < span.first), agents),
        unique,
        top,
        zero_results,
        partial,
        no_click,
        series=[_count_day(day, days.get(day), agents.get(day, 0)) for day in range(span.first, span.last + 1)],
        channels=count_channels(origins, span.first),
        clicked_pages=list_clicked_pages(session, span, limit) if details else (),
        pages=list_pages(session, span, limit) if details else (),
        previous_series=[_count_day(day, days.get(day), agents.get(day, 0)) for day in range(both.first, span.first)],
    )


def _site_days(session: Session, span: Span) -> Mapping[int, Any]:
    """Return totals by day, summed over all sites of a span."""
    sums = [func.sum(getattr(SiteDay, kind)).label(kind) for kind in SITE_KINDS]
    rows = session.execute(
        select(SiteDay.day, *sums)
        .where(SiteDay.site_id.in_(span.site_ids), SiteDay.day.between(span.first, span.last))
        .group_by(SiteDay.day)
    )
    return {row.day: row for row in rows}


def _count_day(day: int, numbers: Any, agents: int) -> DayCount:
    kinds = ("searches", "zero_results", "clicks", "clicked_searches")
    counts = [0 if numbers is None else int(getattr(numbers, kind)) for kind in kinds]
    return replace(DayCount(EPOCH + timedelta(days=day), *counts), agent_searches=agents)


def _totals(days: Iterable[Any], agents: Mapping[int, int]) -> Totals:
    """Sum rows that have a column for each of ``SITE_KINDS``."""
    kinds = ("searches", "zero_results", "responses", "response_ms", *CLICK_KINDS, "mixed_searches")
    days = list(days)
    numbers = [int(sum(getattr(day, kind) for day in days)) for kind in kinds]
    return replace(Totals(*numbers), agent_searches=sum(agents.get(day.day, 0) for day in days))


@contextmanager
def snapshot(session: Session) -> Iterator[Session]:
    """Yield a session whose statements all see the same state. On PostgreSQL, this needs a separate transaction."""
    bind = session.get_bind()
    if bind.dialect.name == "sqlite":
        yield session
        return
    with Session(bind.engine.execution_options(isolation_level="REPEATABLE READ")) as separate:
        yield separate


def _query_counts(session: Session, span: Span, limit: int) -> tuple[int, list[list[QueryCount]]]:
    """Return the number of different queries and the lists of ``_RANKINGS``, in one pass over the days."""
    sites = ", ".join(map(str, span.site_ids)) or "NULL"
    if span.channel is None:
        source = f"SELECT * FROM query_days WHERE site_id IN ({sites}) AND day BETWEEN :first AND :last"  # noqa: S608
    else:
        source = QUERIES_OF_CHANNEL.format(sites=sites)
    sums = ", ".join(f"CAST(sum({kind}) AS bigint) AS {kind}" for kind in _COUNTED)
    columns = ", ".join(_COUNTED)
    lists = (
        f"""
        UNION ALL SELECT * FROM (
            SELECT {number}, query, {columns} FROM counts WHERE {condition} ORDER BY {kind} DESC, query LIMIT :limit
        ) AS list_{number}
        """  # noqa: S608 - made of constants
        for number, (kind, condition) in enumerate(_RANKINGS)
    )
    statement = f"""
        WITH counts AS MATERIALIZED (SELECT query, {sums} FROM ({source}) AS numbers GROUP BY query)
        SELECT -1 AS list, NULL AS query, count(*) AS searches, {", ".join(f"0 AS {kind}" for kind in _COUNTED[1:])}
        FROM counts WHERE searches > 0
        {" ".join(lists)}
    """  # noqa: S608 - made of constants and numbers
    bounds = {
        "first": span.first,
        "last": span.last,
        "channel": span.channel,
        "begin": span.first * DAY_MICROSECONDS,
        "end": (span.last + 1) * DAY_MICROSECONDS,
        "limit": limit,
    }
    unique = 0
    rankings: list[list[QueryCount]] = [[] for _ in _RANKINGS]
    for number, query, *numbers in session.execute(text(statement), bounds):
        if number < 0:
            unique = int(numbers[0])
            continue
        counts = dict(zip(_COUNTED, map(int, numbers), strict=True))
        clicks = {kind: counts[kind] for kind in CLICK_KINDS}
        count = QueryCount(query, counts[_RANKINGS[number][0]], **clicks, searches=counts["searches"])
        rankings[number].append(count)
    # UNION ALL guarantees no order, so each list is sorted again.
    for ranked in rankings:
        ranked.sort(key=lambda count: (-count.count, count.query))
    return unique, rankings


_CSV_COLUMNS = ("list", "query", "count", "clicks", "click_through_rate", "average_click_position")
_CSV_LISTS = ("top_queries", "zero_result_queries", "partial_queries", "no_click_queries")


def encode_csv(analytics: Analytics, unanswered: Iterable[tuple[str, int]] = ()) -> str:
    """Return the lists as CSV (RFC 4180), one line per list and query, page, channel, or question without an answer.

    Unknown rates are empty.

    Args:
        unanswered: Questions without an answer, each with the number of times it was asked.
    """
    rows: list[tuple[str, str, int, int | None, float | None, float | None]] = [
        *(
            (name, each.query, each.count, each.clicks, each.click_through_rate, each.average_click_position)
            for name in _CSV_LISTS
            for each in getattr(analytics, name)
        ),
        *(
            ("clicked_pages", page.id, page.clicks, page.clicks, None, page.average_position)
            for page in analytics.clicked_pages
        ),
        *(("pages", page.page, page.searches, None, None, None) for page in analytics.pages),
        *(
            ("channels", channel.channel, channel.searches, channel.clicks, None, None)
            for channel in analytics.channels
        ),
        *(("unanswered_questions", question, count, None, None, None) for question, count in unanswered),
    ]
    return csv_lines([_CSV_COLUMNS, *rows])
