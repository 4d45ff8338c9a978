"""One clock for all machines of an installation: that of the database they share.

Leases, schedules, and windows of limits compare times that different machines wrote. A machine whose clock is wrong
would take over what others work on, and begin everybody's windows anew. So each process compares its clock with that of
PostgreSQL, and where they differ by more than networks explain, it goes by PostgreSQL's.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from app import clock
from app.storage.database import Database

COMPARED_EVERY_SECONDS = 5.0
TOLERATED = timedelta(seconds=1)
"""How far clocks may differ that are kept by NTP. Less is not corrected."""

log = logging.getLogger(__name__)


def follow(database: Database) -> None:
    """Compare the clocks before the first session of this process, and now and then before another.

    A SQLite file is on one machine, whose clock is the only one.
    """
    if not database.is_sqlite:
        database.before_sessions = _Comparison(database.engine).compare_if_due


class _Comparison:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._due_at = 0.0
        self._first = True
        self._turn = threading.Lock()
        self._correction = timedelta(0)

    def compare_if_due(self) -> None:
        """Ask the server for the time, if that is long ago. The first time, all threads wait for it."""
        if time.monotonic() < self._due_at or not self._turn.acquire(blocking=self._first):
            return
        try:
            if time.monotonic() >= self._due_at:
                try:
                    self._compare()
                    self._first = False
                finally:  # Without the database, nobody tries again for a while.
                    self._due_at = time.monotonic() + COMPARED_EVERY_SECONDS
        finally:
            self._turn.release()

    def _compare(self) -> None:
        with self._engine.connect() as connection:
            began = clock.machine_time()
            theirs = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
            ended = clock.machine_time()
        if abs(ended - began) < TOLERATED:
            self._use(datetime.fromtimestamp(float(theirs), UTC) - (began + (ended - began) / 2))

    def _use(self, difference: timedelta) -> None:
        correction = difference if abs(difference) > TOLERATED else timedelta(0)
        if abs(correction - self._correction) > TOLERATED:
            _tell(correction)
        self._correction = correction
        clock.correct(correction)


def _tell(correction: timedelta) -> None:
    if correction:
        log.error(
            "this machine's clock is %.0f s %s; the database's clock is used instead",
            abs(correction.total_seconds()),
            "behind" if correction > timedelta(0) else "ahead",
        )
    else:
        log.warning("this machine's clock is right again")
