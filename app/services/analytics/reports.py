"""Analytics: what was searched, from the roll-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from app import clock
from app.models import ScopeDay, ScopeWindow
from app.models.events import AGENT, CLICK_KINDS, DAY_MICROSECONDS, PERIODS, no_clicks
from app.services.analytics.bulk_sql import execute_rows
from app.services.analytics.origins.reports import (
    QUERIES_OF_CHANNEL,
    ChannelCount,
    ClickedPage,
    PageCount,
    Span,
    channel_days,
    count_channels,
    list_clicked_pages,
    list_pages,
    sites_of,
)
from app.services.analytics.rates import mean, part
from app.services.analytics.rollups import account_scope

LIST_LENGTH = 10
"""Items of the lists of queries, unless more or fewer are asked for."""
EPOCH = date(1970, 1, 1)
LONGEST_SURPLUS = 14
"""Most days of which a window is freed; days of long ago are added up."""
_LOOKED_AT = 64
"""Index entries looked at in one go while a window is being moved on, beyond those that are asked for."""


@dataclass(frozen=True, slots=True)
class QueryCount:
    """A query in normal form and how often it was searched.

    Attributes:
        count: Searches of the kind the list is of.
        clicks: Clicks on its results.
        clicked_searches: Searches with at least one click.
        positioned_clicks: Clicks that told a position.
        click_positions: Those positions added up.
        searches: Searches of every kind.
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
        """Searches with a click, from 0 to 1; ``None`` without searches."""
        return part(self.clicked_searches, self.searches)

    @property
    def average_click_position(self) -> float | None:
        """Mean place among the results of what was clicked, from 1; ``None`` if no click told it."""
        return mean(self.click_positions, self.positioned_clicks)


@dataclass(frozen=True, slots=True)
class DayCount:
    """One UTC day of the series.

    Attributes:
        clicked_searches: Searches with at least one click.
        agent_searches: Those that programs made for somebody, who sees no list to click on.
    """

    date: date
    searches: int
    zero_results: int
    clicks: int = 0
    clicked_searches: int = 0
    agent_searches: int = 0

    @property
    def zero_result_rate(self) -> float | None:
        """Searches that found nothing, from 0 to 1; ``None`` without searches."""
        return part(self.zero_results, self.searches)

    @property
    def click_through_rate(self) -> float | None:
        """Searches with a click, from 0 to 1; ``None`` without searches."""
        return part(self.clicked_searches, self.searches - self.agent_searches)


@dataclass(frozen=True, slots=True)
class Totals:
    """Searches and clicks of a number of days.

    Attributes:
        total_searches: Searches and search-log entries, keystrokes merged.
        zero_results: Those that found nothing.
        measured_searches: Those the service ran.
        response_ms: How long they took, added up.
        clicks: Clicks on results.
        clicked_searches: Searches with at least one click.
        positioned_clicks: Clicks that told a position.
        click_positions: Those positions added up.
        mixed_searches: Searches whose hits were ordered by meaning, too.
        agent_searches: Searches that programs made for somebody, who sees no list to click on.
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
        """Rounded mean over the searches that the service ran, 0 if none."""
        count = self.measured_searches
        return (2 * self.response_ms + count) // (2 * count) if count else 0

    @property
    def zero_result_rate(self) -> float | None:
        """Searches that found nothing, from 0 to 1; ``None`` without searches."""
        return part(self.zero_results, self.total_searches)

    @property
    def click_through_rate(self) -> float | None:
        """Searches with a click, from 0 to 1; ``None`` without searches."""
        return part(self.clicked_searches, self.total_searches - self.agent_searches)

    @property
    def average_click_position(self) -> float | None:
        """Mean place among the results of what was clicked, from 1; ``None`` if no click told it."""
        return mean(self.click_positions, self.positioned_clicks)


@dataclass(frozen=True, slots=True)
class Analytics:
    """Searches in a window of UTC calendar days.

    Attributes:
        totals: Those of the window.
        previous: Those of as many days before it.
        unique_queries: Different normal forms searched.
        top_queries: By count, then text.
        zero_result_queries: The same of searches that found nothing; counts are of those only.
        partial_queries: The same of searches of which no document has every word; counts are of those only.
        no_click_queries: The same of queries that had results and no click.
        series: One entry per day, oldest first.
        channels: Searches and clicks by channel, of those since channels are told apart.
        clicked_pages: Documents by clicks; empty unless asked for.
        pages: Pages by searches from them; empty unless asked for.
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

    @property
    def from_date(self) -> date:
        """The first day."""
        return self.series[0].date

    @property
    def to_date(self) -> date:
        """The last day."""
        return self.series[-1].date

    @property
    def total_searches(self) -> int:
        """Searches of the window."""
        return self.totals.total_searches

    @property
    def avg_response_time_ms(self) -> int:
        """Their rounded mean response time, 0 if none was measured."""
        return self.totals.avg_response_time_ms

    @property
    def measured_searches(self) -> int:
        """Searches whose response time was measured."""
        return self.totals.measured_searches


@dataclass(frozen=True, slots=True)
class _Ranking:
    """One of the lists of queries.

    Attributes:
        kind: What counts and is ranked by, of ``QUERY_KINDS``.
        condition: Which queries are in it, as SQL; takes the suffix of the columns.
        holds: The same in Python.
    """

    kind: str
    condition: Callable[[str], str]
    holds: Callable[[Mapping[str, int]], bool]


def _ranking_of(kind: str) -> _Ranking:
    return _Ranking(kind, lambda suffix: f"{kind}{suffix} > 0", lambda counts: counts[kind] > 0)


_SEARCHED, _ZERO_RESULTS, _PARTIAL = map(_ranking_of, ("searches", "zero_results", "partial_results"))
_NO_CLICKS = _Ranking(
    "searches", no_clicks, lambda counts: counts["clicks"] == 0 and counts["searches"] > counts["zero_results"]
)
_RANKINGS = (_SEARCHED, _ZERO_RESULTS, _PARTIAL, _NO_CLICKS)
_TOLD = ("searches", "zero_results", "partial_results", *CLICK_KINDS)
"""What is read of each query that may be listed."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Days ``first`` to ``last`` of a site, or of all sites of an account.

    Attributes:
        period: The window of the roll-ups that holds them; ``None`` if none does.
        channel: The channel that is asked for; ``None`` for all.
    """

    scope: int
    account_id: int
    site_id: int | None
    period: int | None
    first: int
    last: int
    channel: str | None = None

    @property
    def starts(self) -> str:
        """The rows of ``window_starts`` that belong to it, as SQL."""
        one_site = "" if self.site_id is None else " AND site_id = :site_id"
        return f"SELECT * FROM window_starts WHERE account_id = :account_id AND period = :period{one_site}"  # noqa: S608

    @property
    def parameters(self) -> dict[str, int]:
        """Values of the parameters in SQL."""
        values = {
            "account_id": self.account_id,
            "period": self.period or PERIODS[0],  # Each site has a row for each period.
            "first": self.first,
            "last": self.last,
        }
        return values if self.site_id is None else values | {"site_id": self.site_id}


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
) -> Analytics:
    """The analytics of one site or of all sites of an account, exact to the last event moved.

    Args:
        account_id: The caller's account.
        period_days: UTC calendar days including the last one. 7, 30, and 90 up to the current day are in roll-ups;
            others, and those of one channel, are added up.
        site_id: A site of the account (which the caller has made sure of); ``None``: all its sites.
        today: The window's last day; the current UTC day if not given.
        limit: Most items of each list.
        channel: Of ``CHANNELS``; ``None`` for all. The lists of queries are without agents' searches then.
        details: Whether pages and clicked pages are wanted, too.
    """
    if period_days < 1:
        raise ValueError("period_days must be at least 1")
    last = ((today or clock.today()) - EPOCH).days
    scope = account_scope(account_id) if site_id is None else site_id
    period = period_days if channel is None and period_days in PERIODS else None
    window = _Window(scope, account_id, site_id, period, last - period_days + 1, last, channel)
    with snapshot(session) as session:
        span = Span(sites_of(session, account_id, site_id), window.first - period_days, last, channel)
        origins = channel_days(session, span)
        days: Iterable[Any] = (
            session.scalars(
                select(ScopeDay).where(ScopeDay.scope == scope, ScopeDay.day.between(span.first, span.last))
            ).all()
            if channel is None
            else origins.get(channel, {}).values()
        )
        unique, (top, zero_results, partial, no_click) = _query_counts(session, window, limit)
        span = replace(span, first=window.first)
        clicked_pages = list_clicked_pages(session, span, limit) if details else ()
        pages = list_pages(session, span, limit) if details else ()
    agents = {day: int(row.searches) for day, row in origins.get(AGENT, {}).items() if channel in (None, AGENT)}
    of_window = {day.day: day for day in days if day.day >= window.first}
    return Analytics(
        _totals(of_window.values(), agents),
        _totals((day for day in days if day.day < window.first), agents),
        unique,
        top,
        zero_results,
        partial,
        no_click,
        series=[
            _count_day(day, of_window.get(day), agents.get(day, 0)) for day in range(window.first, window.last + 1)
        ],
        channels=count_channels(origins, window.first),
        clicked_pages=clicked_pages,
        pages=pages,
    )


def _count_day(day: int, numbers: Any, agents: int) -> DayCount:
    kinds = ("searches", "zero_results", "clicks", "clicked_searches")
    counts = [0 if numbers is None else int(getattr(numbers, kind)) for kind in kinds]
    return replace(DayCount(EPOCH + timedelta(days=day), *counts), agent_searches=agents)


def _totals(days: Iterable[Any], agents: Mapping[int, int]) -> Totals:
    """Numbers of days, each of which has ``SCOPE_KINDS``."""
    kinds = ("searches", "zero_results", "responses", "response_ms", *CLICK_KINDS, "mixed_searches")
    days = list(days)
    numbers = [int(sum(getattr(day, kind) for day in days)) for kind in kinds]
    return replace(Totals(*numbers), agent_searches=sum(agents.get(day.day, 0) for day in days))


@contextmanager
def snapshot(session: Session) -> Iterator[Session]:
    """A session whose statements all see the same state: on SQLite any, on PostgreSQL one of its own."""
    bind = session.get_bind()
    if bind.dialect.name == "sqlite":
        yield session
        return
    with Session(bind.engine.execution_options(isolation_level="REPEATABLE READ")) as fresh:
        yield fresh


def _query_counts(session: Session, window: _Window, limit: int) -> tuple[int, list[list[QueryCount]]]:
    """Different queries, and the lists of ``_RANKINGS``."""
    if window.period is None or _is_ahead(session, window):
        return _add_up(session, window, limit)
    surplus = _surplus(session, window)
    if len({day for _, day, _ in surplus}) > LONGEST_SURPLUS:
        return _add_up(session, window, limit)
    unique = session.scalar(
        select(getattr(ScopeWindow, f"queries_{window.period}")).where(ScopeWindow.scope == window.scope)
    )
    if surplus:
        vanished, unclicked = _only_surplus(session, window, surplus, limit)
        return (unique or 0) - vanished, [
            _top_without(session, window, surplus, ranking, limit, unclicked if ranking is _NO_CLICKS else ())
            for ranking in _RANKINGS
        ]
    return unique or 0, [
        [_query_count(query, ranking, counts) for query, counts in _ranked(session, window, ranking, limit)]
        for ranking in _RANKINGS
    ]


def _query_count(query: str, ranking: _Ranking, counts: Mapping[str, int]) -> QueryCount:
    clicks = {kind: counts[kind] for kind in CLICK_KINDS}
    return QueryCount(query, counts[ranking.kind], **clicks, searches=counts["searches"])


def _ranked(
    session: Session, window: _Window, ranking: _Ranking, limit: int, offset: int = 0
) -> list[tuple[str, dict[str, int]]]:
    """Queries of a window in the order of a ranking, each with ``_TOLD``."""
    suffix = f"_{window.period}"
    rows = session.execute(
        text(
            f"""
            SELECT query, {", ".join(kind + suffix for kind in _TOLD)} FROM query_windows
            WHERE scope = :scope AND {ranking.condition(suffix)}
            ORDER BY {ranking.kind}{suffix} DESC, query LIMIT :limit OFFSET :offset
            """  # noqa: S608 - made of constants
        ),
        {"scope": window.scope, "limit": limit, "offset": offset},
    )
    return [(query, dict(zip(_TOLD, counts, strict=True))) for query, *counts in rows]


# A window in ``query_windows`` that has not been moved on yet, or holds events of tomorrow (a client's clock may be
# ahead), has a surplus: whole days that are not asked for. It is subtracted here.

_Part = tuple[int, int, str]
"""Rows of ``query_days`` that are surplus: site, day, and the query after which they begin."""


def _surplus(session: Session, window: _Window) -> list[_Part]:
    found = session.execute(
        text(
            f"""
            SELECT site_id, scope_days.day, CASE WHEN scope_days.day = starts.day THEN starts.query ELSE '' END
            FROM ({window.starts}) AS starts JOIN scope_days ON scope = site_id
            WHERE scope_days.day >= starts.day AND scope_days.day < :first
            UNION ALL
            SELECT site_id, scope_days.day, ''
            FROM ({window.starts}) AS starts JOIN scope_days ON scope = site_id
            WHERE scope_days.day > :last
            """  # noqa: S608 - made of constants
        ),
        window.parameters,
    )
    return [(site_id, day, query) for site_id, day, query in found]


def _top_without(
    session: Session,
    window: _Window,
    surplus: Sequence[_Part],
    ranking: _Ranking,
    limit: int,
    others: Sequence[tuple[str, dict[str, int]]],
) -> list[QueryCount]:
    """The top of a ranking when the surplus is gone.

    Counts only get smaller by it, so once enough corrected ones rank before the entry looked at last, no later entry
    can come between them.

    Args:
        others: Queries that are in the ranking only when the surplus is gone.
    """
    best: list[QueryCount] = []

    def add(entries: Sequence[tuple[str, dict[str, int]]]) -> None:
        gone = _surplus_of(session, [query for query, _ in entries], surplus)
        for query, counts in entries:
            without = {kind: count - gone[query][kind] for kind, count in counts.items()} if query in gone else counts
            if ranking.holds(without):
                best.append(_query_count(query, ranking, without))
        best.sort(key=lambda item: (-item.count, item.query))
        del best[limit:]

    if others:
        add(others)
    step = limit + _LOOKED_AT
    offset = 0
    while entries := _ranked(session, window, ranking, step, offset):
        add(entries)
        query, counts = entries[-1]
        if len(best) == limit and (-best[-1].count, best[-1].query) <= (-counts[ranking.kind], query):
            break
        offset += step
    return best


def _surplus_of(session: Session, queries: Sequence[str], surplus: Sequence[_Part]) -> dict[str, dict[str, int]]:
    """The surplus of ``_TOLD``, by query."""
    rows = execute_rows(
        session,
        f"""
        SELECT query_days.query, {", ".join(f"sum(query_days.{kind})" for kind in _TOLD)}
        FROM {{rows}} AS part CROSS JOIN query_days
        WHERE query_days.site_id = part.site_id AND query_days.day = part.day AND query_days.query = part.query
        GROUP BY query_days.query
        """,  # noqa: S608 - made of constants
        "site_id:int day:int query:text",
        [(site_id, day, query) for site_id, day, after_query in surplus for query in queries if query > after_query],
    )
    return {query: dict(zip(_TOLD, map(int, counts), strict=True)) for query, *counts in rows}


def _only_surplus(
    session: Session, window: _Window, surplus: Sequence[_Part], limit: int
) -> tuple[int, list[tuple[str, dict[str, int]]]]:
    """Queries of a window of which only the surplus has something; both are found in one walk through the surplus.

    Returns:
        How many were searched in the surplus only; and those that go on without clicks, since only the surplus has
        any, most searched without it first, at most ``limit``.
    """
    suffix = f"_{window.period}"
    rows = execute_rows(
        session,
        f"""
        WITH surplus AS (
            SELECT query_days.query, sum(query_days.searches) AS searches,
                sum(query_days.zero_results) AS zero_results, sum(query_days.clicks) AS clicks
            FROM {{rows}} AS part CROSS JOIN query_days
            WHERE query_days.site_id = part.site_id AND query_days.day = part.day
                AND query_days.query > part.after_query
            GROUP BY query_days.query
        ), changed AS (
            SELECT held.query, {", ".join(f"held.{kind}{suffix} AS {kind}" for kind in _TOLD)},
                held.searches{suffix} - surplus.searches AS kept
            FROM surplus CROSS JOIN query_windows AS held
            WHERE held.scope = :scope AND held.query = surplus.query AND (
                surplus.searches > 0 AND surplus.searches = held.searches{suffix}
                OR surplus.clicks > 0 AND surplus.clicks = held.clicks{suffix}
                AND held.searches{suffix} - surplus.searches > held.zero_results{suffix} - surplus.zero_results
            )
        )
        SELECT NULL AS query, count(*) AS kept, {", ".join(f"0 AS {kind}" for kind in _TOLD)}
        FROM changed WHERE kept = 0
        UNION ALL
        SELECT query, kept, {", ".join(_TOLD)} FROM (
            SELECT * FROM changed WHERE kept > 0 ORDER BY kept DESC, query LIMIT :limit
        ) AS first
        """,  # noqa: S608 - made of constants
        "site_id:int day:int after_query:text",
        surplus,
        scope=window.scope,
        limit=limit,
    ).all()
    (vanished,) = (kept for query, kept, *_ in rows if query is None)
    unclicked = [(query, dict(zip(_TOLD, counts, strict=True))) for query, _, *counts in rows if query is not None]
    return int(vanished), unclicked


# A window that another machine, whose clock is ahead, has moved on already lacks a day. Then, and only then, the days
# are added up anew.


def _is_ahead(session: Session, window: _Window) -> bool:
    found = session.execute(
        text(f"SELECT 1 FROM ({window.starts}) AS starts WHERE day > :first OR day = :first AND query > '' LIMIT 1"),  # noqa: S608
        window.parameters,
    )
    return found.first() is not None


def _add_up(session: Session, window: _Window, limit: int) -> tuple[int, list[list[QueryCount]]]:
    sites = f"SELECT site_id FROM ({window.starts}) AS starts"  # noqa: S608 - made of constants
    told = ", ".join(f"CAST(sum({kind}) AS bigint) AS {kind}" for kind in _TOLD)
    if window.channel is None:
        source = f"SELECT * FROM query_days WHERE site_id IN ({sites}) AND day BETWEEN :first AND :last"  # noqa: S608
    else:
        source = QUERIES_OF_CHANNEL.format(sites=sites)

    def rows(selection: str, **parameters: int) -> Sequence[Row[*tuple[Any, ...]]]:
        statement = f"""
            WITH counts AS (SELECT query, {told} FROM ({source}) AS numbers GROUP BY query)
            {selection}
        """  # noqa: S608 - made of constants
        bounds = {
            "channel": window.channel,
            "begin": window.first * DAY_MICROSECONDS,
            "end": (window.last + 1) * DAY_MICROSECONDS,
        }
        return session.execute(text(statement), window.parameters | bounds | parameters).all()

    def top(ranking: _Ranking) -> list[QueryCount]:
        found = rows(
            f"""
            SELECT query, {", ".join(_TOLD)} FROM counts WHERE {ranking.condition("")}
            ORDER BY {ranking.kind} DESC, query LIMIT :limit
            """,  # noqa: S608 - made of constants
            limit=limit,
        )
        return [_query_count(query, ranking, dict(zip(_TOLD, counts, strict=True))) for query, *counts in found]

    unique = rows("SELECT count(*) FROM counts WHERE searches > 0")[0][0]
    return unique, [top(ranking) for ranking in _RANKINGS]
