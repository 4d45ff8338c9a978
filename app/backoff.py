"""When what failed is tried again: after a pause that doubles with every failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0


@dataclass(slots=True)
class _Failure:
    pause: float
    due_at: float


class Backoff:
    """The failures of one process. One that starts knows of none: it tries, and begins with the shortest pause.

    Args:
        clock: Monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._failures: dict[int, _Failure] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._failures

    def note_failure(self, key: int) -> None:
        """It failed, once more."""
        before = self._failures.get(key)
        pause = FIRST_SECONDS if before is None else min(LONGEST_SECONDS, 2 * before.pause)
        self._failures[key] = _Failure(pause, self._clock() + pause)

    def forget_all_but(self, keys: Collection[int]) -> None:
        """Forget the failures of all others: they need not be tried again."""
        for key in self._failures.keys() - set(keys):
            self._failures.pop(key, None)

    def due(self) -> list[int]:
        """What is to be tried again now, what waited longest first."""
        now = self._clock()
        found = [(failure.due_at, key) for key, failure in list(self._failures.items()) if failure.due_at <= now]
        return [key for _, key in sorted(found)]
