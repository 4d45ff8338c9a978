"""Roll-ups: counted events added up per day, and per query over the three windows of the analytics.

The tables (see ``app.models.events``):

- ``scope_days`` and ``query_days`` add up one UTC day each.
- ``query_windows`` adds up 7, 30 and 90 days per query, indexed by count, so that the most frequent queries of
  ten million events are ten index entries.
- ``window_starts`` says which days a site's windows hold: all after one point in the order of (day, query). Every
  change keeps ``query_windows`` equal to the sum of ``query_days`` after that point. Moving the point on to today
  minus 7, 30 or 90 days (:func:`age_windows`) takes what fell out in chunks; whoever reads in between subtracts
  the rest itself (``app.services.analytics.reports``). So the answer is exact whenever the work is done.

Everything here runs under :func:`lock_accounts`: one writer per account at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.orm import Session

from app.models import QueryWindow, ScopeWindow, WindowStart
from app.models.events import PERIODS
from app.services.analytics.bulk_sql import execute_rows
from app.storage.database import Database

AGEING_STEP = 500
"""Rows that one transaction takes out of a window."""
_ADVISORY_CLASS = 0x5EA4C4
_BUCKETS = 32

Point = tuple[int, str]
"""A place in the order of (day, query)."""


def account_scope(account_id: int) -> int:
    """The scope of all sites of an account; a site's scope is its id."""
    return -account_id


@dataclass(slots=True)
class Changes:
    """What is to be added to (or taken from) the roll-ups."""

    days: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    """(site, day) to searches, zero-result searches, searches the service ran, their milliseconds."""
    queries: dict[tuple[int, int, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """(site, day, query) to searches, zero-result searches."""

    def add(
        self, site_id: int, day: int, query: str, results_count: int, response_ms: int | None, *, sign: int = 1
    ) -> None:
        """Count one event, or with ``sign=-1`` count it no longer."""
        zero = sign if results_count == 0 else 0
        totals = self.days[site_id, day]
        totals[0] += sign
        totals[1] += zero
        if response_ms is not None:
            totals[2] += sign
            totals[3] += sign * response_ms
        counts = self.queries[site_id, day, query]
        counts[0] += sign
        counts[1] += zero


def lock_accounts(session: Session, account_ids: Iterable[int]) -> None:
    """Make this transaction the only one that changes these accounts' roll-ups.

    SQLite has one writer anyway. PostgreSQL takes a few advisory locks, always in the same order, so that flushers
    of many processes queue up instead of dead-locking.
    """
    if session.get_bind().dialect.name == "sqlite":
        return
    for bucket in sorted({account_id % _BUCKETS for account_id in account_ids}):
        session.execute(
            text("SELECT pg_advisory_xact_lock(:class, :bucket)"), {"class": _ADVISORY_CLASS, "bucket": bucket}
        )


def apply_changes(session: Session, accounts: Mapping[int, int], changes: Changes, today: int) -> None:
    """Add ``changes`` to all roll-ups.

    Args:
        accounts: The account of each site in ``changes``, locked by :func:`lock_accounts`.
        today: The current UTC day; where windows of a site without any begin.
    """
    _add_to_scope_days(session, accounts, changes)
    queries = {key: counts for key, counts in changes.queries.items() if any(counts)}
    _add_to_query_days(session, queries)
    starts = _window_starts(session, accounts, {site_id for site_id, _, _ in queries}, today)
    windows: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0] * 6)
    for (site_id, day, query), (searches, zero_results) in queries.items():
        for index, period in enumerate(PERIODS):
            if (day, query) > starts[site_id, period]:
                for scope in (site_id, account_scope(accounts[site_id])):
                    counts = windows[scope, query]
                    counts[index] += searches
                    counts[3 + index] += zero_results
    change_windows(session, windows)


def _add_to_scope_days(session: Session, accounts: Mapping[int, int], changes: Changes) -> None:
    totals: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (site_id, day), numbers in changes.days.items():
        for scope in (site_id, account_scope(accounts[site_id])):
            totals[scope, day] = [a + b for a, b in zip(totals[scope, day], numbers, strict=True)]
    rows = [(*key, *numbers) for key, numbers in sorted(totals.items()) if any(numbers)]
    if rows:
        execute_rows(
            session,
            """
            INSERT INTO scope_days (scope, day, searches, zero_results, responses, response_ms)
            SELECT scope, day, searches, zero_results, responses, response_ms FROM {rows} AS changed WHERE true
            ON CONFLICT (scope, day) DO UPDATE SET
                searches = scope_days.searches + excluded.searches,
                zero_results = scope_days.zero_results + excluded.zero_results,
                responses = scope_days.responses + excluded.responses,
                response_ms = scope_days.response_ms + excluded.response_ms
            """,
            "scope:int day:int searches:int zero_results:int responses:int response_ms:int",
            rows,
        )


def _add_to_query_days(session: Session, queries: Mapping[tuple[int, int, str], list[int]]) -> None:
    rows = [(*key, *counts) for key, counts in sorted(queries.items())]
    if not rows:
        return
    columns = "site_id:int day:int query:text searches:int zero_results:int"
    execute_rows(
        session,
        """
        INSERT INTO query_days (site_id, day, query, searches, zero_results)
        SELECT site_id, day, query, searches, zero_results FROM {rows} AS changed WHERE true
        ON CONFLICT (site_id, day, query) DO UPDATE SET
            searches = query_days.searches + excluded.searches,
            zero_results = query_days.zero_results + excluded.zero_results
        """,
        columns,
        rows,
    )
    lessened = [key for key, counts in sorted(queries.items()) if counts[0] < 0]
    if lessened:
        execute_rows(
            session,
            """
            DELETE FROM query_days
            WHERE (site_id, day, query) IN (SELECT site_id, day, query FROM {rows} AS lessened) AND searches = 0
            """,
            "site_id:int day:int query:text",
            lessened,
        )


def _window_starts(
    session: Session, accounts: Mapping[int, int], site_ids: set[int], today: int
) -> dict[tuple[int, int], Point]:
    """Where the windows of these sites begin, by (site, period); new ones are made."""
    found = session.scalars(select(WindowStart).where(WindowStart.site_id.in_(site_ids)))
    starts: dict[tuple[int, int], Point] = {(row.site_id, row.period): (row.day, row.query) for row in found}
    wanted = [(site_id, period) for site_id in sorted(site_ids) for period in PERIODS]
    for site_id, period in wanted:
        if (site_id, period) in starts:
            continue
        day = today - period + 1
        session.execute(
            insert(WindowStart).values(site_id=site_id, period=period, account_id=accounts[site_id], day=day, query="")
        )
        starts[site_id, period] = (day, "")
    return starts


_COUNTS = tuple(f"{kind}_{period}" for kind in ("searches", "zero_results") for period in PERIODS)
_COUNT_COLUMNS = " ".join(f"{name}:int" for name in _COUNTS)
_CHANGE_WINDOWS = f"""
    INSERT INTO query_windows (scope, query, {", ".join(_COUNTS)})
    SELECT scope, query, {", ".join(_COUNTS)} FROM {{rows}} AS changed WHERE true
    ON CONFLICT (scope, query) DO UPDATE SET {", ".join(f"{c} = query_windows.{c} + excluded.{c}" for c in _COUNTS)}
    RETURNING scope, query, {", ".join(_COUNTS)}
"""  # noqa: S608 - made of constants


def change_windows(session: Session, windows: Mapping[tuple[int, str], list[int]]) -> None:
    """Add to ``query_windows``, and keep ``scope_windows`` (how many queries have a count) in step.

    Args:
        windows: (scope, query) to what is added: searches in 7, 30, 90 days, zero-result searches in 7, 30, 90.
    """
    rows = [(*key, *counts) for key, counts in sorted(windows.items()) if any(counts)]
    if not rows:
        return
    appeared: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    emptied: list[tuple[int, str]] = []
    for scope, query, *counts in execute_rows(session, _CHANGE_WINDOWS, f"scope:int query:text {_COUNT_COLUMNS}", rows):
        added = windows[scope, query]
        for index in range(3):
            appeared[scope][index] += (counts[index] > 0) - (counts[index] - added[index] > 0)
        if not any(counts):
            emptied.append((scope, query))
    if emptied:
        execute_rows(
            session,
            "DELETE FROM query_windows WHERE (scope, query) IN (SELECT scope, query FROM {rows} AS emptied)",
            "scope:int query:text",
            emptied,
        )
    _add_to_scope_windows(session, appeared)


def _add_to_scope_windows(session: Session, appeared: Mapping[int, list[int]]) -> None:
    rows = [(scope, *numbers) for scope, numbers in sorted(appeared.items()) if any(numbers)]
    if rows:
        execute_rows(
            session,
            """
            INSERT INTO scope_windows (scope, queries_7, queries_30, queries_90)
            SELECT scope, queries_7, queries_30, queries_90 FROM {rows} AS changed WHERE true
            ON CONFLICT (scope) DO UPDATE SET
                queries_7 = scope_windows.queries_7 + excluded.queries_7,
                queries_30 = scope_windows.queries_30 + excluded.queries_30,
                queries_90 = scope_windows.queries_90 + excluded.queries_90
            """,
            "scope:int queries_7:int queries_30:int queries_90:int",
            rows,
        )
        session.execute(
            delete(ScopeWindow).where(
                ScopeWindow.scope.in_([row[0] for row in rows if min(row[1:]) < 0]),
                ScopeWindow.queries_7 == 0,
                ScopeWindow.queries_30 == 0,
                ScopeWindow.queries_90 == 0,
            )
        )


def age_windows(database: Database, today: int) -> bool:
    """Take one chunk of days that are no longer in a window out of it. May run anywhere, at any time.

    Returns:
        Whether there may be more to do.
    """
    with database.read() as session:
        late = session.execute(
            text(
                """
                SELECT site_id, period FROM window_starts
                WHERE day < :today - period + 1 AND EXISTS (
                    SELECT 1 FROM scope_days
                    WHERE scope = site_id AND scope_days.day >= window_starts.day
                        AND scope_days.day < :today - period + 1
                )
                LIMIT 1
                """
            ),
            {"today": today},
        ).first()
    if late is None:
        return False
    with database.write() as session:
        age_site(session, late.site_id, late.period, today)
    return True


def age_site(session: Session, site_id: int, period: int, today: int, *, step: int = AGEING_STEP) -> bool:
    """Take up to ``step`` rows that are no longer in one window of a site out of it.

    Returns:
        Whether it did anything.
    """
    start = session.get(WindowStart, (site_id, period))
    if start is None:
        return False
    lock_accounts(session, [start.account_id])
    session.refresh(start)
    first_day = today - period + 1
    if start.day >= first_day:
        return False
    rows = session.execute(
        text(
            """
            SELECT day, query, searches, zero_results FROM query_days
            WHERE site_id = :site_id AND (day, query) > (:day, :query) AND day < :first_day
            ORDER BY day, query LIMIT :step
            """
        ),
        {"site_id": site_id, "day": start.day, "query": start.query, "first_day": first_day, "step": step},
    ).all()
    index = PERIODS.index(period)
    windows: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0] * 6)
    for _, query, searches, zero_results in rows:
        for scope in (site_id, account_scope(start.account_id)):
            windows[scope, query][index] -= searches
            windows[scope, query][3 + index] -= zero_results
    change_windows(session, windows)
    point = (rows[-1].day, rows[-1].query) if len(rows) == step else (first_day, "")
    session.execute(
        update(WindowStart)
        .where(WindowStart.site_id == site_id, WindowStart.period == period)
        .values(day=point[0], query=point[1])
    )
    return True


def rebuild_windows(session: Session, account_id: int, today: int) -> None:
    """Add an account's windows up anew from its days, in one go: after a bulk load or a repair.

    Args:
        session: A write transaction, nothing else done in it; other writers wait until it ends.
        today: The current UTC day; windows end there and hold what comes after, too.
    """
    lock_accounts(session, [account_id])
    session.expire_all()
    starts = session.scalars(select(WindowStart).where(WindowStart.account_id == account_id)).all()
    sites = sorted({start.site_id for start in starts})
    for start in starts:
        start.day, start.query = today - start.period + 1, ""
    session.flush()
    session.execute(delete(QueryWindow).where(QueryWindow.scope.in_([account_scope(account_id), *sites])))
    session.execute(delete(ScopeWindow).where(ScopeWindow.scope.in_([account_scope(account_id), *sites])))
    columns = ", ".join(_COUNTS)
    sums = ", ".join(
        f"sum(CASE WHEN day > {today - period} THEN {kind} ELSE 0 END)"
        for kind in ("searches", "zero_results")
        for period in PERIODS
    )
    different = ", ".join(f"sum(CASE WHEN searches_{period} > 0 THEN 1 ELSE 0 END)" for period in PERIODS)
    for site_id in sites:
        session.execute(
            text(
                f"""
                INSERT INTO query_windows (scope, query, {columns})
                SELECT site_id, query, {sums} FROM query_days
                WHERE site_id = :site_id AND day > {today - max(PERIODS)} GROUP BY site_id, query
                """  # noqa: S608 - made of constants and numbers
            ),
            {"site_id": site_id},
        )
    session.execute(
        text(
            f"""
            INSERT INTO query_windows (scope, query, {columns})
            SELECT :account, query, {", ".join(f"sum({name})" for name in _COUNTS)} FROM query_windows
            WHERE scope IN (SELECT site_id FROM window_starts WHERE account_id = :account_id) GROUP BY query
            """  # noqa: S608 - made of constants
        ),
        {"account": account_scope(account_id), "account_id": account_id},
    )
    session.execute(
        text(
            f"""
            INSERT INTO scope_windows (scope, queries_7, queries_30, queries_90)
            SELECT scope, {different} FROM query_windows
            WHERE scope = :account OR scope IN (SELECT site_id FROM window_starts WHERE account_id = :account_id)
            GROUP BY scope
            """  # noqa: S608 - made of constants
        ),
        {"account": account_scope(account_id), "account_id": account_id},
    )
