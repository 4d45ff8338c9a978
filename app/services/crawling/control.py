"""What ends a run before its end: the process stops, somebody cancels it, or others have waited long enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from app.counters.base import CountersUnavailable
from app.services.crawling.recorder import RunLost
from app.storage.database import is_unavailable
from backends.errors import BackendUnavailable

T = TypeVar("T")

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""How long after a failure it is tried again: twice as long each time."""

TURN_SECONDS = 300.0
"""After this a run gives way to others that wait."""


class RunInterrupted(Exception):
    """The run is to be continued by another process, or later."""


class RunCancelled(Exception):
    """The run is to end."""


class RunControl:
    """Tells the threads of a run to end. Thread-safe.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._begun = clock()
        self._ended = threading.Event()
        self._why: type[Exception] = RunInterrupted

    def interrupt(self) -> None:
        """Hand the run back."""
        self._end(RunInterrupted)

    def cancel(self) -> None:
        """End the run."""
        self._end(RunCancelled)

    def lose(self) -> None:
        """Leave the run to whoever has it."""
        self._end(RunLost)

    def go_on(self) -> None:
        """Take note that the run was cancelled: what is left is to write that down."""
        if self._why is RunCancelled:
            self._ended.clear()

    def _end(self, why: type[Exception]) -> None:
        if not self._ended.is_set():
            self._why = why
            self._ended.set()

    @property
    def had_its_turn(self) -> bool:
        """Whether the run is to give way to others that wait."""
        return self._clock() - self._begun >= TURN_SECONDS

    def check(self) -> None:
        """Go on, or not.

        Raises:
            RunInterrupted, RunCancelled, RunLost: The run ends here.
        """
        if self._ended.is_set():
            raise self._why

    def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            RunInterrupted, RunCancelled, RunLost: The run ends here.
        """
        if self._ended.wait(seconds):
            raise self._why

    def insist(self, work: Callable[[], T]) -> T:
        """Give what ``work`` gives; while the database or the engine is away, call it again after pauses.

        Raises:
            RunInterrupted, RunCancelled, RunLost: The run ended meanwhile.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except Exception as error:
                if not is_passing(error):
                    raise
            self.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def is_passing(error: BaseException) -> bool:
    """Whether an error says that the database, the counter store or the engine is away, so that waiting helps."""
    return is_unavailable(error) or isinstance(error, BackendUnavailable | CountersUnavailable)


def call_once(work: Callable[[], T]) -> T:
    """Give what ``work`` gives, without patience."""
    return work()
