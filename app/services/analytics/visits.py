"""Rows for roll-ups that need more than addition: distinct visitors of queries, and pages with searches.

An event is counted as it arrives and may be replaced by a later keystroke, so ``query_visits`` stores the number of
counted events of each visitor and day. A visitor counts only on the last day with such events. The daily visitors of a
period that ends today therefore add up to the number of distinct visitors.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import CursorResult, TextClause, text
from sqlalchemy.orm import Session

from app.models.events import OTHER_PAGES, SITE_KINDS


def execute_rows(
    session: Session, statement: str, columns: str, rows: Iterable[Sequence[Any]], **parameters: Any
) -> CursorResult[*tuple[Any, ...]]:
    """Run ``statement``, replacing ``{rows}`` in it with a table of ``rows``.

    The rows are one JSON parameter, so the statement's text does not depend on their number; unlike ``executemany``,
    the statement can join them and return rows. Works on SQLite and PostgreSQL.

    Args:
        columns: The table's columns, ``name:type name:type``; a type is ``int`` or ``text``. The table also has a
            column ``row_number`` with the position of each row.
        parameters: Values of the statement's other parameters.
    """
    clause = _compiled(statement, columns, session.get_bind().dialect.name)
    result = session.execute(clause, {"rows": orjson.dumps(list(rows)).decode(), **parameters})
    assert isinstance(result, CursorResult)
    return result


def upsert(table: str, key: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the statement that adds numbers to rows of a table, creating missing rows."""
    columns = ", ".join((*key, *numbers))
    return f"""
        INSERT INTO {table} ({columns}) SELECT {columns} FROM {{rows}} AS changed WHERE true
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET {", ".join(f"{n} = {table}.{n} + excluded.{n}" for n in numbers)}
    """  # noqa: S608 - made of constants


def integers(names: Iterable[str]) -> str:
    """Return the column specifications of integer columns, for :func:`execute_rows`."""
    return " ".join(f"{name}:int" for name in names)


@cache
def _compiled(statement: str, columns: str, dialect: str) -> TextClause:
    fields = [column.split(":") for column in columns.split()]
    if dialect == "sqlite":
        picked = [f"json_extract(value, '$[{i}]') AS {name}" for i, (name, _) in enumerate(fields)]
        table = f"(SELECT key AS row_number, {', '.join(picked)} FROM json_each(:rows))"  # noqa: S608
    else:
        types = {"int": "bigint", "text": "text"}
        picked = [f"CAST(value ->> {i} AS {types[kind]}) AS {name}" for i, (name, kind) in enumerate(fields)]
        source = "jsonb_array_elements(CAST(:rows AS jsonb)) WITH ORDINALITY AS elements (value, row_number)"
        table = f"(SELECT row_number, {', '.join(picked)} FROM {source})"  # noqa: S608
    return text(statement.replace("{rows}", table))


class Visit(NamedTuple):
    """A visitor's searches for one query on one day, of one kind of ``VISITOR_KINDS``."""

    site_id: int
    day: int
    query: str
    visitor: int
    kind: str

    @property
    def digest(self) -> int:
        """Signed 64-bit hash of visitor, query, and kind."""
        text = f"{self.visitor}\0{self.query}\0{self.kind}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


VisitorCounts = dict[tuple[int, int, str, str], int]
"""Number of visitors by site, day, query, and kind."""

_Key = tuple[int, int]
"""Site and digest of a visit, on any day."""


def change_visits(session: Session, visits: Mapping[Visit, int], first_day: int) -> VisitorCounts:
    """Add events to ``query_visits``, or subtract them.

    Args:
        visits: Visit to number of events.
        first_day: Visits before this day are outside every reporting period and may be deleted at any time.

    Returns:
        Change in the number of visitors of each query.
    """
    changed = {(visit.site_id, visit.day, visit.digest): visit for visit, events in visits.items() if events}
    visitors: VisitorCounts = defaultdict(int)
    if not changed:
        return visitors
    kinds = {(visit.site_id, digest): visit for (_, _, digest), visit in changed.items()}
    before = _last_days(session, kinds, first_day)
    emptied = [
        (site_id, day, digest)
        for site_id, day, digest, events in execute_rows(
            session,
            """
            INSERT INTO query_visits (site_id, day, visit, events)
            SELECT site_id, day, visit, events FROM {rows} AS changed WHERE true
            ON CONFLICT (site_id, day, visit) DO UPDATE SET events = query_visits.events + excluded.events
            RETURNING site_id, day, visit, events
            """,
            "site_id:int day:int visit:int events:int",
            [(*key, visits[visit]) for key, visit in sorted(changed.items(), key=lambda item: item[0])],
        )
        if events <= 0  # Negative if the event was counted before visits were stored.
    ]
    if emptied:
        execute_rows(
            session,
            """
            DELETE FROM query_visits
            WHERE (site_id, day, visit) IN (SELECT site_id, day, visit FROM {rows} AS emptied)
            """,
            "site_id:int day:int visit:int",
            emptied,
        )
    after = _last_days(session, kinds, first_day)
    # A visitor counts only on the last day, so compare the last days before and after the change.
    for key, visit in kinds.items():
        for days, change in ((before, -1), (after, 1)):
            if key in days:
                visitors[visit.site_id, days[key], visit.query, visit.kind] += change
    return visitors


def _last_days(session: Session, keys: Iterable[_Key], first_day: int) -> dict[_Key, int]:
    """Return the last day of each visit, ignoring days before ``first_day``."""
    rows = execute_rows(
        session,
        """
        SELECT wanted.site_id, wanted.visit, (
            SELECT max(day) FROM query_visits
            WHERE query_visits.site_id = wanted.site_id AND query_visits.visit = wanted.visit AND day >= :first_day
        ) FROM {rows} AS wanted
        """,
        "site_id:int visit:int",
        sorted(keys),
        first_day=first_day,
    )
    return {(site_id, digest): day for site_id, digest, day in rows if day is not None}


MAX_PAGES = 500
"""Maximum number of rows for individual pages, per site and day. Searches from other pages share one row."""

Origins = dict[tuple[int, int, str, str], list[int]]
"""(site, day, channel, page) to a number for each of ``SITE_KINDS``."""

_KEY = ("site_id", "day", "channel", "page")
_KEY_COLUMNS = "site_id:int day:int channel:text page:text"


def change_origin_days(session: Session, origins: Origins) -> None:
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
    statement = upsert("origin_days", _KEY, SITE_KINDS)
    columns = f"{_KEY_COLUMNS} {integers(SITE_KINDS)}"
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
        _KEY_COLUMNS,
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
