"""Time: the current time, the duration of calls, and pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import wraps
from typing import Any

from prometheus_client import Counter, Histogram


def now() -> datetime:
    """Return the current time as an aware UTC datetime. The machines of an installation must be synchronized by NTP."""
    return datetime.now(UTC)


def today() -> date:
    """Return the current UTC day."""
    return now().date()


def start_of(day: date) -> datetime:
    """Return the beginning of a UTC day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def isoformat(moment: datetime) -> str:
    """Return ``moment`` in the API's format: UTC, ISO 8601, ending in ``Z``, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def observe_calls(
    target: object,
    names: Iterable[str],
    *,
    seconds: Callable[[str], Histogram],
    failures: Mapping[type[Exception], Callable[[str], Counter]],
) -> None:
    """Record the duration and failures of every call to the named methods of ``target``.

    Args:
        names: Names of the methods.
        seconds: Maps a method's name to the histogram of its durations.
        failures: Maps exceptions to functions from a method's name to the counter of its calls that raise them.
    """
    for name in names:
        counters = {error: counter_of(name) for error, counter_of in failures.items()}
        setattr(target, name, _observed(getattr(target, name), seconds(name), counters))


def _observed(
    call: Callable[..., Any], seconds: Histogram, counters: Mapping[type[Exception], Counter]
) -> Callable[..., Any]:
    observe, clock = seconds.observe, time.perf_counter
    kinds = tuple(counters)

    @wraps(call)
    def observed(*args: Any, **kwargs: Any) -> Any:
        began = clock()
        try:
            return call(*args, **kwargs)
        except kinds as error:
            for kind, counter in counters.items():
                if isinstance(error, kind):
                    counter.inc()
            raise
        finally:
            observe(clock() - began)

    return observed


@dataclass(frozen=True, slots=True)
class Pauses:
    """Exponential backoff. Half of each pause is random, so that simultaneous failures are not retried simultaneously.

    Attributes:
        first: Maximum seconds of the first pause.
        longest: Maximum seconds of any pause.
        chance: Returns random numbers from 0 to 1.
    """

    first: float
    longest: float
    chance: Callable[[], float] = random.random

    def after(self, failures: int) -> float:
        """Return the seconds to wait after this number of failures, which is at least 1."""
        pause = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return pause * (1 + self.chance()) / 2


@dataclass(slots=True)
class _Failure:
    times: int
    due_at: float


class Backoff:
    """Failures that this process has seen, with the time of the next attempt for each item.

    A new process has seen no failures, so it tries immediately and begins with the shortest pause.

    Args:
        clock: Returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, pauses: Pauses = Pauses(2.0, 300.0)):
        self._clock = clock
        self._pauses = pauses
        self._failures: dict[int, _Failure] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._failures

    def record_failure(self, key: int) -> float:
        """Record a failure. Returns the seconds until the next attempt."""
        before = self._failures.get(key)
        times = 1 if before is None else before.times + 1
        pause = self._pauses.after(times)
        self._failures[key] = _Failure(times, self._clock() + pause)
        return pause

    def forget(self, key: int) -> None:
        """Forget the failures of an item after a success."""
        self._failures.pop(key, None)

    def forget_all_but(self, keys: Collection[int]) -> None:
        """Forget the failures of items that are not in ``keys``, since they need no retry."""
        for key in self._failures.keys() - set(keys):
            self._failures.pop(key, None)

    def end_pauses(self) -> None:
        """Make all items due now. After another failure, an item's next pause is twice as long as its last."""
        for failure in list(self._failures.values()):
            failure.due_at = self._clock()

    def due(self) -> list[int]:
        """Return the items to retry now, the longest overdue first."""
        moment = self._clock()
        due = [(failure.due_at, key) for key, failure in list(self._failures.items()) if failure.due_at <= moment]
        return [key for _, key in sorted(due)]
