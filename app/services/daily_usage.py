"""Usage of each day in SQL: a copy of the counter store, which may be lost, and the documents changed.

Documents are counted by the transaction that changes them, so that exactly what was kept is counted, without asking
the counter store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import date, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import today
from app.counters.base import CounterStore, DayUsage
from app.counters.floors import Floor
from app.models import Account, UsageDay
from app.storage.database import ROW_LOCK, Database, is_unavailable

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 10.0
KEPT = timedelta(days=400)

_COUNT_CHANGED = """
INSERT INTO usage_days (account_id, day, searches, indexing_operations, documents_changed) VALUES ({0}, {0}, 0, 0, {0})
ON CONFLICT (account_id, day) DO UPDATE
SET documents_changed = usage_days.documents_changed + excluded.documents_changed
"""


class UsageCopies:
    """The accounts seen since the last copy. The counter store decides; the copy is up to a minute behind."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._seen: set[tuple[int, date]] = set()
        self._read: dict[tuple[int, date], DayUsage] = {}
        self._lock = threading.Lock()

    def note(self, account_id: int, day: date | None = None) -> None:
        """An account made a request now, or what it used on a day changed."""
        self._seen.add((account_id, day or today()))

    def flush(self) -> None:
        """Read the days of the accounts seen, and copy those read the last time.

        What is copied is the lower of both readings: a copy never falls, and a search that was under way at the first
        and failed is given back by the second.

        Raises:
            CountersUnavailable: Usage cannot be read; the accounts are copied the next time.
        """
        with self._lock:
            seen, self._seen = self._seen, set()
            try:
                usage = {place: self._counters.usage_of_day(*place) for place in sorted(seen | self._read.keys())}
                with self._database.write() as session:
                    # All processes lock accounts in this order, so that none waits for another in a circle.
                    for place, earlier in sorted(self._read.items()):
                        _copy(session, place[0], _lower(earlier, usage[place]))
            except Exception:
                self._seen |= seen
                raise
            self._read = {place: usage[place] for place in seen}

    def finish(self) -> None:
        """Copy everything; nothing is under way any more.

        Raises:
            CountersUnavailable: Usage cannot be read.
        """
        self.flush()
        self.flush()


class CopiedUsage:
    """Usage of a day by its copies: a counter store that has lost some of it is raised to that.

    A database that is away is asked again after a pause, so that searches need not wait for it.
    """

    def __init__(self, database: Database):
        self._database = database
        self._paused_until = 0.0

    def read(self, account_id: int, day: date) -> Floor | None:
        """The copy of an account's day; ``None`` while the database is away."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            with self._database.read() as session:
                copied = session.get(UsageDay, (account_id, day))
        except Exception as error:
            if not is_unavailable(error):
                raise
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            log.warning("usage counts on from what the counter store has: %s", error)
            return None
        return Floor(0, 0) if copied is None else Floor(copied.searches, copied.indexing_operations)


def _lower(left: DayUsage, right: DayUsage) -> DayUsage:
    return DayUsage(left.day, min(left.used, right.used), min(left.indexing, right.indexing))


def _copy(session: Session, account_id: int, usage: DayUsage) -> None:
    if not usage.used and not usage.indexing:
        return
    if session.get(Account, account_id, with_for_update=ROW_LOCK) is None:
        return  # It was deleted meanwhile.
    copied = session.get(UsageDay, (account_id, usage.day))
    if copied is None:
        copied = UsageDay(account_id=account_id, day=usage.day, searches=0, indexing_operations=0)
        session.add(copied)
    copied.searches = max(copied.searches, usage.used)
    copied.indexing_operations = max(copied.indexing_operations, usage.indexing)


def count_changed(session: Session, account_id: int, documents: int) -> date:
    """Count documents that this transaction writes or removes; gives the day they are counted on.

    The account is locked, as by whoever copies.
    """
    day = today()
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(_COUNT_CHANGED.format(mark), (account_id, day.isoformat(), documents))
    return day


def discount_changed(session: Session, account_id: int, day: date, documents: int) -> None:
    """Take back what was counted for a request that failed after all."""
    session.execute(
        update(UsageDay)
        .where(UsageDay.account_id == account_id, UsageDay.day == day)
        .values(documents_changed=UsageDay.documents_changed - documents)
    )


def usage_between(
    session: Session, counters: CounterStore | None, account_id: int, first_day: date, last_day: date
) -> Sequence[DayUsage]:
    """An account's days with usage, oldest first; from the copy where the counter store has less.

    Indexing operations are those reported and the documents changed here.

    Args:
        counters: ``None``: all is from the copy.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    counted_days = [] if counters is None else counters.usage_between(account_id, first_day, last_day)
    days = {usage.day: usage for usage in counted_days}
    copies = select(UsageDay).where(
        UsageDay.account_id == account_id, UsageDay.day >= first_day, UsageDay.day <= last_day
    )
    for copied in session.scalars(copies):
        counted = days.get(copied.day, DayUsage(copied.day, 0, 0))
        days[copied.day] = DayUsage(
            copied.day,
            max(counted.used, copied.searches),
            max(counted.indexing, copied.indexing_operations) + copied.documents_changed,
            counted.refused,
        )
    return [days[day] for day in sorted(days)]


def delete_old_copies(session: Session) -> None:
    """Remove copies that nobody looks at any more."""
    session.execute(delete(UsageDay).where(UsageDay.day < today() - KEPT))
