"""Crawl politeness: when a host may receive the next request, across all sites."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.crawl.fetch.values import TryLater

MAX_AT_ONCE = 2
"""Concurrent requests to one host; only one if its robots.txt has a Crawl-delay."""
MIN_DELAY_SECONDS = 0.1
"""Seconds from the start of one request to a host to the start of the next."""
MAX_SLOWNESS_SECONDS = 10.0
"""Longest delay, in seconds, between requests to a host that responds slowly."""
LEASE_SECONDS = 120.0
"""Seconds after which a turn that was not given back counts as lost with its process."""

MAX_PAUSE_SECONDS = 600.0
"""Longest pause, in seconds, that a host may request with ``Retry-After``."""

_MIN_WAIT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Turn:
    """A permission to send one request to a host.

    Attributes:
        host: A host as :func:`app.crawl.fetch.addresses.host_of` returns it.
        token: Unique for each turn.
        taken_at: Seconds, by the clock of the implementation.
    """

    host: str
    token: str
    taken_at: float


class Turns(ABC):
    """Assigns turns, so that no host gets more requests than :class:`HostPace` allows.

    Implementations store one :class:`HostPace` for each host where all processes can access it, and change it with its
    methods, one process at a time. No method waits.
    """

    @abstractmethod
    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        """Return a turn, or the seconds to wait before the next attempt.

        Args:
            host: A host as :func:`app.crawl.fetch.addresses.host_of` returns it.
            crawl_delay: Seconds between two requests that the host's robots.txt requires.
        """

    @abstractmethod
    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        """End a turn, whether or not its request succeeded. Does nothing if the turn's lease has expired.

        Args:
            pause: Seconds without requests that the host asked for.
        """


@dataclass(frozen=True, slots=True)
class HostPace:
    """The pace of one host. Times are seconds of one clock.

    Attributes:
        next_at: Earliest start of the next request.
        slowness: Moving average of the host's response time; recent responses count most.
        active: Tokens of turns in use, with the times when they were taken.
    """

    next_at: float = 0.0
    slowness: float = 0.0
    active: dict[str, float] = field(default_factory=dict)

    def take(self, host: str, now: float, *, crawl_delay: float = 0.0) -> tuple[HostPace, Turn | float]:
        """Return the pace after an attempt to take a turn, and the turn or the seconds to wait."""
        # Times far in the future were written by a machine whose clock was ahead.
        active = {token: at for token, at in self.active.items() if abs(now - at) < LEASE_SECONDS}
        pace = replace(self, active=active)
        # A later time can only come from a wrong clock.
        if now < self.next_at <= now + MAX_PAUSE_SECONDS:
            return pace, self.next_at - now
        if len(active) >= (1 if crawl_delay > 0 else MAX_AT_ONCE):
            # Until one of the active requests has probably ended.
            return pace, max(_MIN_WAIT_SECONDS, self.slowness / 4)
        turn = Turn(host, secrets.token_hex(8), now)
        delay = max(MIN_DELAY_SECONDS, min(self.slowness, MAX_SLOWNESS_SECONDS), crawl_delay)
        return HostPace(now + delay, self.slowness, {**active, turn.token: now}), turn

    def give_back(self, turn: Turn, now: float, *, pause: float = 0.0) -> HostPace:
        """Return the host's pace after ``turn`` has ended, with the host's response time and the requested pause."""
        if turn.token not in self.active:
            return self
        active = {token: at for token, at in self.active.items() if token != turn.token}
        slowness = (self.slowness + min(max(0.0, now - turn.taken_at), LEASE_SECONDS)) / 2
        next_at = self.next_at if self.next_at <= now + MAX_PAUSE_SECONDS else now
        return HostPace(max(next_at, now + pause), slowness, active)


@contextmanager
def polite(
    turns: Turns, host: str, *, crawl_delay: float = 0.0, wait: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Wait for a turn at a host, and give it back at the end, with the pause of a :class:`TryLater`.

    Args:
        host: A host as :func:`app.crawl.fetch.addresses.host_of` returns it.
        crawl_delay: Seconds between two requests that the host's robots.txt requires.
        wait: Called with seconds; it may raise to end the waiting.
    """
    turn = turns.take(host, crawl_delay=crawl_delay)
    while not isinstance(turn, Turn):
        wait(turn)
        turn = turns.take(host, crawl_delay=crawl_delay)
    pause = 0.0
    try:
        yield
    except TryLater as later:
        pause = later.seconds
        raise
    finally:
        turns.give_back(turn, pause=pause)
