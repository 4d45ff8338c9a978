"""Visitors of a query: those who searched it, those who did so with results, and those who did so without.

An event is counted as it arrives and may be replaced by a later keystroke, so the counted events of each visitor and
day are counted one by one. A visitor counts on the last day that has any, and on no day before: so the visitors of the
days of a window, added up, are the different visitors of the window, whatever its length, as long as it ends today.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.services.analytics.bulk_sql import execute_rows


class Visit(NamedTuple):
    """A visitor's searches of one query on one day, of one kind of ``VISITOR_KINDS``."""

    site_id: int
    day: int
    query: str
    visitor: int
    kind: str

    @property
    def digest(self) -> int:
        """A signed 64-bit number for visitor, query, and kind."""
        text = f"{self.visitor}\0{self.query}\0{self.kind}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


VisitorCounts = dict[tuple[int, int, str, str], int]
"""Site, day, query, and kind of visitors to a number."""

_Key = tuple[int, int]
"""Site and digest of a visit, whatever its day."""


def change_visits(session: Session, visits: Mapping[Visit, int], first_day: int) -> VisitorCounts:
    """Add events to ``query_visits``, or take some away.

    Args:
        visits: Visit to events.
        first_day: Visits of days before this are in no window any more, and may be deleted at any time.

    Returns:
        By how many the visitors of each query change.
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
        if events <= 0  # Less than zero where an event counted before visits were kept.
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
    for key, visit in kinds.items():
        for days, change in ((before, -1), (after, 1)):
            if key in days:
                visitors[visit.site_id, days[key], visit.query, visit.kind] += change
    return visitors


def _last_days(session: Session, keys: Iterable[_Key], first_day: int) -> dict[_Key, int]:
    """The last day of each visit, from ``first_day`` on."""
    found = execute_rows(
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
    return {(site_id, digest): day for site_id, digest, day in found if day is not None}
