"""Manners towards a host: when it may be asked again. Shared by all sites that are crawled on it."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.crawl.fetch.values import TryLater

MAX_AT_ONCE = 2
"""Requests to one host at the same time; one, if it asks for a Crawl-delay."""
MIN_DELAY_SECONDS = 0.1
"""From the begin of one request to a host to the begin of the next."""
MAX_SLOWNESS_SECONDS = 10.0
"""How far the delay follows a host that answers slowly."""
LEASE_SECONDS = 120.0
"""After this a turn that was not given back is taken to be lost with its process."""

MAX_PAUSE_SECONDS = 600.0
"""Seconds for which a host may be left alone: that of the longest ``Retry-After`` that is heeded."""

_MIN_WAIT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Turn:
    """A permission to send one request to a host.

    Attributes:
        host: As :func:`app.crawl.fetch.addresses.host_of` gives it.
        token: Different for every turn.
        taken_at: Seconds, by the clock of whoever gives turns.
    """

    host: str
    token: str
    taken_at: float


class Turns(ABC):
    """Gives turns, so that no host is asked more often than :class:`HostPace` allows, whoever asks.

    Implementations keep one :class:`HostPace` for each host where all processes see it, and change it by its methods,
    one process at a time. No method waits.
    """

    @abstractmethod
    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        """Take a turn, or learn after how many seconds it is worth asking again.

        Args:
            host: As :func:`app.crawl.fetch.addresses.host_of` gives it.
            crawl_delay: Seconds that the host's robots.txt asks for between two requests.
        """

    @abstractmethod
    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        """End a turn, whether its request succeeded or not. A turn that is lost already is no error.

        Args:
            turn: As taken.
            pause: Seconds for which the host wants to be left alone.
        """


@dataclass(frozen=True, slots=True)
class HostPace:
    """The pace of one host. Times are seconds of one clock.

    Attributes:
        next_at: When the next request may begin, at the earliest.
        slowness: Seconds that the host takes to answer, recent answers counting most.
        taken: Tokens of the turns that are taken, with the times at which they were.
    """

    next_at: float = 0.0
    slowness: float = 0.0
    taken: dict[str, float] = field(default_factory=dict)

    def take(self, host: str, now: float, *, crawl_delay: float = 0.0) -> tuple[HostPace, Turn | float]:
        """The pace after a turn was asked for at a time; and the turn, or the seconds to wait."""
        # Times far ahead were written by a clock that was ahead.
        taken = {token: at for token, at in self.taken.items() if abs(now - at) < LEASE_SECONDS}
        pace = replace(self, taken=taken)
        if now < self.next_at <= now + MAX_PAUSE_SECONDS:
            return pace, self.next_at - now
        if len(taken) >= (1 if crawl_delay > 0 else MAX_AT_ONCE):
            return pace, max(_MIN_WAIT_SECONDS, self.slowness / 4)
        turn = Turn(host, secrets.token_hex(8), now)
        delay = max(MIN_DELAY_SECONDS, min(self.slowness, MAX_SLOWNESS_SECONDS), crawl_delay)
        return HostPace(now + delay, self.slowness, {**taken, turn.token: now}), turn

    def give_back(self, turn: Turn, now: float, *, pause: float = 0.0) -> HostPace:
        """The pace after a turn was given back at a time."""
        if turn.token not in self.taken:
            return self
        taken = {token: at for token, at in self.taken.items() if token != turn.token}
        slowness = (self.slowness + min(max(0.0, now - turn.taken_at), LEASE_SECONDS)) / 2
        next_at = self.next_at if self.next_at <= now + MAX_PAUSE_SECONDS else now
        return HostPace(max(next_at, now + pause), slowness, taken)


@contextmanager
def polite(
    turns: Turns, host: str, *, crawl_delay: float = 0.0, wait: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Wait for a host's turn, and give it back at the end, with the pause that a :class:`TryLater` asks for.

    Args:
        turns: Who gives turns.
        host: As :func:`app.crawl.fetch.addresses.host_of` gives it.
        crawl_delay: Seconds that the host's robots.txt asks for between two requests.
        wait: Called with seconds; it may raise to end the waiting.
    """
    taken = turns.take(host, crawl_delay=crawl_delay)
    while not isinstance(taken, Turn):
        wait(taken)
        taken = turns.take(host, crawl_delay=crawl_delay)
    pause = 0.0
    try:
        yield
    except TryLater as later:
        pause = later.seconds
        raise
    finally:
        turns.give_back(taken, pause=pause)
