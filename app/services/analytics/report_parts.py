"""Parts of reports: totals by channel and page, the most clicked documents, and a cache for large results."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import ClickDay, OriginDay, SearchClick, Site
from app.models.base import from_microseconds
from app.models.events import CHANNELS, DAY_MICROSECONDS, OTHER_PAGES, SITE_KINDS
from app.services.analytics.titles import read_titles


def share_of(count: int, searches: int) -> float | None:
    """Return ``count`` as a share of ``searches``, from 0 to 1; ``None`` without searches.

    Limited to 1, because a search from yesterday may be clicked today, and a client may report clicks without searches.
    """
    return min(1.0, count / searches) if searches > 0 else None


def mean(total: int, count: int) -> float | None:
    """Return ``total`` divided by ``count``; ``None`` if ``count`` is 0."""
    return total / count if count > 0 else None


@dataclass(frozen=True, slots=True)
class ChannelCount:
    """Searches and clicks of one channel."""

    channel: str
    searches: int
    zero_results: int
    clicks: int


@dataclass(frozen=True, slots=True)
class PageCount:
    """Searches from one page of a site.

    Attributes:
        page: Path of the page.
        zero_results: Searches without results.
    """

    page: str
    searches: int
    zero_results: int

    @property
    def zero_result_rate(self) -> float | None:
        """Share of searches without results, from 0 to 1."""
        return share_of(self.zero_results, self.searches)


@dataclass(frozen=True, slots=True)
class ClickedPage:
    """A document that visitors clicked, for any query.

    Attributes:
        title: Current title; ``None`` if the document was deleted.
        average_position: Mean of the reported positions, from 1; ``None`` if no click reported its position.
    """

    site_id: int
    id: str
    title: str | None
    clicks: int
    average_position: float | None


@dataclass(frozen=True, slots=True)
class Span:
    """Selection of searches by site and UTC day, counted from 1970-01-01, including the first and the last day.

    Attributes:
        channel: The selected channel; ``None`` for all.
    """

    site_ids: tuple[int, ...]
    first: int
    last: int
    channel: str | None = None


ChannelDays = Mapping[str, Mapping[int, Row[Any]]]
"""Rows with a column for each of ``SITE_KINDS``, by channel, then day."""


def channel_days(session: Session, span: Span) -> ChannelDays:
    """Return the totals of each channel and day, omitting days without events."""
    sums = [func.sum(getattr(OriginDay, kind)).label(kind) for kind in SITE_KINDS]
    rows = session.execute(
        select(OriginDay.channel, OriginDay.day, *sums)
        .where(OriginDay.site_id.in_(span.site_ids), OriginDay.day.between(span.first, span.last))
        .group_by(OriginDay.channel, OriginDay.day)
    )
    rows_by_channel: dict[str, dict[int, Row[Any]]] = defaultdict(dict)
    for row in rows:
        rows_by_channel[row.channel][row.day] = row
    return rows_by_channel


def count_channels(days: ChannelDays, first: int) -> list[ChannelCount]:
    """Return searches and clicks of each channel since the day ``first``, omitting channels without any."""
    counts = []
    for channel in CHANNELS:
        rows = [row for day, row in days.get(channel, {}).items() if day >= first]
        counts.append(
            ChannelCount(
                channel,
                *(int(sum(getattr(row, kind) for row in rows)) for kind in ("searches", "zero_results", "clicks")),
            )
        )
    return [count for count in counts if count.searches or count.clicks]


def list_pages(session: Session, span: Span, limit: int) -> list[PageCount]:
    """Return the pages with the most searches, sorted by searches, then path."""
    searches = func.sum(OriginDay.searches)
    query = (
        select(OriginDay.page, searches, func.sum(OriginDay.zero_results))
        .where(
            OriginDay.site_id.in_(span.site_ids),
            OriginDay.day.between(span.first, span.last),
            OriginDay.page.not_in(("", OTHER_PAGES)),
        )
        .group_by(OriginDay.page)
        .having(searches > 0)
        .order_by(searches.desc(), OriginDay.page)
        .limit(limit)
    )
    if span.channel is not None:
        query = query.where(OriginDay.channel == span.channel)
    return [PageCount(page, int(number), int(empty)) for page, number, empty in session.execute(query)]


def list_clicked_pages(session: Session, span: Span, limit: int) -> list[ClickedPage]:
    """Return the documents with the most clicks, sorted by clicks, then site and ID."""
    clicks: ColumnElement[Any]
    positioned: ColumnElement[Any]
    positions: ColumnElement[Any]
    conditions: list[ColumnElement[bool]]
    if span.channel is None:
        table: type[ClickDay | SearchClick] = ClickDay
        clicks, positioned = func.sum(ClickDay.clicks), func.sum(ClickDay.positioned_clicks)
        positions = func.sum(ClickDay.click_positions)
        conditions = [ClickDay.day.between(span.first, span.last)]
    else:
        table = SearchClick
        clicks, positioned = func.count(), func.count(SearchClick.position)
        positions = func.coalesce(func.sum(SearchClick.position), 0)
        conditions = [
            SearchClick.occurred_at >= from_microseconds(span.first * DAY_MICROSECONDS),
            SearchClick.occurred_at < from_microseconds((span.last + 1) * DAY_MICROSECONDS),
            SearchClick.channel == span.channel,
        ]
    query = (
        select(table.site_id, table.document_id, clicks, positioned, positions)
        .where(table.site_id.in_(span.site_ids), *conditions)
        .group_by(table.site_id, table.document_id)
        .order_by(clicks.desc(), table.site_id, table.document_id)
    )
    rows = session.execute(query.limit(limit)).all()
    titles = read_titles(session, [(site_id, document_id) for site_id, document_id, *_ in rows])
    return [
        ClickedPage(
            site_id,
            document_id,
            titles.get((site_id, document_id)),
            int(number),
            mean(int(positions), int(positioned)),
        )
        for site_id, document_id, number, positioned, positions in rows
    ]


def count_clicks(session: Session, span: Span, document_ids: Sequence[str]) -> dict[str, int]:
    """Return the clicks on documents by ID, without documents that have none. The channel of the span is ignored."""
    rows = session.execute(
        select(ClickDay.document_id, func.sum(ClickDay.clicks))
        .where(
            ClickDay.site_id.in_(span.site_ids),
            ClickDay.day.between(span.first, span.last),
            ClickDay.document_id.in_(document_ids),
        )
        .group_by(ClickDay.document_id)
    )
    return {document_id: int(clicks) for document_id, clicks in rows}


def sites_of(session: Session, account_id: int, site_id: int | None) -> tuple[int, ...]:
    """Return the IDs of the sites that a report covers: one site, or all sites of an account that are not deleted."""
    if site_id is not None:
        return (site_id,)
    alive = Site.account_id == account_id, Site.deleted_at.is_(None), Site.searched_sites.is_(None)
    return tuple(session.scalars(select(Site.id).where(*alive).order_by(Site.id)))


QUERIES_OF_CHANNEL = """
    SELECT query, sum(searches) AS searches, sum(zero_results) AS zero_results,
        sum(partial_results) AS partial_results, sum(clicks) AS clicks, sum(clicked_searches) AS clicked_searches,
        sum(positioned_clicks) AS positioned_clicks, sum(click_positions) AS click_positions
    FROM (
        SELECT query, count(*) AS searches, sum(CASE WHEN results_count = 0 THEN 1 ELSE 0 END) AS zero_results,
            sum(CASE WHEN results_count > 0 AND matched = 'some' THEN 1 ELSE 0 END) AS partial_results,
            0 AS clicks, 0 AS clicked_searches, 0 AS positioned_clicks, 0 AS click_positions
        FROM search_events
        WHERE site_id IN ({sites}) AND counted AND channel = :channel AND occurred_at >= :begin AND occurred_at < :end
        GROUP BY query
        UNION ALL
        SELECT query, 0, 0, 0, count(*), count(DISTINCT search_key), count(position), coalesce(sum(position), 0)
        FROM search_clicks
        WHERE site_id IN ({sites}) AND channel = :channel AND occurred_at >= :begin AND occurred_at < :end
        GROUP BY site_id, query
    ) AS parts GROUP BY query
"""
"""SQL for the queries of one channel. It reads the events, because no roll-up has both queries and channels."""


LARGE_SEARCHES = 100_000
"""Minimum number of searches in a cached result, because only large sums are slow. Other results are always current.
"""
LIFETIME = timedelta(seconds=60)
"""Lifetime of a cached result."""
MAX_RESULTS = 64
"""Maximum number of cached results per process; the oldest are dropped first. Each contains up to 4,000 queries."""

T = TypeVar("T")


class RecentResults:
    """A cache of large reports. Thread-safe: each result is computed by one thread at a time."""

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, tuple[datetime, Any]] = OrderedDict()
        self._computing: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], T], searches: Callable[[T], int]) -> T:
        """Return the result cached under ``key``, or compute it.

        Args:
            key: Everything that determines the result, except the data.
            compute: Computes the result. Errors are not cached.
            searches: Returns the number of searches in a result.
        """
        moment = now()
        with self._lock:
            if self._is_fresh(key, moment):
                return self._results[key][1]  # type: ignore[no-any-return]
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            with self._lock:
                if self._is_fresh(key, moment):  # Another thread computed it meanwhile.
                    return self._results[key][1]  # type: ignore[no-any-return]
            try:
                result = compute()
                if searches(result) >= LARGE_SEARCHES:
                    self._keep(key, moment, result)
                return result
            finally:
                with self._lock:
                    self._computing.pop(key, None)

    def _is_fresh(self, key: Hashable, moment: datetime) -> bool:
        # If the clock was set back, a result must not stay cached for longer.
        return key in self._results and abs(moment - self._results[key][0]) < LIFETIME

    def _keep(self, key: Hashable, moment: datetime, result: Any) -> None:
        with self._lock:
            self._results.pop(key, None)
            self._results[key] = moment, result
            while len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)
