"""Moving searches from the journals to SQL, merging keystrokes and updating counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Site
from app.models.events import AGENT, DAY_MICROSECONDS
from app.services.analytics.click_ingestion import ingest_clicks
from app.services.analytics.event_journal import ClickEntry, JournalEntry, SearchEntry
from app.services.analytics.event_retention import drop_erased
from app.services.analytics.rollups import Changes, apply_changes, lock_sites
from app.services.analytics.visits import execute_rows
from backends.text import normal_form

MERGE_MICROSECONDS = 30_000_000
"""Maximum age of an event that a later keystroke can replace."""


@dataclass(slots=True)
class _Event:
    """An event to store, or a stored event next to it, which has an ``id``."""

    site_id: int
    session_id: str | None
    query: str
    results_count: int
    response_ms: int | None
    occurred_at: int
    recorded_at: int
    matched: str | None = None
    visitor: int | None = None
    channel: str | None = None
    page: str | None = None
    mixed: bool = False
    counted: bool = True
    id: int | None = None


def ingest(session: Session, entries: Sequence[JournalEntry], today: int) -> int:
    """Store events and count them.

    Args:
        session: A write transaction that contains everything.
        entries: In order of arrival.
        today: The current UTC day.

    Returns:
        Number of events dropped because their site was deleted or their visitor erased.
    """
    site_ids = {entry.site_id for entry in entries}
    lock_sites(session, site_ids)
    # The lock keeps existing sites from being deleted until this transaction ends.
    existing = set(session.scalars(select(Site.id).where(Site.id.in_(site_ids))))
    accepted = drop_erased(session, [entry for entry in entries if entry.site_id in existing])
    if accepted:
        changes = Changes()
        _ingest_searches(session, [entry for entry in accepted if isinstance(entry, SearchEntry)], changes)
        ingest_clicks(session, [entry for entry in accepted if isinstance(entry, ClickEntry)], changes)
        apply_changes(session, changes, today)
    return len(entries) - len(accepted)


def _ingest_searches(session: Session, entries: Sequence[SearchEntry], changes: Changes) -> None:
    events = [
        _Event(
            entry.site_id,
            entry.session_id,
            normal_form(entry.query),
            entry.results_count,
            entry.response_ms,
            entry.occurred_at,
            entry.recorded_at,
            entry.matched,
            entry.visitor,
            entry.channel,
            entry.page,
            entry.mixed,
        )
        for entry in entries
    ]
    if not events:
        return
    flipped = _merge_keystrokes(session, events)
    _update_counted(session, flipped)
    for event in flipped:
        _count(changes, event, 1 if event.counted else -1)
    _insert(session, events)
    for event in events:
        if event.counted:
            _count(changes, event, 1)
        if event.matched is not None and event.channel != AGENT:
            changes.add_run(event.site_id, event.query, event.occurred_at, event.results_count, event.matched)


def _count(changes: Changes, event: _Event, sign: int) -> None:
    changes.add_search(event, event.occurred_at // DAY_MICROSECONDS, sign)


def _merge_keystrokes(session: Session, events: Sequence[_Event]) -> list[_Event]:
    """Decide which events count, among new events and their stored neighbors.

    An event is replaced if the next event of its session begins with its text and is at most 30 s later. A new event
    therefore affects only itself and the event before it, and only events within 30 s matter.

    Returns:
        Stored events whose ``counted`` changed.
    """
    fresh: dict[tuple[int, str], list[_Event]] = defaultdict(list)
    for event in events:
        if event.session_id is not None:
            fresh[event.site_id, event.session_id].append(event)
    if not fresh:
        return []
    stored = _stored_neighbours(session, fresh)
    flipped: list[_Event] = []
    for key, additions in fresh.items():
        # A stable sort: of events with equal times, stored ones stay first, because they arrived first.
        line = sorted((*stored.get(key, ()), *additions), key=lambda event: (event.occurred_at, event.recorded_at))
        for index, event in enumerate(line):
            following = line[index + 1] if index + 1 < len(line) else None
            if event.id is not None and not (
                following is not None and following.id is None and _is_near(following, event)
            ):
                # Only a new event right after a stored event can change it. Not all later stored events were loaded.
                continue
            counted = following is None or not _replaces(following, event)
            if event.id is not None and counted != event.counted:
                flipped.append(event)
            event.counted = counted
    return flipped


def _replaces(later: _Event, earlier: _Event) -> bool:
    return _is_near(later, earlier) and later.query.startswith(earlier.query)


def _is_near(later: _Event, earlier: _Event) -> bool:
    return later.occurred_at - earlier.occurred_at <= MERGE_MICROSECONDS


def _stored_neighbours(
    session: Session, fresh: dict[tuple[int, str], list[_Event]]
) -> dict[tuple[int, str], list[_Event]]:
    """Return the stored events of each session within 30 s of a new event, in order."""
    spans: list[tuple[int, str, int, int]] = []
    for (site_id, session_id), additions in sorted(fresh.items(), key=lambda item: item[0]):
        begin = end = None
        for moment in sorted(event.occurred_at for event in additions):
            if end is not None and begin is not None and moment - MERGE_MICROSECONDS > end:
                spans.append((site_id, session_id, begin, end))
                begin = None
            if begin is None:
                begin = moment - MERGE_MICROSECONDS
            end = moment + MERGE_MICROSECONDS
        assert begin is not None
        assert end is not None
        spans.append((site_id, session_id, begin, end))
    stored: dict[tuple[int, str], list[_Event]] = defaultdict(list)
    # CROSS JOIN makes SQLite look up the index of events for each span, instead of scanning the events.
    for row in execute_rows(
        session,
        """
        SELECT event.site_id, event.session_id, event.query, event.results_count, event.response_ms,
            event.occurred_at, event.recorded_at, event.matched, event.visitor, event.channel, event.page,
            event.mixed, event.counted, event.id
        FROM {rows} AS span CROSS JOIN search_events AS event
        WHERE event.site_id = span.site_id AND event.session_id = span.session_id
            AND event.occurred_at BETWEEN span.begin_at AND span.end_at
        ORDER BY event.occurred_at, event.recorded_at, event.id
        """,
        "site_id:int session_id:text begin_at:int end_at:int",
        spans,
    ):
        event = _Event(*row)
        event.mixed, event.counted = bool(event.mixed), bool(event.counted)
        stored[event.site_id, str(event.session_id)].append(event)
    return stored


def _update_counted(session: Session, flipped: Sequence[_Event]) -> None:
    for counted in (True, False):
        ids = [(event.id,) for event in flipped if event.counted is counted]
        if ids:
            execute_rows(
                session,
                f"UPDATE search_events SET counted = {counted} WHERE id IN (SELECT id FROM {{rows}} AS f)",  # noqa: S608
                "id:int",
                ids,
            )


def _insert(session: Session, events: Sequence[_Event]) -> None:
    columns = (
        "site_id, session_id, query, results_count, response_ms, occurred_at, recorded_at, matched, visitor, channel, "
        "page"
    )
    execute_rows(
        session,
        f"""
        INSERT INTO search_events ({columns}, mixed, counted)
        SELECT {columns}, mixed = 1, counted = 1 FROM {{rows}} AS added ORDER BY row_number
        """,  # noqa: S608 - made of constants
        "site_id:int session_id:text query:text results_count:int response_ms:int occurred_at:int recorded_at:int "
        "matched:text visitor:int channel:text page:text mixed:int counted:int",
        [
            (
                event.site_id,
                event.session_id,
                event.query,
                event.results_count,
                event.response_ms,
                event.occurred_at,
                event.recorded_at,
                event.matched,
                event.visitor,
                event.channel,
                event.page,
                int(event.mixed),
                int(event.counted),
            )
            for event in events
        ],
    )
