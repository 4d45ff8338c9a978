"""The number of events of a machine that are on disk and not in the tables yet."""

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
    """Lines from one place of a journal to another."""

    start: int
    end: int
    lines: int


class WaitingEvents:
    """Counts what waits in the journals of one folder, whichever process wrote it.

    What was counted once is not read again, so that a count costs little also after hours without a database.

    Args:
        directory: Folder of the journals.
        database: Knows how far each journal was moved.
    """

    def __init__(self, directory: Path, database: Database):
        self._directory = directory
        self._database = database
        self._positions: dict[str, int] = {}
        self._counted: dict[str, _Counted] = {}
        self._lock = threading.Lock()

    def count(self, *, database_away: bool = False) -> int:
        """The number of events that wait.

        Args:
            database_away: Whether the database need not be asked. Then nothing is moved, and the places that were read
                before still hold.

        Raises:
            SQLAlchemyError: The database cannot tell how far journals were moved.
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
                    continue  # It was moved meanwhile.
            self._counted = counted
            return sum(each.lines for each in counted.values())

    def late_bytes(self, after: timedelta) -> int:
        """Bytes of events that wait in journals nobody has written to for so long.

        Raises:
            SQLAlchemyError: The database cannot tell how far journals were moved.
        """
        written_before = time.time() - after.total_seconds()
        sizes: dict[str, int] = {}
        for name, path in self._journals().items():
            with suppress(FileNotFoundError):  # It was moved meanwhile.
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
            # Only whole lines: one that is being written, or was torn, is no event.
            while whole := (data := file.read(_READ_BYTES)).rfind(b"\n") + 1:
                lines += data.count(b"\n")
                end += whole
                file.seek(end)
        return _Counted(start, end, lines)
