"""Noticing that a server does not respond, so that it neither delays callers nor occupies this process.

A server is *suspected* if requests have waited for :data:`SUSPECT_SECONDS` and none got a response. The next caller
sends it a cheap request, a probe, while others wait for its outcome. If it gets no response either, the server is
*silent*: requests are rejected without being sent. Callers then probe it one at a time, until it responds.

Slow requests alone never make a server silent: it responds to the probe. A refused connection counts as a response,
since nobody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from backends.errors import EngineNotAsked

SUSPECT_SECONDS = 1.0
"""Seconds without any response after which the next caller probes a server."""
PROBE_SECONDS = 1.5
"""Maximum number of seconds that a probe takes."""
PAUSE_SECONDS = 3.0
"""Seconds between two probes of a silent server."""
MAX_REQUESTS = 32
"""Maximum number of requests that a process sends to an engine at the same time."""
MAX_WAITING = 64
"""Maximum number of further requests that wait for others to end."""


class Silence:
    """The requests of one process to one engine, and whether it responds to them. Thread-safe.

    Args:
        probe_seconds: Time limit of a probe.
        clock: Returns monotonic time in seconds.
    """

    def __init__(self, probe_seconds: float = PROBE_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._probe_seconds = probe_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._requests = 0
        self._waiting = 0
        self._since: float | None = None
        """Time since which requests have been waiting without any response; ``None`` if none has been."""
        self._is_silent = False
        self._is_probing = False
        self._probe_at = 0.0

    def begin(self, seconds: float) -> bool:
        """Begin a request, waiting up to ``seconds`` for the end of others if there are too many, or of a probe.

        Returns:
            ``True`` if the request has begun, and must be ended with :meth:`end`. ``False`` if the caller, which has at
                least ``probe_seconds``, must probe the server, call :meth:`end_probe`, and begin again.

        Raises:
            EngineNotAsked: The server does not respond, or too many other requests did not end in time.
        """
        deadline = self._clock() + seconds
        with self._changed:
            while True:
                now = self._clock()
                if deadline - now >= self._probe_seconds and self._is_probe_due(now):
                    self._is_probing = True
                    return False
                if self._is_silent:
                    raise EngineNotAsked("The search engine does not respond.")
                # During the first probe, its outcome is worth waiting for: without it, this request might wait longer.
                if self._requests < MAX_REQUESTS and not self._is_probing:
                    self._requests += 1
                    if self._since is None:
                        self._since = now
                    return True
                if now >= deadline or self._waiting >= MAX_WAITING:
                    raise EngineNotAsked("Too many requests are waiting for the search engine.")
                self._waiting += 1
                # Not longer, because a waiting caller, too, must probe a suspected server.
                self._changed.wait(min(deadline - now, SUSPECT_SECONDS))
                self._waiting -= 1

    def _is_probe_due(self, now: float) -> bool:
        if self._is_probing:
            return False
        if self._is_silent:
            return now >= self._probe_at
        return self._since is not None and now - self._since >= SUSPECT_SECONDS

    def end(self, *, responded: bool) -> None:
        """End a request that :meth:`begin` began; ``responded`` is whether the server responded to it."""
        with self._changed:
            self._requests -= 1
            if responded:
                self._record_response()
            self._changed.notify()

    def end_probe(self, *, responded: bool) -> None:
        """End a probe that :meth:`begin` requested; ``responded`` is whether the server responded to it."""
        with self._changed:
            self._is_probing = False
            if responded:
                self._record_response()
            else:
                self._is_silent = True
                self._probe_at = self._clock() + PAUSE_SECONDS
            self._changed.notify_all()

    def _record_response(self) -> None:
        self._is_silent = False
        self._since = self._clock() if self._requests else None
