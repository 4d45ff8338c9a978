"""Crawl politeness: the time at which a host may receive its next request, across all sites."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.crawl.fetch.values import TryLater

MAX_AT_ONCE = 2
"""Maximum number of concurrent requests to one host; only one if its robots.txt has a Crawl-delay."""
MIN_DELAY_SECONDS = 0.1
"""Minimum seconds between the starts of two requests to a host."""
MAX_SLOWNESS_SECONDS = 10.0
"""Longest delay, in seconds, between requests to a host that responds slowly."""
LEASE_SECONDS = 120.0
"""Seconds after which the lease of a turn expires, because its process has probably died."""

MAX_PAUSE_SECONDS = 600.0
"""Longest pause, in seconds, that a host may request with ``Retry-After``."""

_MIN_WAIT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Turn:
    """Permission to send one request to a host.

    Attributes:
        host: A host as :func:`app.crawl.fetch.addresses.host_of` returns it.
        token: Unique for each turn.
        taken_at: Seconds on the clock of the :class:`Turns` implementation.
    """

    host: str
    token: str
    taken_at: float


class Turns(ABC):
    """Assigns turns, so that no host gets more requests than :class:`HostPace` allows.

    Implementations store one :class:`HostPace` for each host where all processes can access it, and update it with its
    methods, one process at a time. No method blocks.
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
            pause: Seconds for which the host asked to receive no requests.
        """


@dataclass(frozen=True, slots=True)
class HostPace:
    """The request pace of one host. All times are seconds on the same clock.

    Attributes:
        next_at: Earliest start of the next request.
        slowness: Moving average of the host's response time; recent responses count most.
        active: Tokens of turns in use, with the times when they were taken.
    """

    next_at: float = 0.0
    slowness: float = 0.0
    active: dict[str, float] = field(default_factory=dict)

    def take(self, host: str, now: float, *, crawl_delay: float = 0.0) -> tuple[HostPace, Turn | float]:
        """Try to take a turn: return the new pace, and either the turn or the seconds to wait."""
        # Times far in the future were written by a machine whose clock was ahead.
        active = {token: taken_at for token, taken_at in self.active.items() if abs(now - taken_at) < LEASE_SECONDS}
        pace = replace(self, active=active)
        # A later time can only come from a wrong clock.
        if now < self.next_at <= now + MAX_PAUSE_SECONDS:
            return pace, self.next_at - now
        if len(active) >= (1 if crawl_delay > 0 else MAX_AT_ONCE):
            # Wait until one of the active requests has probably ended.
            return pace, max(_MIN_WAIT_SECONDS, self.slowness / 4)
        turn = Turn(host, secrets.token_hex(8), now)
        delay = max(MIN_DELAY_SECONDS, min(self.slowness, MAX_SLOWNESS_SECONDS), crawl_delay)
        return HostPace(now + delay, self.slowness, {**active, turn.token: now}), turn

    def give_back(self, turn: Turn, now: float, *, pause: float = 0.0) -> HostPace:
        """End ``turn``: return the pace updated with the host's response time and the requested pause."""
        # The lease has expired, and another request may have taken its place.
        if turn.token not in self.active:
            return self
        active = {token: taken_at for token, taken_at in self.active.items() if token != turn.token}
        # A moving average, so that one slow response does not delay the rest of a run.
        slowness = (self.slowness + min(max(0.0, now - turn.taken_at), LEASE_SECONDS)) / 2
        next_at = self.next_at if self.next_at <= now + MAX_PAUSE_SECONDS else now
        return HostPace(max(next_at, now + pause), slowness, active)


@contextmanager
def polite(
    turns: Turns, host: str, *, crawl_delay: float = 0.0, wait: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Wait for a turn at a host. Give it back after the block, with the pause that any :class:`TryLater` requests.

    Args:
        host: A host as :func:`app.crawl.fetch.addresses.host_of` returns it.
        crawl_delay: Seconds between two requests that the host's robots.txt requires.
        wait: Called with the seconds to wait; may raise to stop waiting.
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
