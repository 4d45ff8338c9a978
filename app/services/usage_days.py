"""A copy of each day's usage in SQL, so that a month's figures outlive the loss of the counter store."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import date, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.clock import today
from app.counters.base import CounterStore, DayUsage
from app.database import ROW_LOCK, Database
from app.models import Account, UsageDay

KEPT = timedelta(days=400)


class UsageCopies:
    """The accounts seen since the last copy. The counter store decides; the copy is up to a minute behind."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._seen: set[tuple[int, date]] = set()
        self._read: dict[tuple[int, date], DayUsage] = {}
        self._lock = threading.Lock()

    def note(self, account_id: int) -> None:
        """An account made a request now."""
        self._seen.add((account_id, today()))

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
                    for place, earlier in self._read.items():
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


def usage_between(
    session: Session, counters: CounterStore, account_id: int, first_day: date, last_day: date
) -> Sequence[DayUsage]:
    """An account's days with usage, oldest first; from the copy where the counter store has less.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    days = {usage.day: usage for usage in counters.usage_between(account_id, first_day, last_day)}
    copies = select(UsageDay).where(
        UsageDay.account_id == account_id, UsageDay.day >= first_day, UsageDay.day <= last_day
    )
    for copied in session.scalars(copies):
        counted = days.get(copied.day, DayUsage(copied.day, 0, 0))
        days[copied.day] = DayUsage(
            copied.day, max(counted.used, copied.searches), max(counted.indexing, copied.indexing_operations)
        )
    return [days[day] for day in sorted(days)]


def delete_old_copies(session: Session) -> None:
    """Remove copies that nobody looks at any more."""
    session.execute(delete(UsageDay).where(UsageDay.day < today() - KEPT))
