"""How many answers a process waits for at the same time, so that a slow model never occupies its threads."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter

from app.errors import ApiError, ErrorCode
from app.services.asks.model import RETRY_SECONDS

MAX_TOTAL = 8
"""Maximum number of answers that a process waits for."""
MAX_OF_ACCOUNT = 2
"""Maximum number of these that belong to one account."""


class AskSlots:
    """The answers that this process waits for. Further questions are rejected immediately, and never wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = Counter[int]()
        self._end = math.inf

    def end_in(self, seconds: float) -> None:
        """End all answers, also further ones, after ``seconds``, because the process stops."""
        # Called by a signal handler, which must not wait for a lock.
        self._end = time.monotonic() + seconds

    @property
    def is_ended(self) -> bool:
        """Whether answers must end now."""
        return time.monotonic() >= self._end

    def enter(self, account_id: int) -> Slot:
        """Occupy a slot.

        Raises:
            ApiError: 503 ``ask_unavailable``: no slot is free.
        """
        with self._lock:
            if self._active[account_id] >= MAX_OF_ACCOUNT or self._active.total() >= MAX_TOTAL:
                raise ApiError(
                    ErrorCode.ASK_UNAVAILABLE,
                    "Too many questions are being answered; try again in a few seconds.",
                    retry_after=RETRY_SECONDS,
                )
            self._active[account_id] += 1
        return Slot(self, account_id)

    def leave(self, account_id: int) -> None:
        """Free a slot of an account."""
        with self._lock:
            self._active -= Counter((account_id,))  # Unlike a plain subtraction, this drops a count of zero.


class Slot:
    """A slot that one answer occupies."""

    def __init__(self, slots: AskSlots, account_id: int):
        self._slots = slots
        self._account_id = account_id
        self._lock = threading.Lock()
        self._is_free = False

    def leave(self) -> None:
        """Free the slot, once."""
        with self._lock:
            is_free, self._is_free = self._is_free, True
        if not is_free:
            self._slots.leave(self._account_id)
