"""Visitors of a query: sessions that searched it on a day, those with results and those without.

An event is counted as it arrives and may be replaced by a later keystroke, so the counted events of each session are
counted one by one: a visitor appears with the first and goes with the last.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.services.analytics.bulk_sql import execute_rows


class Visit(NamedTuple):
    """A session's searches of one query on one day, those with results or those without."""

    site_id: int
    day: int
    query: str
    session_id: str
    found: bool

    @property
    def digest(self) -> int:
        """A signed 64-bit number for session, query, and ``found``."""
        text = f"{self.session_id}\0{self.query}\0{self.found}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


VisitorCounts = dict[tuple[int, int, str, str], int]
"""Site, day, query, and kind of visitors (of ``QUERY_KINDS``) to a number."""


def change_visits(session: Session, visits: Mapping[Visit, int]) -> VisitorCounts:
    """Add events to ``query_visits``, or take some away.

    Args:
        visits: Visit to events.

    Returns:
        By how many the visitors of each query change.
    """
    changed = {(visit.site_id, visit.day, visit.digest): visit for visit, events in visits.items() if events}
    visitors: VisitorCounts = defaultdict(int)
    if not changed:
        return visitors
    emptied = []
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
    ):
        visit = changed[site_id, day, digest]
        kind = "found_visitors" if visit.found else "missed_visitors"
        visitors[site_id, day, visit.query, kind] += (events > 0) - (events - visits[visit] > 0)
        if events <= 0:  # Less than zero where an event counted before visits were kept.
            emptied.append((site_id, day, digest))
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
    return visitors
