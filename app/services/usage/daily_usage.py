"""Usage of accounts by day outside the counter store: copies of its counts in SQL, and charges that wait for it.

The counter store enforces quotas. The copies are up to a minute old. They restore usage when the counter store has lost
data. Searches continue while it is unavailable. Each is then appended to a journal on disk, and charged once when the
store is available again. Refunds that could not be made are also kept in the journal.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import now, today
from app.counters.base import CounterStore
from app.counters.metering import NO_MINIMUM, MinimumUsage, day_from_number, day_number, day_of
from app.counters.values import DayUsage, Intent, IntentRequest, Reservation, UncountedSearch
from app.errors import ApiError, ErrorCode
from app.models import Account, Site, UsageDay
from app.services.analytics.event_journal import SUFFIX, EventJournalUnavailable, Journal, abandoned_journals
from app.services.analytics.event_lines import frame, unframe
from app.services.sites import count_documents, listed
from app.storage.database import ROW_LOCK, Database, is_unavailable

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 10.0
"""Seconds before an unavailable database is queried again."""
RETENTION = timedelta(days=400)
"""Age at which copies are deleted."""

_COUNT_CHANGED = """
INSERT INTO usage_days
    (account_id, day, searches, indexing_operations, documents_changed, documents_before, most_documents)
SELECT {0}, {0}, 0, 0, {0}, total - {0}, CASE WHEN {0} < 0 THEN total - {0} ELSE total END
FROM (
    SELECT COALESCE(SUM(document_count), 0) AS total FROM sites WHERE account_id = {0} AND deleted_at IS NULL
) AS stored
WHERE true
ON CONFLICT (account_id, day) DO UPDATE SET
    documents_changed = usage_days.documents_changed + excluded.documents_changed,
    documents_before = COALESCE(usage_days.documents_before, excluded.documents_before),
    most_documents = CASE
        WHEN usage_days.most_documents > excluded.most_documents THEN usage_days.most_documents
        ELSE excluded.most_documents
    END
"""
_COUNT_CRAWLED = """
INSERT INTO usage_days (account_id, day, searches, indexing_operations, pages_crawled) VALUES ({0}, {0}, 0, 0, {0})
ON CONFLICT (account_id, day) DO UPDATE SET pages_crawled = usage_days.pages_crawled + excluded.pages_crawled
"""


class UsageCopies:
    """Copies changed usage from the counter store to SQL. Copies are up to a minute old."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._changed: set[tuple[int, date]] = set()
        self._read: dict[tuple[int, date], DayUsage] = {}
        self._lock = threading.Lock()

    def record(self, account_id: int, day: date | None = None) -> None:
        """Record that an account's usage changed on a day, by default today."""
        self._changed.add((account_id, day or today()))

    def flush(self) -> None:
        """Read the usage of the recorded days, and copy the days read by the previous flush.

        The copy is the lower of two readings, so it never has to decrease: if a search was in progress at the first
        reading and then failed, the second reading already includes its refund.

        Raises:
            CountersUnavailable: Usage cannot be read; the next flush copies these accounts.
        """
        with self._lock:
            changed, self._changed = self._changed, set()
            try:
                # Read before the transaction, which must not wait for the counter store.
                usage = {
                    account_day: self._counters.usage_of_day(*account_day)
                    for account_day in sorted(changed | self._read.keys())
                }
                with self._database.write() as session:
                    # All processes lock accounts in the same order, so they cannot deadlock.
                    for account_day, earlier in sorted(self._read.items()):
                        _copy(session, account_day[0], _lower(earlier, usage[account_day]))
            except Exception:
                self._changed |= changed
                raise
            self._read = {account_day: usage[account_day] for account_day in changed}

    def finish(self) -> None:
        """Copy everything, at shutdown, when no request is in progress.

        Raises:
            CountersUnavailable: Usage cannot be read.
        """
        # The first flush reads the latest usage, and the second one copies it.
        self.flush()
        self.flush()


class CopiedUsage:
    """Reads copied usage, to which a counter store is raised after it has lost data.

    After a failure, the database is not queried for a while, so that searches need not wait for it.
    """

    def __init__(self, database: Database):
        self._database = database
        self._paused_until = 0.0

    def read(self, account_id: int, day: date) -> MinimumUsage | None:
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
        return NO_MINIMUM if copied is None else MinimumUsage(copied.searches, copied.indexing_operations)


def _lower(earlier: DayUsage, later: DayUsage) -> DayUsage:
    return DayUsage(
        earlier.day,
        min(earlier.used, later.used),
        min(earlier.indexing, later.indexing),
        min(earlier.rejected, later.rejected),
    )


def _copy(session: Session, account_id: int, usage: DayUsage) -> None:
    if not (usage.used or usage.indexing or usage.rejected):
        return
    if session.get(Account, account_id, with_for_update=ROW_LOCK) is None:
        return  # It was deleted meanwhile.
    copied = session.get(UsageDay, (account_id, usage.day))
    if copied is None:
        copied = UsageDay(account_id=account_id, day=usage.day, searches=0, indexing_operations=0, refused_searches=0)
        session.add(copied)
    # Another process may have copied a later reading. A copy never falls.
    copied.searches = max(copied.searches, usage.used)
    copied.indexing_operations = max(copied.indexing_operations, usage.indexing)
    copied.refused_searches = max(copied.refused_searches, usage.rejected)


def count_changed(session: Session, account_id: int, documents: int, *, added: int) -> date:
    """Count documents that this transaction writes or deletes. Returns the day they count toward.

    Call it after flushing the sites. Locks the account's usage of the day, as the copying process does.

    Args:
        documents: Number of documents to charge as indexing operations.
        added: Change of the number of stored documents; negative if documents were removed.
    """
    day = today()
    _execute(session, _COUNT_CHANGED, account_id, day.isoformat(), documents, added, added, added, account_id)
    return day


@contextmanager
def recording_documents(session: Session, account_id: int) -> Iterator[None]:
    """Record a change of the number of stored documents that is not charged, such as restoring a site."""
    before = count_documents(session, account_id)
    yield
    session.flush()
    # Counted in SQL, which the flush above has updated.
    added = count_documents(session, account_id) - before
    if added:
        count_changed(session, account_id, 0, added=added)


def count_crawled(session: Session, account_id: int, pages: int) -> None:
    """Count pages whose outcomes this transaction stores."""
    if pages:
        _execute(session, _COUNT_CRAWLED, account_id, today().isoformat(), pages)


def _execute(session: Session, statement: str, *values: int | str) -> None:
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(statement.format(mark), values)


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
    copies = select(UsageDay).where(
        UsageDay.account_id == account_id, UsageDay.day >= first_day, UsageDay.day <= last_day
    )
    return merge_copies(counted_days, session.scalars(copies))


def merge_copies(counted_days: Iterable[DayUsage], copies: Iterable[UsageDay]) -> Sequence[DayUsage]:
    """Return an account's days with usage, oldest first, from its counts and their copies."""
    days = {usage.day: usage for usage in counted_days}
    for copied in copies:
        counted = days.get(copied.day, DayUsage(copied.day, 0, 0))
        days[copied.day] = DayUsage(
            copied.day,
            max(counted.used, copied.searches),
            # Clients report the former to the counter store; SQL alone counts the latter.
            max(counted.indexing, copied.indexing_operations) + copied.documents_changed,
            max(counted.rejected, copied.refused_searches),
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


PORTION_BYTES = 131_072
"""Maximum number of bytes of a journal read at a time."""
_CHARGE, _GIVE_BACK = "charge", "give-back"


class LateCharges:
    """Records charges and refunds, and applies them once the counter store is available again. Thread-safe.

    Args:
        directory: Folder of the journals, on a local disk, shared by all processes of a machine.
        counters: The store that searches are charged to.
        copies: Notified of changed days.
    """

    def __init__(self, directory: Path, counters: CounterStore, copies: UsageCopies):
        self._directory = directory
        self._counters = counters
        self._copies = copies
        self._journal: Journal | None = None
        self._append_lock = threading.Lock()
        self._settle_lock = threading.Lock()

    def charge(self, search: UncountedSearch) -> None:
        """Record a search that was served without being counted. If that fails, it is logged but not charged."""
        intent = None if search.intent is None else (search.intent.key, search.intent.text)
        self._keep(_CHARGE, search.account_id, search.gateway_site_id, search.searched_at, intent)

    def give_back(self, reservation: Reservation) -> None:
        """Record a refund for a failed search. If that fails, the error is logged and the search stays charged."""
        intent = None if reservation.intent is None else tuple(reservation.intent)
        day = day_number(reservation.day)
        self._keep(_GIVE_BACK, reservation.account_id, reservation.gateway_site_id, day, intent)

    def settle(self) -> int:
        """Make all recorded charges and refunds, including those left by dead processes.

        Returns:
            Number of settled searches.

        Raises:
            CountersUnavailable: The counter store is still unavailable. Nothing is lost or settled twice.
        """
        with self._settle_lock:
            # Without an outage there are no journals, and the store need not be asked.
            if not any(self._directory.glob(f"*{SUFFIX}")):
                return 0
            # Raises during an outage, before this process gives up its journal.
            self._counters.check()
            # Releases this process's journal, so that the loop settles it like the journals of dead processes.
            self.close()
            settled = 0
            for journal in abandoned_journals(self._directory):
                settled += self._settle(journal)
                journal.remove()
        return settled

    def waiting_bytes(self) -> int:
        """Return the size of unsettled entries on this machine, in bytes."""
        sizes = 0
        for path in self._directory.glob(f"*{SUFFIX}"):
            with suppress(FileNotFoundError):  # Another process settled it meanwhile.
                sizes += path.stat().st_size
        return sizes

    def close(self) -> None:
        """Release this process's journal, so that the next process to settle takes it over."""
        with self._append_lock:
            journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def _keep(self, *values: Any) -> None:
        # The random name makes settling idempotent if a process dies before it deletes the journal.
        line = frame(orjson.dumps((secrets.token_hex(8), *values)))
        try:
            with self._append_lock:
                if self._journal is not None and not self._journal.writable:
                    self._journal.close()
                    self._journal = None
                if self._journal is None:
                    self._journal = Journal.create(self._directory)
                self._journal.append(line)
        except EventJournalUnavailable as error:
            log.error("cannot record a search to be charged when the counter store is back: %s", error)

    def _settle(self, journal: Journal) -> int:
        size = journal.size
        settled = position = damaged = 0
        while position < size:
            lines, position = journal.read_lines(position, PORTION_BYTES, ended=True)
            for line in lines:
                payload = unframe(line)
                if payload is None:
                    damaged += 1
                    continue
                once, *values = orjson.loads(payload)
                search, day = _read(*values)
                self._counters.settle(search, once=once, now=now().timestamp())
                self._copies.record(search.account_id, day)
                settled += 1
        if damaged:
            log.error("skipped %d damaged lines in %s: their searches are not charged", damaged, journal.path)
        if settled:
            log.warning("settled %d searches made while the counter store was unavailable", settled)
        return settled


def _read(
    kind: str, account_id: int, site_id: int | None, moment: float, intent: Any
) -> tuple[UncountedSearch | Reservation, date]:
    """Return the charge in a journal line, and the day whose usage it changes."""
    if kind == _CHARGE:
        typed = None if intent is None else IntentRequest(*intent)
        return UncountedSearch(account_id, site_id, moment, typed), day_of(moment)
    day = day_from_number(int(moment))
    return Reservation(account_id, site_id, day, None if intent is None else Intent(*intent)), day
