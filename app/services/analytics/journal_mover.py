"""Moving journals of events to SQL, each event exactly once."""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError

from app import clock
from app.models import EventJournal
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_ingestion import ingest
from app.services.analytics.event_journal import Journal, abandoned_journals, directory_id, finished_journal
from app.storage.database import ROW_LOCK, Database

PORTION_BYTES = 131_072
"""Bytes of a journal moved in one transaction: about a thousand events."""

log = logging.getLogger(__name__)


class JournalMover:
    """Moves the journals of one folder.

    The number of bytes that are in SQL is stored in the same transaction as their events.
    """

    def __init__(self, directory: Path, database: Database):
        self._directory = directory
        self._database = database
        self._directory_id: str | None = None

    def move_all(self, journal: Journal, position: int = 0, *, ended: bool) -> tuple[int, int]:
        """Move the events that a journal contains now.

        Args:
            position: Number of its bytes known to be in SQL.
            ended: Whether the journal gets no more events.

        Returns:
            Number of moved events, and the new position.
        """
        moved = 0
        # Events that arrive meanwhile wait. Otherwise, a busy journal would be moved constantly, one or two events at a
        # time.
        size = journal.size
        while position < size:
            count, end = self._move(journal, ended=ended)
            moved += count
            if end == position:
                break  # Only an incomplete line is left.
            position = end
        return moved, position

    def move_abandoned(self) -> int:
        """Move and delete the journals that no living process uses. Returns the number of moved events."""
        moved = 0
        for journal in abandoned_journals(self._directory):
            moved += self.move_all(journal, ended=True)[0]
            self.finish(journal)
        return moved

    def _move(self, journal: Journal, *, ended: bool) -> tuple[int, int]:
        """Move one portion: events, roll-ups, and the new position, in one transaction.

        Returns:
            Number of events read, and the new position.
        """
        with self._database.write() as session:
            # The lock on the position keeps two processes from moving the same portion.
            position = session.scalar(
                select(EventJournal.position).where(EventJournal.id == journal.id).with_for_update(**ROW_LOCK)
            )
            portion = journal.read(position or 0, PORTION_BYTES, ended=ended)
            if portion.end == (position or 0):
                return 0, portion.end
            if position is None:
                session.add(EventJournal(id=journal.id, directory_id=self._identity(), position=portion.end))
                # Now, so that another process that found no position, either, fails on the primary key before it stores
                # the events.
                session.flush()
            else:
                session.execute(update(EventJournal).where(EventJournal.id == journal.id).values(position=portion.end))
            today = to_microseconds(clock.now()) // DAY_MICROSECONDS
            dropped = ingest(session, portion.entries, today) if portion.entries else 0
        _report(journal, portion.damaged, dropped)
        return len(portion.entries), portion.end

    def finish(self, journal: Journal) -> None:
        """Delete a moved journal, then its position. In the other order, a crash in between would move events twice."""
        journal.remove()
        identity = self._identity()
        try:
            with self._database.write() as session:
                # All deleted journals of the folder, including those whose process died before it deleted the position.
                journal_ids = session.scalars(select(EventJournal.id).where(EventJournal.directory_id == identity))
                deleted_ids = [
                    journal_id for journal_id in journal_ids if finished_journal(self._directory, journal_id)
                ]
                session.execute(delete(EventJournal).where(EventJournal.id.in_(deleted_ids)))
        except SQLAlchemyError as error:
            log.warning("search events: the record of %s is deleted with the next one: %s", journal.path.name, error)

    def _identity(self) -> str:
        if self._directory_id is None:
            self._directory_id = directory_id(self._directory)
        return self._directory_id


def _report(journal: Journal, damaged: int, dropped: int) -> None:
    if damaged:
        log.error("search events: skipped %d damaged lines in %s", damaged, journal.path.name)
    if dropped:
        log.info("search events: dropped %d of deleted sites or erased visitors", dropped)
