"""Limits on the CPU time of expensive requests, so that no caller takes it from the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from app.clock import now
from app.counters.base import CounterStore, CountersUnavailable, WindowRequest, WindowState
from app.plans import PlanLimits
from app.services.access.callers import Caller
from app.services.access.quota import MINUTE_SECONDS, rate_limited
from app.wording import counted, duration

FREE_SECONDS = 0.05
"""CPU seconds up to which a request is not counted."""
SECONDS_PER_REQUEST = 0.1
"""CPU seconds that the requests of a plan may take on average."""
MIN_SECONDS = 6
"""CPU seconds per minute of the keys of an account on the smallest plan."""
MEMBER_SECONDS = 30
"""CPU seconds per minute of a member's sessions."""
ADDRESS_SECONDS = 12
"""CPU seconds per minute of one address without a key, or with an account's public keys."""
_MAX_EXHAUSTED = 10_000

log = logging.getLogger(__name__)
_others = threading.local()


@dataclass(frozen=True, slots=True)
class Spender:
    """A caller whose CPU time is counted.

    Attributes:
        name: The window's key.
        limit: CPU seconds per minute; ``None`` for any number.
    """

    name: str
    limit: int | None


def spender_of(caller: Caller | None, address: str) -> Spender:
    """The spender behind a request: the member, the account's secret keys together, or an address.

    Args:
        address: The address key.
    """
    if caller is None:
        return Spender(f"cpu{address}", ADDRESS_SECONDS)
    if caller.member is not None:
        return Spender(f"cpu:m{caller.member.id}", MEMBER_SECONDS)
    if caller.kind in ("public", "engine"):
        return Spender(f"cpu{caller.account.id}:{address}", ADDRESS_SECONDS)
    return Spender(f"cpu:a{caller.account.id}", _limit_of(caller.account.limits))


def _limit_of(limits: PlanLimits) -> int | None:
    requests = limits.requests_per_minute
    return None if requests is None else max(MIN_SECONDS, ceil(requests * SECONDS_PER_REQUEST))


class CpuLimits:
    """The spenders of this process that have used up their minute.

    Only requests that take more than :data:`FREE_SECONDS` are counted, after they are answered, so that others cost
    nothing. What is counted is shared by all processes; that a spender has used it up, each of them learns with the
    next request that it counts.
    """

    def __init__(self, counters: CounterStore):
        self._counters = counters
        self._exhausted: dict[str, tuple[float, WindowState]] = {}
        self._lock = threading.Lock()

    def check(self, spender: Spender) -> None:
        """Refuse a spender who has used up the minute.

        Raises:
            RateLimited: They have.
        """
        until, window = self._exhausted.get(spender.name, (0.0, None))
        if window is None:
            return
        left = ceil(until - time.monotonic())
        if left <= 0:
            with self._lock:
                self._exhausted.pop(spender.name, None)
            return
        raise rate_limited(
            f"The requests took more than {counted(window.limit or 0, 'second')} of processor time per minute; try "
            f"again in {duration(left)}.",
            left,
            window,
        )

    def note(self, spender: Spender, seconds: float) -> None:
        """Count the CPU time of a request that was answered."""
        if seconds <= FREE_SECONDS or spender.limit is None:
            return
        moment = now().timestamp()
        request = WindowRequest(spender.name, None, MINUTE_SECONDS, ceil(seconds * 1000))
        try:
            (window,) = self._counters.consume([request], now=moment).windows
        except CountersUnavailable as error:
            log.warning("the CPU time of a request is not counted: %s", error)
            return
        if window.hits < spender.limit * 1000:
            return
        shown = WindowState(window.key, spender.limit, window.seconds, 1, spender.limit, window.reset_ms)
        with self._lock:
            if len(self._exhausted) >= _MAX_EXHAUSTED:
                self._exhausted.clear()
            # Not by the time of the day, which may jump.
            self._exhausted[spender.name] = (time.monotonic() + window.retry_after(moment), shown)


def cpu_seconds() -> float:
    """CPU seconds that this thread has spent for its own caller."""
    return time.thread_time() - getattr(_others, "seconds", 0.0)


@contextmanager
def working_for(callers: int) -> Iterator[None]:
    """Count only one caller's share of what is done inside for several callers together."""
    began = time.thread_time()
    try:
        yield
    finally:
        spent = time.thread_time() - began
        _others.seconds = getattr(_others, "seconds", 0.0) + spent * (callers - 1) / callers
