"""x"""

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
"""How much of a journal is read at a time."""
_CHARGE, _GIVE_BACK = "charge", "give-back"

log = logging.getLogger(__name__)


class LateCharges:
    """Charges and refunds to be made once the counter store is back. Safe to use from many threads.

    Args:
        directory: Folder of the journals, on a local disk, the same for all processes of one machine.
        counters: Where searches are charged.
        copies: Is told whose days change.
    """

    def __init__(self, directory: Path, counters: CounterStore, copies: UsageCopies):
        self._directory = directory
        self._counters = counters
        self._copies = copies
        self._journal: Journal | None = None
        self._append_lock = threading.Lock()
        self._settle_lock = threading.Lock()

    def charge(self, search: UncountedSearch) -> None:
        """Keep a search that was answered uncounted; if it cannot be kept, that is logged: it has its result."""
        intent = None if search.intent is None else (search.intent.key, search.intent.text)
        self._keep(_CHARGE, search.account_id, search.gateway_site_id, search.searched_at, intent)

    def give_back(self, reservation: Reservation) -> None:
        """Keep a search that was charged and failed; if it cannot be kept, that is logged, and it stays charged."""
        intent = None if reservation.intent is None else tuple(reservation.intent)
        day = day_number(reservation.day)
        self._keep(_GIVE_BACK, reservation.account_id, reservation.gateway_site_id, day, intent)

    def settle(self) -> int:
        """Charge and give back what waits, also what dead processes left.

        Returns:
            How many searches were settled.

        Raises:
            CountersUnavailable: The counter store is not back; nothing is lost, and nothing done twice.
        """
        with self._settle_lock:
            if not any(self._directory.glob(f"*{SUFFIX}")):
                return 0
            self._counters.check()
            self.close()
            settled = 0
            for journal in left_journals(self._directory):
                settled += self._settle(journal)
                journal.remove()
        return settled

    def waiting_bytes(self) -> int:
        """Bytes of what is still to be settled on this machine."""
        sizes = 0
        for path in self._directory.glob(f"*{SUFFIX}"):
            with suppress(FileNotFoundError):  # It was settled meanwhile.
                sizes += path.stat().st_size
        return sizes

    def close(self) -> None:
        """Let go of this process's journal: whoever settles next, here or in another process, takes it over."""
        with self._append_lock:
            journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def _keep(self, *values: Any) -> None:
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
            log.error("a search could not be kept to be settled when the counter store is back: %s", error)

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
            log.error("%d damaged lines in %s were skipped: searches that are not charged", damaged, journal.path)
        if settled:
            log.warning("%d searches that the counter store was not there for are settled", settled)
        return settled


def _read(
    kind: str, account_id: int, site_id: int | None, moment: float, intent: Any
) -> tuple[UncountedSearch | Reservation, date]:
    """The charge of a line, and the day it changes."""
    if kind == _CHARGE:
        typed = None if intent is None else IntentRequest(*intent)
        return UncountedSearch(account_id, site_id, moment, typed), day_of(moment)
    day = day_from_number(int(moment))
    return Reservation(account_id, site_id, day, None if intent is None else Intent(*intent)), day
