"""Example searches and clicks of a month, which the demo shows until they are removed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import SearchEvent as StoredEvent
from app.models import Site
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.clicks import session_search_key
from app.services.analytics.event_ingestion import ingest
from app.services.analytics.event_lines import Click, Event, SearchEvent
from app.services.analytics.event_retention import erase_visitor
from app.services.analytics.visitors import session_visitor
from app.storage.database import Database

DAYS = 28
VISITORS = 90
SEARCHES_PER_WEEKDAY, SEARCHES_PER_WEEKEND_DAY = (24, 44), (7, 14)
"""Least and most searches of a day."""

_SESSIONS = "~example-"
"""Prefix of the session IDs of example visitors. The search box never creates such IDs."""
_CLICK_RATE = 0.68
_NEXT_POSITION = 0.4
"""Probability that a visitor who clicks skips a hit."""
_HOURS = (1, 1, 1, 1, 1, 2, 3, 6, 12, 18, 19, 16, 12, 15, 18, 17, 14, 10, 7, 6, 5, 4, 3, 2)
"""Weights of the hours of a UTC day."""


class ExampleResult(NamedTuple):
    """Results of a query.

    Attributes:
        total: Number of matching documents.
        matched: ``all``, ``some``, or ``corrected``.
        document_ids: IDs of the first hits, in order.
    """

    total: int
    matched: str
    document_ids: Sequence[str]


def add_examples(
    database: Database, site_id: int, queries: Sequence[str], find: Callable[[str], ExampleResult]
) -> None:
    """Add searches and clicks of the last 28 days to the analytics of a site. They are the same in every demo.

    Args:
        queries: The most frequent first.
        find: Runs a search, which is not recorded.
    """
    results = {query: find(query) for query in queries}
    moment = now()
    entries = list(_make_entries(site_id, results, moment))
    with database.write() as session:
        ingest(session, entries, to_microseconds(moment) // DAY_MICROSECONDS)


def _make_entries(site_id: int, results: dict[str, ExampleResult], moment: datetime) -> Iterator[Event]:
    chance = random.Random(11)  # noqa: S311 - nothing here is secret.
    queries = list(results)
    weights = [1 / (rank + 2) for rank in range(len(queries))]
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    for day in range(DAYS):
        begins = midnight - timedelta(days=DAYS - 1 - day)
        busy = SEARCHES_PER_WEEKDAY if begins.weekday() < 5 else SEARCHES_PER_WEEKEND_DAY
        for _ in range(round(chance.randint(*busy) * (0.7 + 0.6 * day / DAYS))):
            hour = chance.choices(range(24), _HOURS)[0]
            searched_at = begins + timedelta(hours=hour, seconds=chance.uniform(0, 3600))
            session_id = f"{_SESSIONS}{chance.randrange(VISITORS)}"
            (query,) = chance.choices(queries, weights)
            is_clicked, position = chance.random() < _CLICK_RATE, 1
            while chance.random() < _NEXT_POSITION and position < 8:
                position += 1
            milliseconds = round(chance.lognormvariate(2.1, 0.4))
            if searched_at < moment:
                yield from _search(
                    site_id, session_id, query, results[query], searched_at, milliseconds, is_clicked, position
                )


def _search(
    site_id: int,
    session_id: str,
    query: str,
    result: ExampleResult,
    moment: datetime,
    milliseconds: int,
    is_clicked: bool,
    position: int,
) -> Iterator[Event]:
    occurred_at = to_microseconds(moment)
    visitor = session_visitor(site_id, session_id)
    yield SearchEvent(
        site_id, query, result.total, moment, session_id, milliseconds, result.matched, visitor, "box", "/docs",
        recorded_at=occurred_at,
    )  # fmt: skip
    if is_clicked and position <= len(result.document_ids):
        key = session_search_key(session_id, query, occurred_at // DAY_MICROSECONDS)
        yield Click(
            site_id, key, query, result.document_ids[position - 1], position, moment + timedelta(seconds=4), None,
            visitor,
            "box", session_id,
        )  # fmt: skip


def find_site_with_examples(session: Session, sites: Sequence[Site]) -> Site | None:
    """Return the first of the sites whose analytics contain examples, if any."""
    return next((site for site in sites if session.scalar(_sessions_of(site.id).limit(1)) is not None), None)


def remove_examples(database: Database, site: Site, retention_days: int) -> None:
    """Erase the example searches and clicks of a site. Searches and clicks of its real visitors remain.

    Args:
        retention_days: As for :func:`~app.services.analytics.event_retention.erase_visitor`.
    """
    with database.read() as session:
        session_ids = session.scalars(_sessions_of(site.id)).all()
    for session_id in session_ids:
        erase_visitor(database, site, str(session_id), retention_days)


def _sessions_of(site_id: int) -> Select[str | None]:
    return (
        select(StoredEvent.session_id)
        .where(
            StoredEvent.site_id == site_id,
            StoredEvent.session_id >= _SESSIONS,
            StoredEvent.session_id < f"{_SESSIONS}~",
        )
        .distinct()
    )
