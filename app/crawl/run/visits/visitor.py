"""Requests to a run's hosts: they obey robots.txt, take turns, retry if a host asks to wait, and stop when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

from app.crawl.fetch.addresses import Scope, host_of, parse_url
from app.crawl.fetch.fetching import MAX_SECONDS, Fetcher
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns, polite
from app.crawl.fetch.robots import Robots
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Reason, TryLater, Validators
from app.crawl.run.outcomes import is_failure
from app.models import Source

PROBE_BYTES = 65_536
"""Maximum bytes to read of a page that is only requested to see whether its host responds."""

MAX_RESPONSE_SECONDS = 3.0
"""Maximum seconds that :func:`responds` waits for a host, including the wait for a turn."""

_NO_RESPONSE = {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS}


@dataclass(frozen=True, slots=True)
class RequestPosition:
    """A page's position in the order in which a run requests the pages of a host.

    Attributes:
        previous: Set when the request for the previous page was sent; ``None`` for the first page.
        requested: Set when the request for this page was sent or will not be sent.
    """

    previous: Event | None = None
    requested: Event = field(default_factory=Event)


class RequestOrder:
    """Assigns positions to the pages of a run, host by host. Not thread-safe."""

    def __init__(self) -> None:
        self._last: dict[str, Event] = {}

    def next_position(self, url: str) -> RequestPosition:
        """Assign the next position in the order of the URL's host."""
        host = host_of(url)
        position = RequestPosition(self._last.get(host))
        self._last[host] = position.requested
        return position


class HostVisitor:
    """Fetches the pages and lists of one run. Thread-safe.

    Args:
        wait: Waits for seconds; it may raise to end the waiting.
        max_seconds: Maximum seconds of one fetch, excluding waits for turns.
    """

    def __init__(
        self,
        network: Network,
        turns: Turns,
        source: Source,
        user_agent: str,
        wait: Callable[[float], None],
        *,
        max_seconds: float = MAX_SECONDS,
    ):
        self.scope = Scope.of(source.url)
        self.robots = Robots(self._fetch_rules)
        self.turns = turns
        self.wait = wait
        self.fetcher = Fetcher(
            network, self.scope, user_agent, headers=source.headers, headers_url=source.url, max_seconds=max_seconds
        )
        self._source_url = source.url
        self._hosts: dict[str, HostPatience] = {}
        self._lock = Lock()

    def request_page(
        self, url: str, validators: Callable[[str], Validators | None], position: RequestPosition | None = None
    ) -> Fetched:
        """Fetch a page with one attempt.

        Args:
            validators: Returns the stored validators of a URL; see :meth:`app.crawl.fetch.fetching.Fetcher.fetch`.
            position: Delays the page's turn at the host until the request for the previous page was sent. The caller
                sets ``requested`` at the end, since there may be no request.

        Raises:
            TryLater: The host asks to wait. It gets no requests until then, and the page may be requested again later.
            NotIndexed: The page cannot be fetched.
        """
        position = position or RequestPosition()

        @contextmanager
        def visit(target: str) -> Iterator[None]:
            # Wakes every second, so that ``self.wait`` can raise when the run is stopped.
            while position.previous is not None and not position.previous.wait(1.0):
                self.wait(0.0)
            with self._visit(target):
                yield

        return self._request(
            url, lambda: self.fetcher.fetch(url, validators=validators, visit=visit, on_sent=position.requested.set)
        )

    def fetch_page(self, url: str) -> Fetched:
        """Fetch a page unconditionally, and again if its host asks to wait.

        Raises:
            NotIndexed: The page cannot be fetched.
        """
        return _retry_later(lambda: self.request_page(url, lambda url: None))

    def fetch_listing(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        """Fetch a list of pages: a sitemap, a feed, or a response of an API.

        Raises:
            NotIndexed: The list cannot be fetched.
        """

        def fetch() -> Fetched:
            return self.fetcher.fetch(url, visit=self._visit, any_type=any_type, max_bytes=max_bytes, truncate=truncate)

        return _retry_later(lambda: self._request(url, fetch))

    def _fetch_rules(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        # This takes a turn but does not check the rules, which are being fetched.
        return _retry_later(
            lambda: self.fetcher.fetch(
                url, visit=self._take_turn, any_type=any_type, max_bytes=max_bytes, truncate=truncate
            )
        )

    def _take_turn(self, url: str) -> AbstractContextManager[None]:
        return self._polite(url, 0.0)

    def _visit(self, url: str) -> AbstractContextManager[None]:
        return self._polite(url, self.robots.check(url).crawl_delay)

    @contextmanager
    def _polite(self, url: str, crawl_delay: float) -> Iterator[None]:
        host = self._host_of(url)
        try:
            with polite(self.turns, host_of(url), crawl_delay=crawl_delay, wait=self.wait):
                yield
        except TryLater as error:
            host.record_pause(url, error)
            raise
        host.forget_pauses(url)

    def _request(self, url: str, fetch: Callable[[], Fetched]) -> Fetched:
        host = self._host_of(url)
        host.check()
        try:
            with guarded("page", url):
                fetched = fetch()
        except NotIndexed as error:
            if is_failure(error.reason):
                host.record_failure(error)
            raise
        host.record_success(url)
        return fetched

    def _host_of(self, url: str) -> HostPatience:
        host = host_of(url)
        with self._lock:
            if host not in self._hosts:
                probe_url = self._source_url if host_of(self._source_url) == host else f"{parse_url(url).origin}/"
                self._hosts[host] = HostPatience(probe_url, self._probe, self.wait)
            return self._hosts[host]

    def _probe(self, url: str) -> None:
        self.fetcher.fetch(url, visit=self._visit, any_type=True, max_bytes=PROBE_BYTES, truncate=True)


def _retry_later(fetch: Callable[[], Fetched]) -> Fetched:
    # No pause is needed here: the host's next turn comes only after the time that it asked for.
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return fetch()
        except TryLater:
            continue
    try:
        return fetch()
    except TryLater as error:
        raise too_many_attempts(error) from error


def too_many_attempts(error: TryLater) -> NotIndexed:
    """Return the reason to skip a URL whose host asked to wait at every attempt."""
    return NotIndexed(error.reason, "The server repeatedly asks the crawler to wait.")


def responds(url: str, turns: Turns, user_agent: str, *, private_addresses: bool) -> bool:
    """Whether a server responds at a URL with any status. Fails quickly, because a person is waiting.

    Args:
        user_agent: The ``User-Agent`` header.
        private_addresses: Whether hosts may have private IP addresses.
    """
    try:
        scope, host = Scope.of(url), host_of(url)
    except ValueError:
        return False
    wait = wait_at_most(MAX_RESPONSE_SECONDS)
    try:
        with closing(Network(private_addresses=private_addresses)) as network:
            fetcher = Fetcher(network, scope, user_agent, max_seconds=MAX_RESPONSE_SECONDS)
            fetcher.fetch(
                url,
                visit=lambda _: polite(turns, host, wait=wait),
                any_type=True,
                max_bytes=1,
                truncate=True,
            )
    except NotIndexed as error:
        return error.reason not in _NO_RESPONSE
    return True


def wait_at_most(seconds: float) -> Callable[[float], None]:
    """Return a sleep function that raises :class:`NotIndexed` instead of sleeping beyond ``seconds`` from now."""
    deadline = time.monotonic() + seconds

    def wait(pause: float) -> None:
        if time.monotonic() + pause > deadline:
            raise NotIndexed(Reason.TIMEOUT, "The host asks the crawler to wait too long.")
        time.sleep(pause)

    return wait


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

    def record_success(self, url: str) -> None:
        """Record that a URL could be fetched."""
        with self._lock:
            self._failures = 0
            # The probe then uses a URL that is known to work.
            self._probe_url = url

    def record_failure(self, error: NotIndexed) -> None:
        """Record that a URL could not be fetched. After many consecutive failures, probe a URL that worked before."""
        with self._lock:
            self._failures += 1
            must_probe = self._failures >= MAX_CONSECUTIVE_FAILURES
        if must_probe:
            self._probe_host(error)

    def record_pause(self, url: str, error: TryLater) -> None:
        """Record that the host asked to wait before another request for a URL."""
        with self._lock:
            self._paused[url] = self._paused.get(url, 0.0) + error.seconds
            # Summed over all URLs, because a host may request a short wait for each of many URLs.
            if sum(self._paused.values()) >= MAX_PAUSED_SECONDS:
                self._fatal_error = NotIndexed(error.reason, "The server repeatedly asks the crawler to wait.")

    def forget_pauses(self, url: str) -> None:
        """Record that a URL succeeded, so the pauses that the host requested for it were reasonable."""
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
