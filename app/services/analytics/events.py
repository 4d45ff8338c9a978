"""Recording searches and clicks: on disk before the response, and in SQL soon after, each exactly once.

This is the entrance to analytics. ``event_lines.py`` defines the events, ``event_journal.py`` manages their files,
``journal_mover.py`` moves them to SQL, ``event_ingestion.py`` writes their rows, ``rollups.py`` counts them,
``event_retention.py`` deletes them, and ``reports.py`` reads them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from pathlib import Path

from prometheus_client import Counter
from sqlalchemy.exc import SQLAlchemyError

from app.clock import Pauses
from app.services.analytics.event_journal import (
    EventJournalUnavailable,
    Journal,
)
from app.services.analytics.event_lines import Click, Event, SearchEvent, encode
from app.services.analytics.event_retention import EventMaintenance, delete_expired, forget_site
from app.services.analytics.journal_mover import JournalMover
from app.storage.database import Database, is_unavailable

__all__ = [
    "Click",
    "EventJournalUnavailable",
    "EventMaintenance",
    "EventRecorder",
    "SearchEvent",
    "delete_expired",
    "forget_site",
]

ROTATION_BYTES = 4_194_304
"""Size at which a completely moved journal is replaced by a new journal."""
GATHER_SECONDS = 0.5
"""Seconds for which events are collected before they are moved."""
ADOPTION_SECONDS = 1.0
"""Seconds between two checks for journals of dead processes."""
MAINTENANCE_SECONDS = 60.0
PAUSES = Pauses(1.0, 1.0)
"""Pauses between attempts while the database is unavailable."""
LOST_LOG_SECONDS = 60.0
"""Minimum seconds between two log lines about lost events."""
LOST_EVENTS = Counter(
    "search_events_lost_total", "Search events that could not be stored, for example because the disk was full."
)

log = logging.getLogger(__name__)
# Weak, so that the registry does not keep recorders and their journals alive.
_recorders: weakref.WeakSet[EventRecorder] = weakref.WeakSet()


class EventRecorder:
    """Records events in this process's journal, and moves journals to SQL.

    Thread-safe. After ``fork``, the child starts its own journal and thread.

    Args:
        directory: Folder of the journals, on a local disk, shared by all processes of a machine.
        database: Destination of the events. A forked child must dispose of its connections before it records.
        retention_days: Age in days at which events are deleted; ``None`` if this process does not delete any.
        background: Whether the first event starts the thread. If not, call :meth:`flush`.
    """

    def __init__(
        self, directory: Path, database: Database, *, retention_days: int | None = None, background: bool = True
    ):
        self._directory = directory
        self._mover = JournalMover(directory, database)
        self._maintenance = None if retention_days is None else EventMaintenance(database, retention_days)
        self._background = background
        self._reset_state()
        _recorders.add(self)

    def _reset_state(self) -> None:
        self._journal: Journal | None = None
        self._given_up: list[Journal] = []
        """Journals of this process that accept no more events. The thread that moves events closes them."""
        self._moved: dict[str, int] = {}
        """Number of bytes known to be in SQL, by journal ID."""
        self._thread: threading.Thread | None = None
        self._append_lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._thread_lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._away = False
        self._unlogged = 0
        """Number of events lost since the last log line about lost events."""
        self._log_lost_at = 0.0
        self._maintenance_due = 0.0

    def _after_fork(self) -> None:
        journals = [*self._given_up, self._journal]
        self._reset_state()
        for journal in journals:
            if journal is not None:
                journal.close()  # The parent's own descriptor keeps the lock.

    def record(self, event: Event) -> None:
        """Write ``event`` to disk, where it survives a crash of this process. Analytics include it within two seconds.

        Raises:
            EventJournalUnavailable: The event could not be recorded (no space, an I/O error).
            ValueError: The event cannot be stored.
        """
        line = encode(event, time.time_ns() // 1000)
        with self._append_lock:
            journal = self._journal
            if journal is None or not journal.writable:
                journal = self._open_journal()
            journal.append(line)
        # Setting an event takes a lock, so avoid it on most calls.
        if not self._wake.is_set():
            self._wake.set()
        # Started by the first event: a thread that the master process started would not exist in its workers.
        if self._thread is None and self._background:
            self.start()

    def record_if_possible(self, event: SearchEvent) -> None:
        """Record a search. If that fails, count and log the lost event, because the visitor gets the results anyway.

        Raises:
            ValueError: As :meth:`record`.
        """
        try:
            self.record(event)
        except EventJournalUnavailable as error:
            LOST_EVENTS.inc()
            self._unlogged += 1
            if time.monotonic() >= self._log_lost_at:
                log.error("search events: %d events could not be recorded: %s", self._unlogged, error)
                self._unlogged, self._log_lost_at = 0, time.monotonic() + LOST_LOG_SECONDS

    def _open_journal(self) -> Journal:
        new_journal = Journal.create(self._directory)
        if self._journal is not None:
            # Not closed here, because the thread that moves events may be reading it.
            self._given_up.append(self._journal)
        self._journal = new_journal
        return new_journal

    def start(self) -> None:
        """Start the thread that moves events, takes over journals, and deletes old events, unless it is running."""
        with self._thread_lock:
            if self._thread is None or not self._thread.is_alive():
                self._stopping.clear()
                self._thread = threading.Thread(target=self._run, name="search-events", daemon=True)
                self._thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Stop the thread and move the remaining events. If that fails, they stay on disk for the next process."""
        self._stopping.set()
        self._wake.set()
        with self._thread_lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout_seconds)
            if thread.is_alive():
                log.warning("search events: still busy after %s s; the next start moves the rest", timeout_seconds)
                return
        # Delete the journal if nothing is left to move, so that the next process need not take it over.
        if self._flush_or_log(adopt=False):
            with self._flush_lock:
                self._retire()
        with self._append_lock:
            journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def flush(self) -> int:
        """Move the events of this process and of dead processes to SQL.

        Returns:
            Number of moved events.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is unavailable. Nothing is lost; call this again.
        """
        with self._flush_lock:
            return self._flush_own() + self._flush_left()

    def _run(self) -> None:
        pause = GATHER_SECONDS
        adoption_due = 0.0
        while not self._stopping.is_set():
            self._wake.wait(ADOPTION_SECONDS)
            self._stopping.wait(pause)
            # Cleared before moving, so that an event that arrives meanwhile wakes the thread again.
            self._wake.clear()
            adopt = time.monotonic() >= adoption_due
            if self._flush_or_log(adopt=adopt):
                pause = GATHER_SECONDS
                if adopt:
                    adoption_due = time.monotonic() + ADOPTION_SECONDS
            else:
                # The events are still waiting, so the next attempt must not wait for a new event.
                pause = PAUSES.after(1)
                self._wake.set()

    def _flush_or_log(self, *, adopt: bool = True) -> bool:
        """Move events. Returns whether it succeeded. Logs once when the database fails, and once when it recovers."""
        try:
            with self._flush_lock:
                self._flush_own()
                if adopt:
                    self._flush_left()
                    self._maintain()
        except (SQLAlchemyError, OSError) as error:
            if not self._away:
                _log_failure(error)
            self._away = True
            return False
        if self._away:
            log.warning("search events are being moved to the database again")
            self._away = False
        return True

    def _maintain(self) -> None:
        if self._maintenance is not None and time.monotonic() >= self._maintenance_due:
            more = self._maintenance.run()
            self._maintenance_due = time.monotonic() + (0 if more else MAINTENANCE_SECONDS)

    def _flush_own(self) -> int:
        journal = self._journal
        if journal is None:
            return 0
        moved, position = self._mover.move_all(journal, self._moved.get(journal.id, 0), ended=False)
        self._moved = {journal.id: position}
        if position >= ROTATION_BYTES:
            self._retire()
        return moved

    def _retire(self) -> None:
        """Delete the journal if all of its events have been moved to SQL. The next event starts a new journal."""
        with self._append_lock:
            journal = self._journal
            # Compared under the lock, so that no event is appended between this and the deletion.
            if journal is None or journal.size != self._moved.get(journal.id, 0):
                return
            self._journal = None
        self._mover.finish(journal)

    def _flush_left(self) -> int:
        while self._given_up:
            # Closing a journal releases its lock, so that it is taken over like the journal of a dead process.
            self._given_up.pop().close()
        return self._mover.move_abandoned()


def _log_failure(error: Exception) -> None:
    fault = isinstance(error, SQLAlchemyError) and not is_unavailable(error)
    log.log(
        logging.ERROR if fault else logging.WARNING,
        "search events stay on disk until they can be moved: %s",
        error,
        exc_info=fault,
    )


def _after_fork() -> None:
    for recorder in list(_recorders):
        recorder._after_fork()


os.register_at_fork(after_in_child=_after_fork)
