"""Fair shares of CPU time and threads, so that no caller slows down the others."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil

from app.clock import now
from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable, WindowRequest, WindowState
from app.errors import ApiError, ErrorCode
from app.services.access.callers import Caller
from app.services.usage.quota import MEMBERS_FACTOR, MINUTE_SECONDS, rate_limited
from app.wording import counted, duration

FREE_SECONDS = 0.05
"""CPU seconds up to which a request is not counted."""
STREAM_SECONDS = 1.0
"""CPU seconds after which a streamed response is counted before it ends."""
SECONDS_PER_REQUEST = 0.1
"""Average CPU seconds per request from which a plan's CPU limit is computed."""
MIN_SECONDS = 6
"""Minimum CPU seconds per minute for an account's keys, even on the smallest plan."""
MEMBER_SECONDS = 30
"""CPU seconds per minute for a member's sessions."""
ADDRESS_SECONDS = 12
"""CPU seconds per minute for one IP address without a key or with an account's public keys."""
_MAX_EXHAUSTED = 10_000

log = logging.getLogger(__name__)
_others = threading.local()


@dataclass(frozen=True, slots=True)
class Spender:
    """A caller whose CPU time is counted.

    Attributes:
        name: Name of the caller's rate-limit window.
        limit: CPU seconds per minute.
    """

    name: str
    limit: int


def spenders_of(caller: Caller | None, address: str) -> tuple[Spender, ...]:
    """Return the spenders of a request: the member and all members of the account, its secret keys, or an IP address.

    Args:
        address: The address key.
    """
    if caller is None:
        return (Spender(f"cpu{address}", ADDRESS_SECONDS),)
    if caller.member is not None:
        members = Spender(f"cpu:ma{caller.account.id}", MEMBERS_FACTOR * MEMBER_SECONDS)
        return Spender(f"cpu:m{caller.member.id}", MEMBER_SECONDS), members
    if caller.kind in ("public", "engine"):
        return (Spender(f"cpu{caller.account.id}:{address}", ADDRESS_SECONDS),)
    requests = caller.account.limits.requests_per_minute
    if requests is None:
        return ()
    return (Spender(f"cpu:a{caller.account.id}", max(MIN_SECONDS, ceil(requests * SECONDS_PER_REQUEST))),)


class CpuLimits:
    """Limits the CPU time of callers per minute.

    Only requests that take more than :data:`FREE_SECONDS` are counted, after their response, so that other requests
    have no overhead. A streamed response is also counted before it ends; it is never cut off. All processes share the
    counts. A process notices that a spender has reached the limit when it counts the spender's next request.
    """

    def __init__(self, counters: CounterStore):
        self._counters = counters
        self._exhausted: dict[str, tuple[float, WindowState]] = {}
        self._lock = threading.Lock()

    def check(self, spenders: Sequence[Spender]) -> None:
        """Reject a request if one of its spenders has used up its CPU time for the current minute.

        Raises:
            RateLimited: The limit is reached.
        """
        for spender in spenders:
            # Without the lock, since this runs for every request, and reading a dictionary is atomic.
            until, window = self._exhausted.get(spender.name, (0.0, None))
            if window is None:
                continue
            remaining = ceil(until - time.monotonic())
            if remaining <= 0:
                with self._lock:
                    self._exhausted.pop(spender.name, None)
                continue
            raise rate_limited(
                f"The requests took more than {counted(window.limit or 0, 'second')} of CPU time per minute; try "
                f"again in {duration(remaining)}.",
                remaining,
                window,
            )

    def record(self, spenders: Sequence[Spender], seconds: float) -> None:
        """Count the CPU time of a finished request, or of a part of a streamed response."""
        if seconds <= FREE_SECONDS or not spenders:
            return
        moment = now().timestamp()
        # Without a limit, because the time is known only after it was spent. It is counted in milliseconds.
        requests = [WindowRequest(spender.name, None, MINUTE_SECONDS, ceil(seconds * 1000)) for spender in spenders]
        try:
            windows = self._counters.consume(requests, now=moment).windows
        except CountersUnavailable as error:
            log.warning("cannot count the CPU time of a request: %s", error)
            return
        for spender, window in zip(spenders, windows, strict=True):
            if window.hits >= spender.limit * 1000:
                self._exhaust(spender, window, moment)

    def _exhaust(self, spender: Spender, window: WindowState, moment: float) -> None:
        reported_window = WindowState(window.key, spender.limit, window.seconds, 1, spender.limit, window.reset_ms)
        with self._lock:
            if len(self._exhausted) >= _MAX_EXHAUSTED:
                # Forgetting is harmless: the next slow request of a spender reports the limit again.
                self._exhausted.clear()
            # Monotonic, because the time of day may jump.
            self._exhausted[spender.name] = (time.monotonic() + window.retry_after(moment), reported_window)


def cpu_seconds() -> float:
    """Return the CPU seconds that this thread has spent for its own caller."""
    return time.thread_time() - getattr(_others, "seconds", 0.0)


@contextmanager
def working_for(callers: int) -> Iterator[None]:
    """Charge this thread's caller only for its share of the enclosed work, which is done for several callers."""
    began = time.thread_time()
    try:
        yield
    finally:
        # The shares of the other callers are deducted from this thread's time.
        spent = time.thread_time() - began
        _others.seconds = getattr(_others, "seconds", 0.0) + spent * (callers - 1) / callers


MAX_WAITING = 32
"""Maximum number of requests of a caller, or of all members of an account, waiting for a thread in a process.

A page sends fewer simultaneously.
"""
MAX_WAITING_TOTAL = 128
"""Maximum number of waiting requests in a process. Each occupies a thread, which costs memory."""
WAIT_SECONDS = 30.0
"""Maximum number of seconds that a request waits for a thread."""
RETRY_SECONDS = 2
"""Value of ``Retry-After`` for a rejected request."""


@dataclass(slots=True)
class _Caller:
    """Requests of one caller: the number in progress, and the waiting requests in order of arrival."""

    active: int = 0
    waiting: deque[threading.Event] = field(default_factory=deque)


class ThreadShares:
    """Distributes a process's threads among callers. One caller may use at most half of the threads.

    The members of an account together may use fewer threads, so that they and the account's keys leave a thread to
    other callers. One member may use fewer threads than all members together.

    Further requests of the caller wait until one of its requests ends. The number of waiting requests and their wait
    are limited; requests beyond these limits are rejected.

    Attributes:
        max_per_caller: Maximum number of concurrent requests per caller; ``None`` for no limit.
        max_of_members: Maximum number for all members of an account together.
        max_of_member: Maximum number for one member.
    """

    def __init__(self) -> None:
        self.max_per_caller: int | None = None
        self.max_of_members: int | None = None
        self.max_of_member: int | None = None
        self._aside: Callable[[], AbstractContextManager[None]] = nullcontext
        self._lock = threading.Lock()
        self._callers: dict[object, _Caller] = {}
        self._waiting: Counter[object] = Counter()

    def share_out(self, threads: int, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Set the number of threads.

        Args:
            aside: Context in which a waiting thread does not count toward that number.
        """
        self.max_per_caller = max(1, threads // 2)
        self.max_of_members = max(1, self.max_per_caller - 1)
        self.max_of_member = ceil(self.max_of_members / 2)
        self._aside = aside

    def enter(self, key: object, limit: int | None, group: object = None) -> None:
        """Begin a caller's request, and wait for its turn if necessary.

        Args:
            limit: Maximum number of concurrent requests with this key; ``None`` for no limit.
            group: Key whose waiting requests are limited together; ``None`` for this key alone.

        Raises:
            ApiError: 503 ``server_busy``.
        """
        group = key if group is None else group
        with self._lock:
            caller = self._callers.setdefault(key, _Caller())
            if limit is None or caller.active < limit:
                caller.active += 1
                return
            if self._waiting[group] >= MAX_WAITING or self._waiting.total() >= MAX_WAITING_TOTAL:
                raise _busy()
            turn = threading.Event()
            caller.waiting.append(turn)
            self._waiting[group] += 1
        with self._aside():
            turn.wait(WAIT_SECONDS)
        with self._lock:
            self._waiting -= Counter((group,))  # Unlike a plain subtraction, this drops a count of zero.
            # Checked under the lock, because the turn may have come after the wait timed out.
            if not turn.is_set():
                caller.waiting.remove(turn)
                raise _busy()

    def leave(self, key: object) -> None:
        """End a request, and let the caller's next waiting request begin."""
        with self._lock:
            caller = self._callers[key]
            if caller.waiting:
                # The place passes to the next request, so the number of active requests stays the same.
                caller.waiting.popleft().set()
                return
            caller.active -= 1
            if not caller.active:
                del self._callers[key]


def _busy() -> ApiError:
    return ApiError(
        ErrorCode.SERVER_BUSY,
        "Too many of your requests are waiting; try again when some have finished.",
        retry_after=RETRY_SECONDS,
    )
