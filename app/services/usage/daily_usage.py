"""x"""

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


_INDEX = re.compile(r"site_([1-9][0-9]{0,18})(?:_[0-9a-z_]{1,44})?", re.ASCII)


def find_index(session: Session, account_id: int, index: str) -> int:
    """The site whose index is called ``index``, by its lasting name or the engine's.

    Raises:
        ApiError: 404 ``index_not_found`` if the account has none of that name.
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
        searches_today, searches_this_month: Charged in UTC days and months, as of the last copy of the counter store,
            which is up to a minute old.
        keys: Disabled and expired ones included.
    """

    account: Account
    searches_today: int
    searches_this_month: int
    documents: int
    sites: int
    keys: int

    def share(self, limits: PlanLimits) -> float:
        """The largest part of a quota that is used: 1.0 is all of it."""
        used = (
            (self.searches_today, limits.searches_per_day),
            (self.documents, limits.documents),
            (self.sites, limits.sites),
            (self.keys, limits.keys),
        )
        return max((count / max(limit, 1) for count, limit in used if limit is not None), default=0.0)


def list_account_usage(session: Session, today: date) -> Sequence[AccountUsage]:
    """Every account with what it uses, oldest first."""
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
