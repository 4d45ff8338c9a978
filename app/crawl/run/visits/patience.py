"""Detection of failing hosts, as opposed to hosts on which only some URLs fail."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from app.crawl.fetch.values import NotIndexed, TryLater

MAX_ATTEMPTS = 3
"""Maximum number of requests for a URL whose host asks to wait."""

MAX_CONSECUTIVE_FAILURES = 20
"""Number of consecutive failed URLs after which the run probes whether the host still responds."""

PROBE_PAUSES_SECONDS = (0.0, 10.0, 60.0, 180.0)
"""Seconds before each probe. A host that fails all of them gets no further requests in the run."""

MAX_PAUSED_SECONDS = 6_000.0
"""Maximum total wait that a host may request for URLs that never succeed, before the run gives up on the host."""


class HostPatience:
    """The failures of a host in one run. Thread-safe.

    Args:
        probe_url: A URL of the host that is likely to respond.
        probe: Requests a URL. It raises :class:`NotIndexed` on failure.
        wait: Waits for seconds; it may raise to end the waiting.
    """

    def __init__(self, probe_url: str, probe: Callable[[str], object], wait: Callable[[float], None]):
        self._probe_url = probe_url
        self._probe = probe
        self._wait = wait
        self._failures = 0
        self._paused: dict[str, float] = {}
        self._fatal_error: NotIndexed | None = None
        self._lock = Lock()
        self._probing = Lock()

    def check(self) -> None:
        """Wait until no thread probes the host.

        Raises:
            NotIndexed: The run has given up on the host; has the reason of the last failure.
        """
        with self._probing:
            error = self._fatal_error
        if error is not None:
            raise NotIndexed(error.reason, error.message)

    def note_success(self, url: str) -> None:
        """Note that a URL could be fetched."""
        with self._lock:
            self._failures = 0
            # The probe then uses a URL that is known to work.
            self._probe_url = url

    def note_failure(self, error: NotIndexed) -> None:
        """Note that a URL could not be fetched. After many consecutive failures, probe a URL that worked before."""
        with self._lock:
            self._failures += 1
            must_probe = self._failures >= MAX_CONSECUTIVE_FAILURES
        if must_probe:
            self._probe_host(error)

    def note_pause(self, url: str, error: TryLater) -> None:
        """Note that the host asked to wait before another request for a URL."""
        with self._lock:
            self._paused[url] = self._paused.get(url, 0.0) + error.seconds
            # Summed over all URLs, because a host may request a short wait for each of many URLs.
            if sum(self._paused.values()) >= MAX_PAUSED_SECONDS:
                self._fatal_error = NotIndexed(error.reason, "The server asks to wait again and again.")

    def forget_pauses(self, url: str) -> None:
        """Note that a URL succeeded, so the pauses that the host requested for it were reasonable."""
        with self._lock:
            self._paused.pop(url, None)

    def _probe_host(self, error: NotIndexed) -> None:
        with self._probing:
            if self._fatal_error is not None or self._failures < MAX_CONSECUTIVE_FAILURES:
                return  # Another thread probed the host while this one waited for the lock.
            for pause in PROBE_PAUSES_SECONDS:
                self._wait(pause)
                try:
                    self._probe(self._probe_url)
                except NotIndexed:
                    continue
                with self._lock:
                    self._failures = 0
                return
            self._fatal_error = error
