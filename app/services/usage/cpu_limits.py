"""x"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil

from app.clock import now
from app.counters.base import CounterStore, CountersUnavailable, WindowRequest, WindowState
from app.errors import ApiError, ErrorCode
from app.plans import PlanLimits
from app.services.access.callers import Caller
from app.services.usage.quota import MINUTE_SECONDS, rate_limited
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


MOST_WAITING = 32
"""Requests of one caller that wait for their turn in a process: more than pages send at once."""
MOST_WAITING_IN_ALL = 128
"""Those of all callers: each has a thread, which costs memory although it does nothing."""
WAIT_SECONDS = 30.0
"""How long a request waits for its turn."""
RETRY_SECONDS = 2


@dataclass(slots=True)
class _Caller:
    """Requests of one caller: how many are at work, and those that wait, in the order in which they came."""

    at_work: int = 0
    waiting: deque[threading.Event] = field(default_factory=deque)


class ThreadShares:
    """Requests at work in this process, by caller: at most half of the threads are one caller's.

    What comes beyond that waits for its turn, which comes when one of the caller's own ends. Only so many wait, for so
    long; more is refused.

    Attributes:
        most: Requests of one caller at work at a time; ``None`` for any number.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self._aside: Callable[[], AbstractContextManager[None]] = nullcontext
        self._lock = threading.Lock()
        self._callers: dict[object, _Caller] = {}
        self._waiting = 0

    def share_out(self, threads: int, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Say how many threads there are.

        Args:
            aside: What a thread does in there, which is waiting, takes none of them.
        """
        self.most = max(1, threads // 2)
        self._aside = aside

    def enter(self, who: object) -> None:
        """Begin a request of a caller, when it is its turn.

        Raises:
            ApiError: 503 ``server_busy``.
        """
        with self._lock:
            caller = self._callers.setdefault(who, _Caller())
            if self.most is None or caller.at_work < self.most:
                caller.at_work += 1
                return
            if len(caller.waiting) >= MOST_WAITING or self._waiting >= MOST_WAITING_IN_ALL:
                raise _busy()
            turn = threading.Event()
            caller.waiting.append(turn)
            self._waiting += 1
        with self._aside():
            turn.wait(WAIT_SECONDS)
        with self._lock:
            self._waiting -= 1
            if not turn.is_set():
                caller.waiting.remove(turn)
                raise _busy()

    def leave(self, who: object) -> None:
        """End a request; its place is the caller's next one's, if one waits."""
        with self._lock:
            caller = self._callers[who]
            if caller.waiting:
                caller.waiting.popleft().set()
                return
            caller.at_work -= 1
            if not caller.at_work:
                del self._callers[who]


def _busy() -> ApiError:
    return ApiError(
        ErrorCode.SERVER_BUSY,
        "Too many of your requests are waiting for your share of this server; try again when some have finished.",
        retry_after=RETRY_SECONDS,
    )
