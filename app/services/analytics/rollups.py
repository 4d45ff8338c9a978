"""Roll-ups: counted events added up per day, and per query over the three windows of the analytics.

The tables (see ``app.models.events``):

- ``scope_days``, ``query_days``, ``click_days`` and ``click_anchor_days`` add up one UTC day each; ``query_visits``
  keeps visitors apart (``app.services.analytics.visits``).
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
from typing import Protocol

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.orm import Session

from app.models import QueryWindow, ScopeWindow, WindowStart
from app.models.events import AGENT, LONGEST_PERIOD, PARTIAL, PERIODS, QUERY_KINDS, SCOPE_KINDS
from app.services.analytics.bulk_sql import execute_rows, integers, upsert
from app.services.analytics.clicks import document_key
from app.services.analytics.origins.days import Origins, change_origin_days
from app.services.analytics.visits import Visit, change_visits
from app.storage.database import Database

AGEING_STEP = 500
"""Rows that one transaction takes out of a window."""
_ADVISORY_CLASS = 0x5EA4C4
_BUCKETS = 32

ClickKey = tuple[int, int, str, str]
"""Site, day, query, and document of clicks."""
Point = tuple[int, str]
"""A place in the order of (day, query)."""


class CountedSearch(Protocol):
    """A search that is counted: one that is being moved, or one that is stored."""

    site_id: int
    query: str
    results_count: int
    response_ms: int | None
    matched: str | None
    visitor: int | None
    channel: str | None
    page: str | None
    mixed: bool


def account_scope(account_id: int) -> int:
    """The scope of all sites of an account; a site's scope is its id."""
    return -account_id


_SCOPE_PLACES = {kind: place for place, kind in enumerate(SCOPE_KINDS)}
_QUERY_PLACES = {kind: place for place, kind in enumerate(QUERY_KINDS)}


@dataclass(slots=True)
class Changes:
    """Changes to be added to (or taken from) the roll-ups."""

    days: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * len(SCOPE_KINDS)))
    """(site, day) to a number for each of ``SCOPE_KINDS``."""
    queries: dict[tuple[int, int, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0] * len(QUERY_KINDS))
    )
    """(site, day, query) to a number for each of ``QUERY_KINDS``."""
    documents: dict[ClickKey, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """To clicks, clicks that told a position, those positions added up."""
    anchors: dict[tuple[ClickKey, str], int] = field(default_factory=lambda: defaultdict(int))
    """Clicks that led to a section of the document, by its anchor."""
    visits: dict[Visit, int] = field(default_factory=lambda: defaultdict(int))
    """Events of visitors."""
    origins: Origins = field(default_factory=lambda: defaultdict(lambda: [0] * len(SCOPE_KINDS)))
    """By where they came from, a number for each of ``SCOPE_KINDS``."""
    runs: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    """(site, query) to when the service last ran a search of it, in microseconds, and what that matched."""

    def add_search(self, search: CountedSearch, day: int, sign: int = 1) -> None:
        """Count one search, or with ``sign=-1`` count it no longer."""
        site_id, query, visitor = search.site_id, search.query, search.visitor
        found = search.results_count > 0
        counts = {"searches": sign}
        if not found:
            counts["zero_results"] = sign
        elif search.matched == PARTIAL:
            counts["partial_results"] = sign
        if search.channel != AGENT:
            self._add(self.queries[site_id, day, query], _QUERY_PLACES, counts)
        if search.response_ms is not None:
            counts |= {"responses": sign, "response_ms": sign * search.response_ms}
        if search.mixed:
            counts["mixed_searches"] = sign
        self._add_to_site(site_id, day, search.channel, search.page, counts)
        if visitor is not None and search.channel != AGENT:
            for kind in ("visitors", "found_visitors" if found else "missed_visitors"):
                self.visits[Visit(site_id, day, query, visitor, kind)] += sign

    def add_run(self, site_id: int, query: str, occurred_at: int, results_count: int, matched: str) -> None:
        """Note what a search that the service ran found."""
        run = occurred_at, matched if results_count else PARTIAL
        if (site_id, query) not in self.runs or self.runs[site_id, query][0] <= occurred_at:
            self.runs[site_id, query] = run

    def add_click(
        self,
        key: ClickKey,
        position: int | None,
        anchor: str | None,
        channel: str | None = None,
        *,
        first: bool,
        sign: int = 1,
    ) -> None:
        """Count one click, or with ``sign=-1`` count it no longer.

        Args:
            first: Whether it is the first of its search.
        """
        site_id, day, query, _ = key
        for place, number in enumerate((1, position is not None, position or 0)):
            self.documents[key][place] += sign * number
        if anchor is not None:
            self.anchors[key, anchor] += sign
        counts = {"clicks": sign}
        if first:
            counts["clicked_searches"] = sign
        if position is not None:
            counts |= {"positioned_clicks": sign, "click_positions": sign * position}
        self._add(self.queries[site_id, day, query], _QUERY_PLACES, counts)
        self._add_to_site(site_id, day, channel, None, counts)

    def _add_to_site(
        self, site_id: int, day: int, channel: str | None, page: str | None, counts: Mapping[str, int]
    ) -> None:
        self._add(self.days[site_id, day], _SCOPE_PLACES, counts)
        if channel is not None:
            self._add(self.origins[site_id, day, channel, page or ""], _SCOPE_PLACES, counts)

    @staticmethod
    def _add(numbers: list[int], places: Mapping[str, int], counts: Mapping[str, int]) -> None:
        for kind, number in counts.items():
            numbers[places[kind]] += number


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
    for (site_id, day, query, kind), number in change_visits(session, changes.visits, today - LONGEST_PERIOD).items():
        changes.queries[site_id, day, query][_QUERY_PLACES[kind]] += number
    _add_to_scope_days(session, accounts, changes)
    queries = {key: counts for key, counts in changes.queries.items() if any(counts)}
    _add_to_query_days(session, queries)
    _add_to_click_days(session, changes)
    _add_to_click_anchor_days(session, changes)
    change_origin_days(session, changes.origins)
    starts = _window_starts(session, accounts, {site_id for site_id, _ in changes.days}, today)
    windows: Windows = defaultdict(lambda: [0] * len(COUNTS))
    for (site_id, day, query), counts in queries.items():
        for index, period in enumerate(PERIODS):
            if (day, query) > starts[site_id, period]:
                for scope in (site_id, account_scope(accounts[site_id])):
                    _add_to_window(windows[scope, query], index, counts)
    change_windows(session, windows)
    _note_runs(session, changes)


def _note_runs(session: Session, changes: Changes) -> None:
    """Keep what the last search of each query of a site found, as long as a window has the query."""
    if changes.runs:
        execute_rows(
            session,
            """
            UPDATE query_windows SET last_run_at = run.run_at, last_matched = run.matched FROM {rows} AS run
            WHERE query_windows.scope = run.site_id AND query_windows.query = run.query
                AND (query_windows.last_run_at IS NULL OR query_windows.last_run_at <= run.run_at)
            """,
            "site_id:int query:text run_at:int matched:text",
            [(*key, *run) for key, run in sorted(changes.runs.items())],
        )


def _add_to_window(window: list[int], index: int, counts: Iterable[int], sign: int = 1) -> None:
    for place, number in enumerate(counts):
        window[place * len(PERIODS) + index] += sign * number


def _add_to_scope_days(session: Session, accounts: Mapping[int, int], changes: Changes) -> None:
    totals: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(SCOPE_KINDS))
    for (site_id, day), numbers in changes.days.items():
        for scope in (site_id, account_scope(accounts[site_id])):
            totals[scope, day] = [a + b for a, b in zip(totals[scope, day], numbers, strict=True)]
    rows = [(*key, *numbers) for key, numbers in sorted(totals.items()) if any(numbers)]
    if rows:
        statement = upsert("scope_days", ("scope", "day"), SCOPE_KINDS)
        execute_rows(session, statement, integers(("scope", "day", *SCOPE_KINDS)), rows)


def _add_to_query_days(session: Session, queries: Mapping[tuple[int, int, str], list[int]]) -> None:
    rows = [(*key, *counts) for key, counts in sorted(queries.items())]
    if not rows:
        return
    key_columns = "site_id:int day:int query:text"
    statement = upsert("query_days", ("site_id", "day", "query"), QUERY_KINDS)
    execute_rows(session, statement, f"{key_columns} {integers(QUERY_KINDS)}", rows)
    lessened = [key for key, counts in sorted(queries.items()) if min(counts) < 0]
    if lessened:
        execute_rows(
            session,
            """
            DELETE FROM query_days
            WHERE (site_id, day, query) IN (SELECT site_id, day, query FROM {rows} AS lessened)
                AND searches = 0 AND clicks = 0
            """,
            key_columns,
            lessened,
        )


def _add_to_click_days(session: Session, changes: Changes) -> None:
    rows = [(*key, *numbers) for key, numbers in sorted(changes.documents.items())]
    if rows:
        numbers = ("clicks", "positioned_clicks", "click_positions")
        statement = upsert("click_days", ("site_id", "day", "query", "document_id"), numbers)
        key_columns = "site_id:int day:int query:text document_id:text"
        execute_rows(session, statement, f"{key_columns} {integers(numbers)}", rows)
    lessened = [key for key, numbers in sorted(changes.documents.items()) if numbers[0] < 0]
    if lessened:
        emptied = execute_rows(
            session,
            """
            DELETE FROM click_days
            WHERE (site_id, day, query, document_id)
                IN (SELECT site_id, day, query, document_id FROM {rows} AS lessened) AND clicks = 0
            RETURNING site_id, day, query, document_id
            """,
            key_columns,
            lessened,
        ).all()
        execute_rows(
            session,
            """
            DELETE FROM click_anchor_days WHERE (site_id, day, query, document_key)
                IN (SELECT site_id, day, query, document_key FROM {rows} AS emptied)
            """,
            "site_id:int day:int query:text document_key:int",
            [(site_id, day, query, document_key(document_id)) for site_id, day, query, document_id in emptied],
        )


def _add_to_click_anchor_days(session: Session, changes: Changes) -> None:
    rows = [
        (site_id, day, query, document_key(document_id), anchor, clicks)
        for ((site_id, day, query, document_id), anchor), clicks in sorted(changes.anchors.items())
    ]
    if rows:
        statement = upsert("click_anchor_days", ("site_id", "day", "query", "document_key", "anchor"), ("clicks",))
        columns = "site_id:int day:int query:text document_key:int anchor:text clicks:int"
        execute_rows(session, statement, columns, rows)


def _window_starts(
    session: Session, accounts: Mapping[int, int], site_ids: set[int], today: int
) -> dict[tuple[int, int], Point]:
    """The place where the windows of these sites begin, by (site, period); new ones are made."""
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


COUNTS = tuple(f"{kind}_{period}" for kind in QUERY_KINDS for period in PERIODS)
"""Columns of ``query_windows`` that count."""
_CHANGE_WINDOWS = f"""
    {upsert("query_windows", ("scope", "query"), COUNTS)} RETURNING scope, query, {", ".join(COUNTS)}
"""
_DIFFERENT = tuple(f"queries_{period}" for period in PERIODS)
Windows = dict[tuple[int, str], list[int]]
"""(scope, query) to a number for each column of counts in ``query_windows``, in their order."""


def change_windows(session: Session, windows: Windows) -> None:
    """Add to ``query_windows``, and keep ``scope_windows`` (how many queries were searched) in step."""
    rows = [(*key, *counts) for key, counts in sorted(windows.items()) if any(counts)]
    if not rows:
        return
    appeared: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    emptied: list[tuple[int, str]] = []
    for scope, query, *counts in execute_rows(
        session, _CHANGE_WINDOWS, f"scope:int query:text {integers(COUNTS)}", rows
    ):
        added = windows[scope, query]
        for index in range(len(PERIODS)):  # The first columns are those of searches.
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
        statement = upsert("scope_windows", ("scope",), _DIFFERENT)
        execute_rows(session, statement, integers(("scope", *_DIFFERENT)), rows)
        session.execute(
            delete(ScopeWindow).where(
                ScopeWindow.scope.in_([row[0] for row in rows if min(row[1:]) < 0]),
                *(getattr(ScopeWindow, name) == 0 for name in _DIFFERENT),
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
            f"""
            SELECT day, query, {", ".join(QUERY_KINDS)} FROM query_days
            WHERE site_id = :site_id AND (day, query) > (:day, :query) AND day < :first_day
            ORDER BY day, query LIMIT :step
            """  # noqa: S608 - made of constants
        ),
        {"site_id": site_id, "day": start.day, "query": start.query, "first_day": first_day, "step": step},
    ).all()
    index = PERIODS.index(period)
    windows: Windows = defaultdict(lambda: [0] * len(COUNTS))
    for _, query, *counts in rows:
        for scope in (site_id, account_scope(start.account_id)):
            _add_to_window(windows[scope, query], index, counts, -1)
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
    columns = ", ".join(COUNTS)
    sums = ", ".join(
        f"sum(CASE WHEN day > {today - period} THEN {kind} ELSE 0 END)" for kind in QUERY_KINDS for period in PERIODS
    )
    different = ", ".join(f"sum(CASE WHEN searches_{period} > 0 THEN 1 ELSE 0 END)" for period in PERIODS)
    for site_id in sites:
        session.execute(
            text(
                f"""
                INSERT INTO query_windows (scope, query, {columns})
                SELECT site_id, query, {sums} FROM query_days
                WHERE site_id = :site_id AND day > {today - LONGEST_PERIOD} GROUP BY site_id, query
                """  # noqa: S608 - made of constants and numbers
            ),
            {"site_id": site_id},
        )
    session.execute(
        text(
            f"""
            INSERT INTO query_windows (scope, query, {columns})
            SELECT :account, query, {", ".join(f"sum({name})" for name in COUNTS)} FROM query_windows
            WHERE scope IN (SELECT site_id FROM window_starts WHERE account_id = :account_id) GROUP BY query
            """  # noqa: S608 - made of constants
        ),
        {"account": account_scope(account_id), "account_id": account_id},
    )
    session.execute(
        text(
            f"""
            INSERT INTO scope_windows (scope, {", ".join(_DIFFERENT)})
            SELECT scope, {different} FROM query_windows
            WHERE scope = :account OR scope IN (SELECT site_id FROM window_starts WHERE account_id = :account_id)
            GROUP BY scope
            """  # noqa: S608 - made of constants
        ),
        {"account": account_scope(account_id), "account_id": account_id},
    )
