"""Roll-ups: counts of events by UTC day (see ``app.models.events``).

``site_days``, ``query_days``, ``click_days``, ``click_anchor_days``, and ``origin_days`` contain sums; ``query_visits``
identifies visitors (``app.services.analytics.visitors``). Reports sum the days of a period
(``app.services.analytics.reports``).

Everything here runs under :func:`lock_sites`: one writer per site at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.models import SearchEvent as StoredEvent
from app.models.base import to_microseconds
from app.models.events import (
    AGENT,
    DAY_MICROSECONDS,
    LONGEST_PERIOD,
    OTHER_PAGES,
    PARTIAL,
    QUERY_KINDS,
    RUN_CODES,
    SITE_KINDS,
)
from app.services.analytics.clicks import document_key
from app.services.analytics.event_lines import SearchEvent
from app.services.analytics.visitors import Visit, change_visits
from app.storage.database import execute_rows, integers, upsert

_ADVISORY_CLASS = 0x5EA4C4
_BUCKETS = 32

ClickKey = tuple[int, int, str, str]
"""Site, day, query, and document of clicks."""

MAX_PAGES = 500
"""Maximum number of rows for individual pages, per site and day. Searches from other pages share one row."""

Origins = dict[tuple[int, int, str, str], list[int]]
"""Maps (site, day, channel, page) to one number for each of ``SITE_KINDS``."""

_ORIGIN_KEY = ("site_id", "day", "channel", "page")
_ORIGIN_COLUMNS = "site_id:int day:int channel:text page:text"


_SITE_COLUMNS = {kind: column for column, kind in enumerate(SITE_KINDS)}
_QUERY_COLUMNS = {kind: column for column, kind in enumerate(QUERY_KINDS)}


@dataclass(slots=True)
class Changes:
    """Changes to add to the roll-ups, or to subtract from them."""

    days: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * len(SITE_KINDS)))
    """Maps (site, day) to one number for each of ``SITE_KINDS``."""
    queries: dict[tuple[int, int, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0] * len(QUERY_KINDS))
    )
    """Maps (site, day, query) to one number for each of ``QUERY_KINDS``."""
    documents: dict[ClickKey, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """Clicks, clicks with a reported position, and the sum of these positions, by click key."""
    anchors: dict[tuple[ClickKey, str], int] = field(default_factory=lambda: defaultdict(int))
    """Clicks that led to a section of the document, by its anchor."""
    visits: dict[Visit, int] = field(default_factory=lambda: defaultdict(int))
    """Number of events of each visit."""
    origins: Origins = field(default_factory=lambda: defaultdict(lambda: [0] * len(SITE_KINDS)))
    """Maps (site, day, channel, page) to one number for each of ``SITE_KINDS``."""
    runs: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """Maps (site, day, query) to ``QueryDay.last_run``."""

    def add_search(self, search: SearchEvent | StoredEvent, sign: int = 1) -> None:
        """Count one search, or subtract it with ``sign=-1``."""
        day = to_microseconds(search.occurred_at) // DAY_MICROSECONDS
        site_id, query, visitor = search.site_id, search.query, search.visitor
        has_results = search.results_count > 0
        counts = {"searches": sign}
        if not has_results:
            counts["zero_results"] = sign
        elif search.matched == PARTIAL:
            counts["partial_results"] = sign
        if search.channel != AGENT:
            self._add(self.queries[site_id, day, query], _QUERY_COLUMNS, counts)
        if search.response_ms is not None:
            counts |= {"responses": sign, "response_ms": sign * search.response_ms}
        if search.mixed:
            counts["mixed_searches"] = sign
        self._add_to_site(site_id, day, search.channel, search.page, counts)
        if visitor is not None and search.channel != AGENT:
            for kind in ("visitors", "found_visitors" if has_results else "missed_visitors"):
                self.visits[Visit(site_id, day, query, visitor, kind)] += sign

    def add_run(self, site_id: int, query: str, occurred_at: int, results_count: int, matched: str) -> None:
        """Record the result of a search that the service ran.

        Args:
            occurred_at: Microseconds since 1970-01-01.
            matched: As ``SearchEvent.matched``.
        """
        key = site_id, occurred_at // DAY_MICROSECONDS, query
        # Time and result in one number, so that the greatest number is the latest run, in SQL as well.
        run = occurred_at * 8 + RUN_CODES[matched if results_count else PARTIAL]
        self.runs[key] = max(run, self.runs.get(key, 0))

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
        """Count one click, or subtract it with ``sign=-1``.

        Args:
            first: Whether it is the first click of its search.
        """
        site_id, day, query, _ = key
        for column, number in enumerate((1, position is not None, position or 0)):
            self.documents[key][column] += sign * number
        if anchor is not None:
            self.anchors[key, anchor] += sign
        counts = {"clicks": sign}
        if first:
            counts["clicked_searches"] = sign
        if position is not None:
            counts |= {"positioned_clicks": sign, "click_positions": sign * position}
        self._add(self.queries[site_id, day, query], _QUERY_COLUMNS, counts)
        self._add_to_site(site_id, day, channel, None, counts)

    def _add_to_site(
        self, site_id: int, day: int, channel: str | None, page: str | None, counts: Mapping[str, int]
    ) -> None:
        self._add(self.days[site_id, day], _SITE_COLUMNS, counts)
        if channel is not None:
            self._add(self.origins[site_id, day, channel, page or ""], _SITE_COLUMNS, counts)

    @staticmethod
    def _add(numbers: list[int], columns: Mapping[str, int], counts: Mapping[str, int]) -> None:
        for kind, number in counts.items():
            numbers[columns[kind]] += number


def lock_sites(session: Session, site_ids: Iterable[int]) -> None:
    """Make this transaction the only writer of these sites' roll-ups.

    SQLite has one writer anyway. On PostgreSQL, this takes a few advisory locks, always in the same order, so that
    concurrent writers queue up instead of deadlocking.
    """
    if session.get_bind().dialect.name == "sqlite":
        return
    # Few locks for all sites: a transaction with a lock for each of its sites could fill PostgreSQL's lock table.
    for bucket in sorted({site_id % _BUCKETS for site_id in site_ids}):
        session.execute(
            text("SELECT pg_advisory_xact_lock(:class, :bucket)"), {"class": _ADVISORY_CLASS, "bucket": bucket}
        )


def apply_changes(session: Session, changes: Changes, today: int) -> None:
    """Add ``changes`` to all roll-ups.

    Args:
        session: A write transaction that has locked the sites with :func:`lock_sites`.
        today: The current UTC day.
    """
    for (site_id, day, query, kind), number in change_visits(session, changes.visits, today - LONGEST_PERIOD).items():
        changes.queries[site_id, day, query][_QUERY_COLUMNS[kind]] += number
    _add_to_site_days(session, changes)
    _add_to_query_days(session, {key: counts for key, counts in changes.queries.items() if any(counts)})
    _add_to_click_days(session, changes)
    _add_to_click_anchor_days(session, changes)
    _change_origin_days(session, changes.origins)
    _record_runs(session, changes)


def _record_runs(session: Session, changes: Changes) -> None:
    """Store the result of the latest search of each counted query."""
    if changes.runs:
        execute_rows(
            session,
            """
            UPDATE query_days SET last_run = run.last_run FROM {rows} AS run
            WHERE query_days.site_id = run.site_id AND query_days.day = run.day AND query_days.query = run.query
                AND (query_days.last_run IS NULL OR query_days.last_run < run.last_run)
            """,
            "site_id:int day:int query:text last_run:int",
            [(*key, run) for key, run in sorted(changes.runs.items())],
        )


def _add_to_site_days(session: Session, changes: Changes) -> None:
    rows = [(*key, *numbers) for key, numbers in sorted(changes.days.items()) if any(numbers)]
    if rows:
        statement = upsert("site_days", ("site_id", "day"), SITE_KINDS)
        execute_rows(session, statement, integers(("site_id", "day", *SITE_KINDS)), rows)


def _add_to_query_days(session: Session, queries: Mapping[tuple[int, int, str], list[int]]) -> None:
    rows = [(*key, *counts) for key, counts in sorted(queries.items())]
    if not rows:
        return
    key_columns = "site_id:int day:int query:text"
    statement = upsert("query_days", ("site_id", "day", "query"), QUERY_KINDS)
    execute_rows(session, statement, f"{key_columns} {integers(QUERY_KINDS)}", rows)
    # Rows that fell to zero are deleted, so that no query of erased or merged events remains.
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


def _change_origin_days(session: Session, origins: Origins) -> None:
    """Add to ``origin_days``.

    Rows are kept when their numbers reach zero. On a day with :data:`MAX_PAGES` rows, a page without a row therefore
    never gets a row later, and an event is always subtracted from the row in which it was counted.

    Args:
        session: A write transaction that has locked all sites.
    """
    changed = {key: numbers for key, numbers in origins.items() if any(numbers)}
    if not changed:
        return
    paged = sorted(key for key in changed if key[3])
    existing = _existing_rows(session, paged) if paged else set()
    counts = _count_pages(session, {key[:2] for key in paged}) if paged else {}
    rows: dict[tuple[int, int, str, str], list[int]] = defaultdict(lambda: [0] * len(SITE_KINDS))
    for key, numbers in sorted(changed.items()):
        site_id, day, channel, page = key
        if page and key not in existing:
            if counts.get((site_id, day), 0) < MAX_PAGES:
                counts[site_id, day] = counts.get((site_id, day), 0) + 1
            else:
                key = site_id, day, channel, OTHER_PAGES
        rows[key] = [a + b for a, b in zip(rows[key], numbers, strict=True)]
    statement = upsert("origin_days", _ORIGIN_KEY, SITE_KINDS)
    columns = f"{_ORIGIN_COLUMNS} {integers(SITE_KINDS)}"
    execute_rows(session, statement, columns, [(*key, *numbers) for key, numbers in sorted(rows.items())])


def _existing_rows(session: Session, keys: list[tuple[int, int, str, str]]) -> set[tuple[int, int, str, str]]:
    rows = execute_rows(
        session,
        """
        SELECT site_id, day, channel, page FROM {rows} AS wanted WHERE EXISTS (
            SELECT 1 FROM origin_days
            WHERE origin_days.site_id = wanted.site_id AND origin_days.day = wanted.day
                AND origin_days.channel = wanted.channel AND origin_days.page = wanted.page
        )
        """,
        _ORIGIN_COLUMNS,
        keys,
    )
    return {(site_id, day, channel, page) for site_id, day, channel, page in rows}


def _count_pages(session: Session, days: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return the number of rows for individual pages, by site and day."""
    rows = execute_rows(
        session,
        """
        SELECT wanted.site_id, wanted.day, count(*)
        FROM {rows} AS wanted JOIN origin_days
            ON origin_days.site_id = wanted.site_id AND origin_days.day = wanted.day
        WHERE page NOT IN ('', :others) GROUP BY wanted.site_id, wanted.day
        """,
        "site_id:int day:int",
        sorted(days),
        others=OTHER_PAGES,
    )
    return {(site_id, day): int(count) for site_id, day, count in rows}
