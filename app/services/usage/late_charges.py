"""Charging searches after an outage of the counter store.

Searches continue while the counter store is unavailable. Each search is appended to a journal on disk, and charged once
when the store is available again. Refunds that could not be made are also kept in the journal.
"""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import orjson

from app import clock
from app.counters.base import CounterStore, Intent, IntentRequest, Reservation, UncountedSearch
from app.counters.metering import day_from_number, day_number, day_of
from app.services.analytics.event_journal import SUFFIX, EventJournalUnavailable, Journal, frame, left_journals, unframe
from app.services.usage.daily_usage import UsageCopies

PORTION_BYTES = 131_072
"""Maximum number of bytes of a journal read at a time."""
_CHARGE, _GIVE_BACK = "charge", "give-back"

log = logging.getLogger(__name__)


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
        """Record a search that was answered without being counted. If that fails, it is logged but not charged."""
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
            for journal in left_journals(self._directory):
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
                self._counters.settle(search, once=once, now=clock.now().timestamp())
                self._copies.note(search.account_id, day)
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
