"""Reasons to end a run before its end: the process stops, somebody cancels it, or others have waited long enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from app.counters.base import CountersUnavailable
from app.storage.backoff import Pauses
from app.storage.database import is_unavailable
from backends.errors import BackendUnavailable

T = TypeVar("T")

PAUSES = Pauses(1.0, 60.0)
"""After a failure, until it is tried again."""

TURN_SECONDS = 300.0
"""After this a run gives way to others that wait."""


class RunLost(Exception):
    """Another process has the run, or it was deleted with its source: there is nothing left to do here."""


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
        """Tell whether the run is to give way to others that wait."""
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

    def insistent(self, thing: T) -> T:
        """The same, but that its methods wait: while the database or the engine is away, they are called again.

        Raises:
            RunInterrupted, RunCancelled, RunLost: By a method, if the run ends meanwhile.
        """
        return cast(T, _Insistent(thing, self))

    def insist(self, work: Callable[[], T]) -> T:
        """Give what ``work`` gives; while the database or the engine is away, call it again after pauses.

        Raises:
            RunInterrupted, RunCancelled, RunLost: The run ended meanwhile.
        """
        failures = 0
        while True:
            try:
                return work()
            except Exception as error:
                if not is_passing(error):
                    raise
            failures += 1
            self.wait(PAUSES.after(failures))


class _Insistent:
    def __init__(self, thing: object, control: RunControl):
        self._thing = thing
        self._control = control

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        return partial(self._call, found) if callable(found) else found

    def _call(self, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return self._control.insist(lambda: method(*args, **kwargs))


def is_passing(error: BaseException) -> bool:
    """Tell whether an error says that the database, the counter store or the engine is away, so that waiting helps."""
    return is_unavailable(error) or isinstance(error, BackendUnavailable | CountersUnavailable)
