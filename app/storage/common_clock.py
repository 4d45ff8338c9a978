"""One clock for all machines of an installation: that of the database they share.

Leases, schedules, and windows of limits compare times that different machines wrote. A machine whose clock is wrong
would take over what others work on, and begin everybody's windows anew. So each process compares its clock with that of
PostgreSQL, and where they differ by more than networks explain, it goes by PostgreSQL's.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError

from app import clock
from app.storage.database import Database

COMPARED_EVERY_SECONDS = 5.0
TOLERATED = timedelta(seconds=1)
"""How far clocks may differ that are kept by NTP. Less is not corrected."""

log = logging.getLogger(__name__)


def follow(database: Database) -> None:
    """Compare the clocks from now on whenever a connection is used and the last time is long ago.

    A SQLite file is on one machine, whose clock is the only one.
    """
    if not database.is_sqlite:
        event.listen(database.engine, "checkout", _Comparison().compare)


class _Comparison:
    def __init__(self) -> None:
        self._due_at = 0.0
        self._correction = timedelta(0)

    def compare(self, connection: Any, *_: Any) -> None:
        """Ask the server for the time; called with a connection that nobody uses yet."""
        moment = time.monotonic()
        if moment < self._due_at:
            return
        self._due_at = moment + COMPARED_EVERY_SECONDS
        began = clock.machine_time()
        try:
            theirs = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0]
            connection.rollback()
        except connection.Error as error:
            raise DisconnectionError from error
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
