"""Daily usage of accounts: copies of the counter store's counts in SQL, and totals per account.

The counter store enforces quotas. The copies are up to a minute old. They restore usage when the counter store has lost
data.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import case, delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import today
from app.counters.base import CounterStore, DayUsage
from app.counters.metering import Floor
from app.errors import ApiError, ErrorCode
from app.models import Account, Key, Site, UsageDay
from app.plans import PlanLimits
from app.services.sites import listed
from app.storage.database import ROW_LOCK, Database, is_unavailable

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 10.0
"""Seconds before an unavailable database is queried again."""
RETENTION = timedelta(days=400)
"""Age at which copies are deleted."""

_COUNT_CHANGED = """
INSERT INTO usage_days (account_id, day, searches, indexing_operations, documents_changed) VALUES ({0}, {0}, 0, 0, {0})
ON CONFLICT (account_id, day) DO UPDATE
SET documents_changed = usage_days.documents_changed + excluded.documents_changed
"""


class UsageCopies:
    """Copies changed usage from the counter store to SQL. Copies are up to a minute old."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._changed: set[tuple[int, date]] = set()
        self._read: dict[tuple[int, date], DayUsage] = {}
        self._lock = threading.Lock()

    def note(self, account_id: int, day: date | None = None) -> None:
        """Record that an account's usage changed on a day, by default today."""
        self._changed.add((account_id, day or today()))

    def flush(self) -> None:
        """Read the usage of the noted days, and copy the days read by the previous flush.

        The copy is the lower of two readings, so it never has to decrease: if a search was in progress at the first
        reading and then failed, the second reading already includes its refund.

        Raises:
            CountersUnavailable: Usage cannot be read; the next flush copies these accounts.
        """
        with self._lock:
            changed, self._changed = self._changed, set()
            try:
                # Read before the transaction, which must not wait for the counter store.
                usage = {place: self._counters.usage_of_day(*place) for place in sorted(changed | self._read.keys())}
                with self._database.write() as session:
                    # All processes lock accounts in the same order, so they cannot deadlock.
                    for place, earlier in sorted(self._read.items()):
                        _copy(session, place[0], _lower(earlier, usage[place]))
            except Exception:
                self._changed |= changed
                raise
            self._read = {place: usage[place] for place in changed}

    def finish(self) -> None:
        """Copy everything, at shutdown, when no request is in progress.

        Raises:
            CountersUnavailable: Usage cannot be read.
        """
        # The first flush reads the latest usage, and the second one copies it.
        self.flush()
        self.flush()


class CopiedUsage:
    """Reads copied usage, the minimum to which a counter store that lost data is raised.

    After a failure, the database is not queried for a while, so that searches need not wait for it.
    """

    def __init__(self, database: Database):
        self._database = database
        self._paused_until = 0.0

    def read(self, account_id: int, day: date) -> Floor | None:
        """Return the copied usage of an account on a day; ``None`` while the database is unavailable."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            with self._database.read() as session:
                copied = session.get(UsageDay, (account_id, day))
        except Exception as error:
            if not is_unavailable(error):
                raise
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            log.warning("cannot read copied usage, so the counter store's own counts are used: %s", error)
            return None
        return Floor(0, 0) if copied is None else Floor(copied.searches, copied.indexing_operations)


def _lower(earlier: DayUsage, later: DayUsage) -> DayUsage:
    return DayUsage(earlier.day, min(earlier.used, later.used), min(earlier.indexing, later.indexing))


def _copy(session: Session, account_id: int, usage: DayUsage) -> None:
    if not usage.used and not usage.indexing:
        return
    if session.get(Account, account_id, with_for_update=ROW_LOCK) is None:
        return  # It was deleted meanwhile.
    copied = session.get(UsageDay, (account_id, usage.day))
    if copied is None:
        copied = UsageDay(account_id=account_id, day=usage.day, searches=0, indexing_operations=0)
        session.add(copied)
    # Another process may have copied a later reading. A copy never falls.
    copied.searches = max(copied.searches, usage.used)
    copied.indexing_operations = max(copied.indexing_operations, usage.indexing)


def count_changed(session: Session, account_id: int, documents: int) -> date:
    """Count documents that this transaction writes or deletes. Returns the day they count toward.

    Locks the account, as the copying process does.
    """
    day = today()
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(_COUNT_CHANGED.format(mark), (account_id, day.isoformat(), documents))
    return day


def discount_changed(session: Session, account_id: int, day: date, documents: int) -> None:
    """Undo the count for a request that failed in the end."""
    session.execute(
        update(UsageDay)
        .where(UsageDay.account_id == account_id, UsageDay.day == day)
        .values(documents_changed=UsageDay.documents_changed - documents)
    )


def usage_between(
    session: Session, counters: CounterStore | None, account_id: int, first_day: date, last_day: date
) -> Sequence[DayUsage]:
    """Return an account's days with usage, oldest first, using the copy where the counter store has less.

    Indexing operations include reported operations and documents changed through this service.

    Args:
        counters: ``None`` to read the copies only.

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
            # Clients report the former to the counter store; SQL alone counts the latter.
            max(counted.indexing, copied.indexing_operations) + copied.documents_changed,
            counted.refused,
        )
    return [days[day] for day in sorted(days)]


def delete_old_copies(session: Session) -> None:
    """Delete copies older than :data:`RETENTION`."""
    session.execute(delete(UsageDay).where(UsageDay.day < today() - RETENTION))


_INDEX = re.compile(r"site_([1-9][0-9]{0,18})(?:_[0-9a-z_]{1,44})?", re.ASCII)


def find_index(session: Session, account_id: int, index: str) -> int:
    """Return the ID of the site with this index, given the index's permanent name or its name in the engine.

    Raises:
        ApiError: 404 ``index_not_found`` if the account has no such index.
    """
    match = _INDEX.fullmatch(index)
    site_id = int(match[1]) if match else 0
    if 0 < site_id < 2**63:
        site = session.scalar(select(Site).where(Site.id == site_id, listed(account_id)))
        if site is not None and index in (site.index, site.engine_index):
            return site.id
    raise ApiError(ErrorCode.INDEX_NOT_FOUND, "Index not found.")


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """Usage of one account.

    Attributes:
        searches_today, searches_this_month: Charged searches in the UTC day and month, from copies up to a minute old.
        keys: Number of keys, including disabled and expired keys.
    """

    account: Account
    searches_today: int
    searches_this_month: int
    documents: int
    sites: int
    keys: int

    def share(self, limits: PlanLimits) -> float:
        """Return the used share of the most used quota; 1.0 means that it is exhausted."""
        used = (
            (self.searches_today, limits.searches_per_day),
            (self.documents, limits.documents),
            (self.sites, limits.sites),
            (self.keys, limits.keys),
        )
        return max((count / max(limit, 1) for count, limit in used if limit is not None), default=0.0)


def list_account_usage(session: Session, today: date) -> Sequence[AccountUsage]:
    """Return all accounts with their usage, oldest first. The number of SQL queries is fixed."""
    month = (
        select(
            UsageDay.account_id,
            func.sum(UsageDay.searches),
            func.sum(case((UsageDay.day == today, UsageDay.searches), else_=0)),
        )
        .where(UsageDay.day >= today.replace(day=1), UsageDay.day <= today)
        .group_by(UsageDay.account_id)
    )
    searches = {account_id: (int(in_month), int(of_day)) for account_id, in_month, of_day in session.execute(month)}
    in_use = Site.deleted_at.is_(None)
    counted = (
        select(Site.account_id, func.count(), func.sum(Site.document_count)).where(in_use).group_by(Site.account_id)
    )
    sites = {account_id: (count, int(documents)) for account_id, count, documents in session.execute(counted)}
    of_accounts = select(Key.account_id, func.count()).join(Site).where(in_use).group_by(Key.account_id)
    keys = dict(session.execute(of_accounts).all())
    listed = []
    for account in session.scalars(select(Account).order_by(Account.id)):
        in_month, of_day = searches.get(account.id, (0, 0))
        count, documents = sites.get(account.id, (0, 0))
        listed.append(AccountUsage(account, of_day, in_month, documents, count, keys.get(account.id, 0)))
    return listed
