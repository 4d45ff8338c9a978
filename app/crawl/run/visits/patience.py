"""Patience of a run with a host: trouble with some of its addresses is told from trouble with all of it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from app.crawl.fetch.values import NotIndexed, TryLater

TRIES = 3
"""How often an address is asked for whose host asks to wait."""

FAILURES_IN_A_ROW = 20
"""After so many addresses that could not be had, one after another, it is looked whether the host still answers."""

LOOK_AGAIN_SECONDS = (0.0, 10.0, 60.0, 180.0)
"""How long before each of these looks; a host that fails them all is asked for nothing more in the run."""

MAX_PAUSED_SECONDS = 6_000.0
"""Waiting that a host may ask for in a run with addresses that never answer; after that it is asked no more."""


class HostPatience:
    """The history of a host in one run. Thread-safe.

    Args:
        proof: An address of the host that is likely to answer.
        look: Asks for an address. It raises :class:`NotIndexed` if it cannot be had.
        wait: Waits for seconds; it may raise to end the waiting.
    """

    def __init__(self, proof: str, look: Callable[[str], object], wait: Callable[[float], None]):
        self._proof = proof
        self._look = look
        self._wait = wait
        self._failures = 0
        self._paused: dict[str, float] = {}
        self._why: NotIndexed | None = None
        self._lock = Lock()
        self._looking = Lock()

    def check(self) -> None:
        """Go on asking, once nobody looks any more whether the host answers.

        Raises:
            NotIndexed: The host was given up; with the reason of what failed last.
        """
        with self._looking:
            why = self._why
        if why is not None:
            raise NotIndexed(why.reason, why.message)

    def note_answer(self, url: str) -> None:
        """An address was had."""
        with self._lock:
            self._failures = 0
            self._proof = url

    def note_failure(self, error: NotIndexed) -> None:
        """An address could not be had. After many in a row it is looked, and waited, for one that answered before."""
        with self._lock:
            self._failures += 1
            are_many = self._failures >= FAILURES_IN_A_ROW
        if are_many:
            self._look_again(error)

    def note_pause(self, url: str, asked: TryLater) -> None:
        """A request was answered by asking to wait."""
        with self._lock:
            self._paused[url] = self._paused.get(url, 0.0) + asked.seconds
            if sum(self._paused.values()) >= MAX_PAUSED_SECONDS:
                self._why = NotIndexed(asked.reason, "The server asks to wait again and again.")

    def forget_pauses(self, url: str) -> None:
        """A request was answered: that the server had asked to wait with it was meant."""
        with self._lock:
            self._paused.pop(url, None)

    def _look_again(self, error: NotIndexed) -> None:
        with self._looking:
            if self._why is not None or self._failures < FAILURES_IN_A_ROW:
                return  # Another thread has looked.
            for pause in LOOK_AGAIN_SECONDS:
                self._wait(pause)
                try:
                    self._look(self._proof)
                except NotIndexed:
                    continue
                with self._lock:
                    self._failures = 0
                return
            self._why = error
