"""Deleting old events, events of deleted sites, and events of erased visitors.

All deletions run in small steps, so that other writers wait briefly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, delete, or_, select, text, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app import clock
from app.models import (
    Ask,
    ClickAnchorDay,
    ClickDay,
    ClickLessons,
    EventRemoval,
    OriginDay,
    QueryDay,
    QueryVisit,
    SearchClick,
    SearchEvent,
    Site,
    SiteDay,
    VisitorErasure,
)
from app.models.base import from_microseconds, to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics import event_lines
from app.services.analytics.clicks import clicked_searches, session_search_key
from app.services.analytics.rollups import Changes, apply_changes, lock_sites
from app.services.analytics.visitors import forget_visitor_keys, session_visitor
from app.storage.database import Database

STEP = 2000
"""Maximum number of rows that one transaction deletes from each table."""
NEW_DAY_DELAY_MICROSECONDS = 120_000_000
"""Microseconds from midnight to the daily work, so that machines with slightly different clocks agree on the day.
"""


class EventMaintenance:
    """Daily deletion of old events.

    Safe to run on several machines simultaneously, because each step checks the remaining rows.

    Args:
        retention_days: Events more than this number of days before today are deleted.
    """

    def __init__(self, database: Database, retention_days: int):
        self._database = database
        self._retention_days = retention_days
        self._done_for_day: int | None = None

    def run(self, *, budget_seconds: float = 0.2) -> bool:
        """Finish pending deletions and delete old events, until done or the time is up.

        Returns:
            Whether there is more to do.
        """
        deadline = time.perf_counter() + budget_seconds
        today = (to_microseconds(clock.now()) - NEW_DAY_DELAY_MICROSECONDS) // DAY_MICROSECONDS
        while remove_step(self._database):
            if time.perf_counter() > deadline:
                return True
        if self._done_for_day == today:
            return False
        while _expire_step(self._database, today - self._retention_days):
            if time.perf_counter() > deadline:
                return True
        forget_visitor_keys(self._database, today)
        _forget_erasures(self._database, today - self._retention_days)
        self._done_for_day = today
        return False


def delete_expired(database: Database, retention_days: int) -> None:
    """Delete all events and roll-ups of days more than ``retention_days`` before today."""
    today = to_microseconds(clock.now()) // DAY_MICROSECONDS
    while _expire_step(database, today - retention_days):
        pass


def forget_site(session: Session, site_id: int) -> None:
    """Delete all events of a site that this transaction deletes or that was deleted earlier.

    This transaction deletes all events of a small site; for a large site, the background job deletes the rest. Events
    in journals are dropped when they are moved to SQL.
    """
    lock_sites(session, [site_id])
    session.merge(EventRemoval(site_id=site_id))
    session.flush()
    _remove_site(session, site_id)


class Erased(NamedTuple):
    """Counts of the searches, clicks, and questions erased for a visitor."""

    searches: int
    clicks: int
    questions: int


def erase_visitor(database: Database, site: Site, session_id: str, retention_days: int) -> Erased:
    """Erase the events of one session on a site, and subtract them from the roll-ups.

    Events in a journal, on any machine, are dropped when they are moved to SQL. Calling this again completes an
    interrupted call.

    Args:
        retention_days: Events from more than this number of days ago are not subtracted, because their roll-ups may be
            deleted already.
    """
    visitor = session_visitor(site.id, session_id)
    today = to_microseconds(clock.now()) // DAY_MICROSECONDS
    with database.write() as session:
        lock_sites(session, [site.id])
        # First of all, so that events that leave a journal from now on are dropped.
        session.merge(VisitorErasure(site_id=site.id, visitor=visitor, erased_at=clock.now()))
        asked = or_(Ask.session_id == session_id, Ask.visitor == visitor)
        questions = session.execute(delete(Ask).where(Ask.site_id == site.id, asked)).rowcount  # type: ignore[attr-defined]
    searches = select(SearchEvent).where(SearchEvent.site_id == site.id, SearchEvent.session_id == session_id)
    search_keys: set[int] = set()

    def is_counted(event: SearchEvent | SearchClick) -> bool:
        # Roll-ups of earlier days may be deleted already, and nothing can be subtracted from them.
        return _day_of(event) >= today - retention_days

    def take_searches(events: Sequence[SearchEvent], changes: Changes, _session: Session) -> None:
        for event in events:
            search_keys.add(session_search_key(session_id, event.query, _day_of(event)))
            if event.counted and is_counted(event):
                changes.add_search(event, sign=-1)

    def take_clicks(clicks: Sequence[SearchClick], changes: Changes, session: Session) -> None:
        clicked = clicked_searches(session, [(site.id, click.search_key) for click in clicks])
        for click in filter(is_counted, clicks):
            search = site.id, click.search_key
            key = site.id, _day_of(click), click.query, click.document_id
            changes.add_click(key, click.position, None, click.channel, first=search not in clicked, sign=-1)
            clicked.add(search)
        # The ranking may depend on these clicks, so it is learned again without them.
        session.execute(update(ClickLessons).where(ClickLessons.site_id == site.id).values(learned_day=None))

    erased_searches = _erase(database, site.id, SearchEvent, searches, take_searches, today)
    clicks = select(SearchClick).where(
        SearchClick.site_id == site.id,
        or_(
            SearchClick.session_id == session_id,
            SearchClick.visitor == visitor,
            SearchClick.search_key.in_(search_keys),
        ),
    )
    erased_clicks = _erase(database, site.id, SearchClick, clicks, take_clicks, today)
    return Erased(erased_searches, erased_clicks, questions)


E = TypeVar("E", SearchEvent, SearchClick)


def _erase(
    database: Database,
    site_id: int,
    table: type[E],
    query: Select[E],
    subtract: Callable[[Sequence[E], Changes, Session], None],
    today: int,
) -> int:
    """Delete events in steps and subtract them from the roll-ups with ``take``. Returns their number."""
    total = 0
    while True:
        with database.write() as session:
            lock_sites(session, [site_id])
            events = session.scalars(query.order_by(table.occurred_at, table.id).limit(STEP)).all()
            if not events:
                return total
            ids = [event.id for event in events]
            session.execute(delete(table).where(table.id.in_(ids)).execution_options(synchronize_session=False))
            changes = Changes()
            subtract(events, changes, session)
            apply_changes(session, changes, today)
            total += len(events)


def _day_of(event: SearchEvent | SearchClick) -> int:
    return to_microseconds(event.occurred_at) // DAY_MICROSECONDS


def drop_erased(session: Session, entries: Sequence[event_lines.Event]) -> Sequence[event_lines.Event]:
    """Return the journal entries, excluding entries of visitors who were erased after the entry was written."""
    rows = session.scalars(
        select(VisitorErasure).where(VisitorErasure.site_id.in_({entry.site_id for entry in entries}))
    )
    erased = {(row.site_id, row.visitor): to_microseconds(row.erased_at) for row in rows}
    return [entry for entry in entries if not _is_erased(entry, erased)] if erased else entries


def _is_erased(entry: event_lines.Event, erased: Mapping[tuple[int, int], int]) -> bool:
    if entry.session_id is None:
        return False
    arrived = entry.recorded_at if isinstance(entry, event_lines.SearchEvent) else to_microseconds(entry.occurred_at)
    return arrived <= erased.get((entry.site_id, session_visitor(entry.site_id, entry.session_id)), -1)


def _forget_erasures(database: Database, before_day: int) -> None:
    """Delete records of erasures so old that no journal can contain an affected event."""
    before = from_microseconds(before_day * DAY_MICROSECONDS)
    with database.write() as session:
        session.execute(delete(VisitorErasure).where(VisitorErasure.erased_at < before))


def remove_step(database: Database) -> bool:
    """Delete one batch of a deleted site's events.

    Returns:
        Whether there were any.
    """
    with database.read() as session:
        removal = session.scalar(select(EventRemoval).order_by(EventRemoval.site_id).limit(1))
    if removal is None:
        return False
    with database.write() as session:
        lock_sites(session, [removal.site_id])
        _remove_site(session, removal.site_id)
    return True


def _remove_site(session: Session, site_id: int) -> None:
    session.execute(delete(SiteDay).where(SiteDay.site_id == site_id))
    if _delete_rows(session, site_id):
        session.execute(delete(VisitorErasure).where(VisitorErasure.site_id == site_id))
        session.execute(delete(EventRemoval).where(EventRemoval.site_id == site_id))


def _expire_step(database: Database, first_kept_day: int) -> bool:
    """Delete one batch of expired events. Returns whether any site had expired events."""
    with database.read() as session:
        site_id = session.scalar(
            text(
                """
                SELECT id FROM sites WHERE
                    EXISTS (SELECT 1 FROM site_days WHERE site_days.site_id = sites.id AND site_days.day < :day)
                    OR EXISTS (SELECT 1 FROM search_events AS event
                        WHERE event.site_id = sites.id AND event.occurred_at < :before)
                    OR EXISTS (SELECT 1 FROM search_clicks AS click
                        WHERE click.site_id = sites.id AND click.occurred_at < :before)
                    OR EXISTS (SELECT 1 FROM asks
                        WHERE asks.site_id = sites.id AND asks.occurred_at < :before)
                LIMIT 1
                """
            ),
            {"day": first_kept_day, "before": first_kept_day * DAY_MICROSECONDS},
        )
    if site_id is None:
        return False
    with database.write() as session:
        lock_sites(session, [site_id])
        if _delete_rows(session, site_id, before_day=first_kept_day):
            # Last, because these rows make the next step find the site.
            session.execute(delete(SiteDay).where(SiteDay.site_id == site_id, SiteDay.day < first_kept_day))
    return True


def _delete_rows(session: Session, site_id: int, *, before_day: int | None = None) -> bool:
    """Delete one batch of a site's rows, optionally only rows before ``before_day``. Returns whether none are left."""
    before = None if before_day is None else from_microseconds(before_day * DAY_MICROSECONDS)
    return (
        # ``and`` ends the step at the first table with rows left, which bounds the length of the transaction.
        _delete_chunk(session, QueryDay, site_id, QueryDay.day, before_day)
        and _delete_chunk(session, ClickDay, site_id, ClickDay.day, before_day)
        and _delete_chunk(session, ClickAnchorDay, site_id, ClickAnchorDay.day, before_day)
        and _delete_chunk(session, OriginDay, site_id, OriginDay.day, before_day)
        and _delete_chunk(session, QueryVisit, site_id, QueryVisit.day, before_day)
        and _delete_chunk(session, SearchEvent, site_id, SearchEvent.occurred_at, before)
        and _delete_chunk(session, SearchClick, site_id, SearchClick.occurred_at, before)
        and _delete_chunk(session, Ask, site_id, Ask.occurred_at, before)
    )


def _delete_chunk(
    session: Session,
    table: type[QueryDay | ClickDay | ClickAnchorDay | OriginDay | QueryVisit | SearchEvent | SearchClick | Ask],
    site_id: int,
    dated: InstrumentedAttribute[Any],
    before: int | datetime | None,
) -> bool:
    key = table.__mapper__.primary_key
    # A subquery, because PostgreSQL's DELETE has no LIMIT.
    chunk = select(*key).where(table.site_id == site_id).order_by(dated).limit(STEP)
    if before is not None:
        chunk = chunk.where(dated < before)
    result = session.execute(delete(table).where(tuple_(*key).in_(chunk)).execution_options(synchronize_session=False))
    return result.rowcount < STEP  # type: ignore[attr-defined, no-any-return]
