"""Analytics: what was searched, from the roll-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from app import clock
from app.models import ScopeDay, ScopeWindow
from app.models.events import PERIODS
from app.services.analytics.bulk_sql import execute_rows
from app.services.analytics.rates import mean, part
from app.services.analytics.rollups import account_scope

LIST_LENGTH = 10
"""Items of the two lists of queries."""
_EPOCH = date(1970, 1, 1)
_LOOKED_AT = 64
"""Index entries looked at in one go while a window is being moved on."""


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
    """One UTC day of the series."""

    date: date
    searches: int
    zero_results: int


@dataclass(frozen=True, slots=True)
class Analytics:
    """What was searched in a window of UTC calendar days.

    Attributes:
        total_searches: Searches and search-log entries, keystrokes merged.
        unique_queries: Different normal forms among them.
        avg_response_time_ms: Rounded mean over those the service ran, 0 if none.
        measured_searches: How many those are.
        top_queries: At most ten, by count, then text.
        zero_result_queries: The same of searches that found nothing; counts are of those only.
        series: One entry per day, oldest first.
    """

    total_searches: int
    unique_queries: int
    avg_response_time_ms: int
    measured_searches: int
    top_queries: Sequence[QueryCount]
    zero_result_queries: Sequence[QueryCount]
    series: Sequence[DayCount]


@dataclass(frozen=True, slots=True)
class _Window:
    """Days ``first`` to ``last`` of a site, or of all sites of an account."""

    scope: int
    account_id: int
    site_id: int | None
    period: int
    first: int
    last: int

    @property
    def starts(self) -> str:
        """The rows of ``window_starts`` that belong to it, as SQL."""
        one_site = "" if self.site_id is None else " AND site_id = :site_id"
        return f"SELECT * FROM window_starts WHERE account_id = :account_id AND period = :period{one_site}"  # noqa: S608

    @property
    def parameters(self) -> dict[str, int]:
        """Values of the parameters in SQL."""
        values = {"account_id": self.account_id, "period": self.period, "first": self.first, "last": self.last}
        return values if self.site_id is None else values | {"site_id": self.site_id}


def get_analytics(
    session: Session, account_id: int, period_days: int, *, site_id: int | None = None, today: date | None = None
) -> Analytics:
    """The analytics of one site or of all sites of an account, exact to the last event moved.

    Args:
        account_id: The caller's account.
        period_days: 7, 30 or 90 UTC calendar days including today.
        site_id: A site of the account (which the caller has made sure of); ``None``: all its sites.
        today: The window's last day; the current UTC day if not given.
    """
    if period_days not in PERIODS:
        raise ValueError(f"period_days must be one of {PERIODS}")
    last = ((today or clock.today()) - _EPOCH).days
    scope = account_scope(account_id) if site_id is None else site_id
    window = _Window(scope, account_id, site_id, period_days, last - period_days + 1, last)
    with _snapshot(session) as session:
        days = {
            day.day: day
            for day in session.scalars(
                select(ScopeDay).where(ScopeDay.scope == scope, ScopeDay.day.between(window.first, window.last))
            )
        }
        unique, top, zero = _query_counts(session, window)
    responses = sum(day.responses for day in days.values())
    response_ms = sum(day.response_ms for day in days.values())
    return Analytics(
        total_searches=sum(day.searches for day in days.values()),
        unique_queries=unique,
        avg_response_time_ms=(2 * response_ms + responses) // (2 * responses) if responses else 0,
        measured_searches=responses,
        top_queries=top,
        zero_result_queries=zero,
        series=[
            DayCount(
                _EPOCH + timedelta(days=day),
                days[day].searches if day in days else 0,
                days[day].zero_results if day in days else 0,
            )
            for day in range(window.first, window.last + 1)
        ],
    )


@contextmanager
def _snapshot(session: Session) -> Iterator[Session]:
    """A session whose statements all see the same state: on SQLite any, on PostgreSQL one of its own."""
    bind = session.get_bind()
    if bind.dialect.name == "sqlite":
        yield session
        return
    with Session(bind.engine.execution_options(isolation_level="REPEATABLE READ")) as fresh:
        yield fresh


def _query_counts(session: Session, window: _Window) -> tuple[int, list[QueryCount], list[QueryCount]]:
    """Different queries, top queries, zero-result queries."""
    if _is_ahead(session, window):
        return _add_up(session, window)
    surplus = _surplus(session, window)
    if surplus:
        return (
            _unique_without(session, window, surplus),
            _top_without(session, window, surplus, "searches"),
            _top_without(session, window, surplus, "zero_results"),
        )
    unique = session.scalar(
        select(getattr(ScopeWindow, f"queries_{window.period}")).where(ScopeWindow.scope == window.scope)
    )
    return unique or 0, _top(session, window, "searches"), _top(session, window, "zero_results")


def _ranking(kind: str, period: int) -> str:
    column = f"{kind}_{period}"
    return f"""
        SELECT query, {column} AS counted FROM query_windows WHERE scope = :scope AND {column} > 0
        ORDER BY {column} DESC, query LIMIT :limit OFFSET :offset
    """  # noqa: S608 - made of constants


def _ranked(
    session: Session, window: _Window, kind: str, limit: int, offset: int = 0
) -> Sequence[Row[*tuple[Any, ...]]]:
    return session.execute(
        text(_ranking(kind, window.period)), {"scope": window.scope, "limit": limit, "offset": offset}
    ).all()


def _top(session: Session, window: _Window, kind: str) -> list[QueryCount]:
    return [QueryCount(query, count) for query, count in _ranked(session, window, kind, LIST_LENGTH)]


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


def _unique_without(session: Session, window: _Window, surplus: Sequence[_Part]) -> int:
    """How many queries still have a count when the surplus is gone."""
    only_surplus = execute_rows(
        session,
        f"""
        SELECT count(*) FROM (
            SELECT query_days.query, sum(query_days.searches) AS searches
            FROM {{rows}} AS part CROSS JOIN query_days
            WHERE query_days.site_id = part.site_id AND query_days.day = part.day
                AND query_days.query > part.after_query
            GROUP BY query_days.query
        ) AS surplus
        WHERE searches = (
            SELECT searches_{window.period} FROM query_windows
            WHERE query_windows.scope = :scope AND query_windows.query = surplus.query
        )
        """,  # noqa: S608 - made of constants
        "site_id:int day:int after_query:text",
        surplus,
        scope=window.scope,
    ).scalar_one()
    held = session.scalar(
        select(getattr(ScopeWindow, f"queries_{window.period}")).where(ScopeWindow.scope == window.scope)
    )
    return (held or 0) - int(only_surplus)


def _top_without(session: Session, window: _Window, surplus: Sequence[_Part], kind: str) -> list[QueryCount]:
    """The top of the ranking when the surplus is gone.

    Counts only get smaller by it, so once ten corrected ones rank before the entry looked at last, no later entry
    can come between them.
    """
    best: list[QueryCount] = []
    offset = 0
    while True:
        entries = _ranked(session, window, kind, _LOOKED_AT, offset)
        if not entries:
            return best
        gone = _surplus_of(session, [query for query, _ in entries], surplus, kind)
        corrected = [QueryCount(query, count - gone.get(query, 0)) for query, count in entries]
        best = sorted((*best, *(item for item in corrected if item.count)), key=lambda item: (-item.count, item.query))
        best = best[:LIST_LENGTH]
        query, count = entries[-1]
        if len(best) == LIST_LENGTH and (-best[-1].count, best[-1].query) <= (-count, query):
            return best
        offset += _LOOKED_AT


def _surplus_of(session: Session, queries: Sequence[str], surplus: Sequence[_Part], kind: str) -> dict[str, int]:
    rows = execute_rows(
        session,
        f"""
        SELECT query_days.query, sum(query_days.{kind})
        FROM {{rows}} AS part CROSS JOIN query_days
        WHERE query_days.site_id = part.site_id AND query_days.day = part.day AND query_days.query = part.query
        GROUP BY query_days.query
        """,  # noqa: S608 - made of constants
        "site_id:int day:int query:text",
        [(site_id, day, query) for site_id, day, after_query in surplus for query in queries if query > after_query],
    )
    return {query: int(count) for query, count in rows}


# A window that another machine, whose clock is ahead, has moved on already lacks a day. Then, and only then, the days
# are added up anew.


def _is_ahead(session: Session, window: _Window) -> bool:
    found = session.execute(
        text(f"SELECT 1 FROM ({window.starts}) AS starts WHERE day > :first OR day = :first AND query > '' LIMIT 1"),  # noqa: S608
        window.parameters,
    )
    return found.first() is not None


def _add_up(session: Session, window: _Window) -> tuple[int, list[QueryCount], list[QueryCount]]:
    def rows(selection: str) -> Sequence[Row[*tuple[Any, ...]]]:
        statement = f"""
            WITH counts AS (
                SELECT query, sum(searches) AS searches, sum(zero_results) AS zero_results
                FROM query_days WHERE site_id IN (SELECT site_id FROM ({window.starts}) AS starts)
                    AND day BETWEEN :first AND :last
                GROUP BY query
            )
            {selection}
        """  # noqa: S608 - made of constants
        return session.execute(text(statement), window.parameters | {"limit": LIST_LENGTH}).all()

    unique = rows("SELECT count(*), CAST(:limit AS bigint) FROM counts")[0][0]
    top, zero = (
        [
            QueryCount(query, int(count))
            for query, count in rows(
                f"SELECT query, {kind} FROM counts WHERE {kind} > 0 ORDER BY {kind} DESC, query LIMIT :limit"  # noqa: S608
            )
        ]
        for kind in ("searches", "zero_results")
    )
    return int(unique), top, zero
