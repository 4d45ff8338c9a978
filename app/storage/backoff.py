"""Pauses before something is tried again: they double with every failure, and are partly random."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses that double. Half of each is random, so that what failed at the same time is not tried at the same time.

    Attributes:
        first, longest: Seconds that the first may take, and any.
        chance: Random numbers from 0 to 1.
    """

    first: float
    longest: float
    chance: Callable[[], float] = random.random

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures, of which there is at least one."""
        whole = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return whole * (1 + self.chance()) / 2


@dataclass(slots=True)
class _Failure:
    times: int
    due_at: float


class Backoff:
    """The failures of one process. One that starts knows of none: it tries, and begins with the shortest pause.

    Args:
        clock: Monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, pauses: Pauses = Pauses(2.0, 300.0)):
        self._clock = clock
        self._pauses = pauses
        self._failures: dict[int, _Failure] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._failures

    def note_failure(self, key: int) -> float:
        """It failed, once more; gives the seconds until it is tried again."""
        before = self._failures.get(key)
        times = 1 if before is None else before.times + 1
        pause = self._pauses.after(times)
        self._failures[key] = _Failure(times, self._clock() + pause)
        return pause

    def forget(self, key: int) -> None:
        """It went well."""
        self._failures.pop(key, None)

    def forget_all_but(self, keys: Collection[int]) -> None:
        """Forget the failures of all others: they need not be tried again."""
        for key in self._failures.keys() - set(keys):
            self._failures.pop(key, None)

    def due(self) -> list[int]:
        """The items to be tried again now, those that waited longest first."""
        now = self._clock()
        due = [(failure.due_at, key) for key, failure in list(self._failures.items()) if failure.due_at <= now]
        return [key for _, key in sorted(due)]
