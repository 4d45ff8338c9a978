"""Fair turns at a browser or a reading process: accounts share its time, however many sources and slow pages they
have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

_CHECK_SECONDS = 1.0
"""Seconds between calls of ``wait`` while a caller waits for its turn."""


class AccountTurns:
    """Gives one caller at a time a turn; the account that has used the least time goes first. Thread-safe.

    Accounts are compared by the seconds of their turns, because one slow page takes as long as ten others. An account
    that begins to wait starts with the seconds at which the current turn began, so it cannot save up time.

    Args:
        now: Returns the current time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._changed = threading.Condition()
        self._tickets = count()
        self._waiting: dict[int, int] = {}
        self._used: dict[int, float] = {}
        self._floor = 0.0
        self._is_taken = False

    @contextmanager
    def take(self, account: int, wait: Callable[[float], object]) -> Iterator[None]:
        """Wait for a turn, and keep it until the context ends.

        Args:
            account: ID of the account whose page is worked on.
            wait: Called about once a second while others have their turns; may raise.
        """
        self._begin(account, wait)
        started_at = self._now()
        try:
            yield
        finally:
            with self._changed:
                self._used[account] += self._now() - started_at
                self._is_taken = False
                self._changed.notify_all()

    def _begin(self, account: int, wait: Callable[[float], object]) -> None:
        with self._changed:
            ticket = next(self._tickets)
            self._used[account] = max(self._used.get(account, 0.0), self._floor)
            self._waiting[ticket] = account
            try:
                while self._is_taken or ticket != self._next():
                    if not self._changed.wait(_CHECK_SECONDS):
                        wait(0.0)
            except BaseException:
                del self._waiting[ticket]
                self._changed.notify_all()
                raise
            del self._waiting[ticket]
            self._is_taken = True
            self._floor = self._used[account]
            # Other accounts start at the floor anyway, so their entries are not needed anymore.
            behind = {*self._waiting.values(), account}
            self._used = {
                waiting_account: used
                for waiting_account, used in self._used.items()
                if used > self._floor or waiting_account in behind
            }

    def _next(self) -> int:
        return min(self._waiting, key=lambda ticket: (self._used[self._waiting[ticket]], ticket))
