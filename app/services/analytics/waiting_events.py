"""Counting the events on this machine's disk that have not been moved to SQL yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from app.models import EventJournal
from app.services.analytics.event_journal import SUFFIX
from app.storage.database import Database

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
            return sum(each.lines for each in counted.values())

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
        places = select(EventJournal.id, EventJournal.position).where(EventJournal.id.in_(journals))
        with self._database.read() as session:
            return {row.id: row.position for row in session.execute(places)}

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
