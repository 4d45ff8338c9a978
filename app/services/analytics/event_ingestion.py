"""Moving searches and clicks from the journals to SQL, and counting events that still wait on this machine's disk."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import EventJournal, Site
from app.models.base import from_microseconds, to_microseconds
from app.models.events import AGENT, DAY_MICROSECONDS
from app.services.analytics.clicks import clicked_searches
from app.services.analytics.event_journal import SUFFIX
from app.services.analytics.event_lines import Click, Event, SearchEvent
from app.services.analytics.event_retention import drop_erased
from app.services.analytics.rollups import Changes, apply_changes, lock_sites
from app.storage.database import Database, execute_rows
from backends.text import normal_form

MERGE_MICROSECONDS = 30_000_000
"""Maximum age of an event that a later keystroke can replace."""


def ingest(session: Session, entries: Sequence[Event], today: int) -> int:
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
        _ingest_searches(session, [entry for entry in accepted if isinstance(entry, SearchEvent)], changes)
        _ingest_clicks(session, [entry for entry in accepted if isinstance(entry, Click)], changes)
        apply_changes(session, changes, today)
    return len(entries) - len(accepted)


def _ingest_searches(session: Session, entries: Sequence[SearchEvent], changes: Changes) -> None:
    events = [replace(entry, query=normal_form(entry.query)) for entry in entries]
    if not events:
        return
    flipped = _merge_keystrokes(session, events)
    _update_counted(session, flipped)
    for event in flipped:
        changes.add_search(event, 1 if event.counted else -1)
    _insert(session, events)
    for event in events:
        if event.counted:
            changes.add_search(event)
        if event.matched is not None and event.channel != AGENT:
            moment = to_microseconds(event.occurred_at)
            changes.add_run(event.site_id, event.query, moment, event.results_count, event.matched)


def _merge_keystrokes(session: Session, events: Sequence[SearchEvent]) -> list[SearchEvent]:
    """Decide which events count, among new events and their stored neighbors.

    An event is replaced if the next event of its session begins with its text and is at most 30 s later. A new event
    therefore affects only itself and the event before it, and only events within 30 s matter.

    Returns:
        Stored events whose ``counted`` changed.
    """
    new_events: dict[tuple[int, str], list[SearchEvent]] = defaultdict(list)
    for event in events:
        if event.session_id is not None:
            new_events[event.site_id, event.session_id].append(event)
    if not new_events:
        return []
    stored = _stored_neighbors(session, new_events)
    flipped: list[SearchEvent] = []
    for key, additions in new_events.items():
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


def _replaces(later: SearchEvent, earlier: SearchEvent) -> bool:
    return _is_near(later, earlier) and later.query.startswith(earlier.query)


def _is_near(later: SearchEvent, earlier: SearchEvent) -> bool:
    return later.occurred_at - earlier.occurred_at <= timedelta(microseconds=MERGE_MICROSECONDS)


def _stored_neighbors(
    session: Session, new_events: dict[tuple[int, str], list[SearchEvent]]
) -> dict[tuple[int, str], list[SearchEvent]]:
    """Return the stored events of each session within 30 s of a new event, in order."""
    spans: list[tuple[int, str, int, int]] = []
    for (site_id, session_id), additions in sorted(new_events.items(), key=lambda item: item[0]):
        begin = end = None
        for moment in sorted(to_microseconds(event.occurred_at) for event in additions):
            if end is not None and begin is not None and moment - MERGE_MICROSECONDS > end:
                spans.append((site_id, session_id, begin, end))
                begin = None
            if begin is None:
                begin = moment - MERGE_MICROSECONDS
            end = moment + MERGE_MICROSECONDS
        assert begin is not None
        assert end is not None
        spans.append((site_id, session_id, begin, end))
    stored: dict[tuple[int, str], list[SearchEvent]] = defaultdict(list)
    # CROSS JOIN makes SQLite look up the index of events for each span, instead of scanning the events.
    for row in execute_rows(
        session,
        """
        SELECT event.site_id, event.query, event.results_count, event.occurred_at, event.session_id,
            event.response_ms, event.matched, event.visitor, event.channel, event.page, event.mixed,
            event.recorded_at, event.counted, event.id
        FROM {rows} AS span CROSS JOIN search_events AS event
        WHERE event.site_id = span.site_id AND event.session_id = span.session_id
            AND event.occurred_at BETWEEN span.begin_at AND span.end_at
        ORDER BY event.occurred_at, event.recorded_at, event.id
        """,
        "site_id:int session_id:text begin_at:int end_at:int",
        spans,
    ):
        event = SearchEvent(*row)
        event.occurred_at = from_microseconds(row.occurred_at)
        event.mixed, event.counted = bool(event.mixed), bool(event.counted)
        stored[event.site_id, str(event.session_id)].append(event)
    return stored


def _update_counted(session: Session, flipped: Sequence[SearchEvent]) -> None:
    for counted in (True, False):
        ids = [(event.id,) for event in flipped if event.counted is counted]
        if ids:
            execute_rows(
                session,
                f"UPDATE search_events SET counted = {counted} WHERE id IN (SELECT id FROM {{rows}} AS f)",  # noqa: S608
                "id:int",
                ids,
            )


def _insert(session: Session, events: Sequence[SearchEvent]) -> None:
    # In order of arrival, because ids decide between events of the same time. ``= 1`` yields a boolean in PostgreSQL,
    # which does not convert numbers.
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
                to_microseconds(event.occurred_at),
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


def _ingest_clicks(session: Session, entries: Iterable[Click], changes: Changes) -> None:
    """Store clicks and count new ones.

    Args:
        session: A write transaction that has locked the sites of all ``entries``.
        entries: In order of arrival.
        changes: Collects the counts.
    """
    clicks: dict[tuple[int, int, str], Click] = {}
    for entry in entries:
        # The first of several equal clicks counts, as it does in SQL.
        clicks.setdefault((entry.site_id, entry.search_key, entry.document_id), entry)
    if not clicks:
        return
    clicked = clicked_searches(session, [(click.site_id, click.search_key) for click in clicks.values()])
    added = _insert_clicks(session, clicks.values())
    for key, click in clicks.items():
        if key in added:
            search = click.site_id, click.search_key
            day = to_microseconds(click.occurred_at) // DAY_MICROSECONDS
            changes.add_click(
                (click.site_id, day, normal_form(click.query), click.document_id),
                click.position,
                click.anchor,
                click.channel,
                first=search not in clicked,
            )
            clicked.add(search)


def _insert_clicks(session: Session, clicks: Iterable[Click]) -> set[tuple[int, int, str]]:
    """Insert clicks. Returns the site ID, search key, and document ID of each new click."""
    # Without ``WHERE true``, SQLite would parse ON CONFLICT as the beginning of a join condition.
    columns = "site_id, search_key, query, document_id, position, occurred_at, visitor, channel, session_id"
    rows = execute_rows(
        session,
        f"""
        INSERT INTO search_clicks ({columns}) SELECT {columns} FROM {{rows}} AS added WHERE true ORDER BY row_number
        ON CONFLICT (site_id, search_key, document_id) DO NOTHING
        RETURNING site_id, search_key, document_id
        """,  # noqa: S608 - made of constants
        "site_id:int search_key:int query:text document_id:text position:int occurred_at:int visitor:int channel:text "
        "session_id:text",
        [
            (
                click.site_id,
                click.search_key,
                normal_form(click.query),
                click.document_id,
                click.position,
                to_microseconds(click.occurred_at),
                click.visitor,
                click.channel,
                click.session_id,
            )
            for click in clicks
        ],
    )
    return {(site_id, search_key, document_id) for site_id, search_key, document_id in rows}


_READ_BYTES = 1 << 20


class _Counted(NamedTuple):
    """Number of lines in a part of a journal."""

    start: int
    end: int
    lines: int


class WaitingEvents:
    """Counts waiting events in the journals of one folder, from all processes.

    Counted parts are not read again, so that counting stays cheap even after hours without a database.

    Args:
        directory: Folder of the journals.
        database: Contains the moved position of each journal.
    """

    def __init__(self, directory: Path, database: Database):
        self._directory = directory
        self._database = database
        self._positions: dict[str, int] = {}
        self._counted: dict[str, _Counted] = {}
        self._lock = threading.Lock()

    def count(self, *, database_away: bool = False) -> int:
        """Return the number of waiting events.

        Args:
            database_away: Whether to skip the database. While it is unavailable, nothing is moved, so the last known
                positions are still valid.

        Raises:
            SQLAlchemyError: The positions cannot be read.
        """
        with self._lock:
            journals = self._journals()
            if not database_away and journals:
                self._positions = self._moved_up_to(journals)
            counted = {}
            for name, path in journals.items():
                try:
                    counted[name] = self._count(path, self._positions.get(name, 0), self._counted.get(name))
                except FileNotFoundError:
                    continue  # Another process moved it meanwhile.
            self._counted = counted
            return sum(portion.lines for portion in counted.values())

    def late_bytes(self, after: timedelta) -> int:
        """Return the number of bytes of waiting events in journals that have not been written to for ``after``.

        Raises:
            SQLAlchemyError: The positions cannot be read.
        """
        written_before = time.time() - after.total_seconds()
        sizes: dict[str, int] = {}
        for name, path in self._journals().items():
            with suppress(FileNotFoundError):  # Another process moved it meanwhile.
                status = path.stat()
                if status.st_mtime < written_before:
                    sizes[name] = status.st_size
        moved = self._moved_up_to(sizes) if sizes else {}
        return sum(max(0, length - moved.get(name, 0)) for name, length in sizes.items())

    def _journals(self) -> dict[str, Path]:
        return {path.name.removesuffix(SUFFIX): path for path in self._directory.glob(f"*{SUFFIX}")}

    def _moved_up_to(self, journals: Collection[str]) -> dict[str, int]:
        positions = select(EventJournal.id, EventJournal.position).where(EventJournal.id.in_(journals))
        with self._database.read() as session:
            return {row.id: row.position for row in session.execute(positions)}

    @staticmethod
    def _count(path: Path, start: int, before: _Counted | None) -> _Counted:
        end, lines = (start, 0) if before is None or before.start != start else (before.end, before.lines)
        with path.open("rb") as file:
            file.seek(end)
            # Count complete lines only; a line that is being written, or was torn, is not an event.
            while whole := (data := file.read(_READ_BYTES)).rfind(b"\n") + 1:
                lines += data.count(b"\n")
                end += whole
                file.seek(end)
        return _Counted(start, end, lines)
