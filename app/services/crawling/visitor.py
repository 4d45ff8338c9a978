"""Asking the hosts of one run: with the rules of their robots.txt, in turns, and again where they ask for patience."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from app.crawler.addresses import Scope, host_of
from app.crawler.fetching import MAX_SECONDS, Fetcher
from app.crawler.network import Network
from app.crawler.politeness import Turns, polite
from app.crawler.robots import Robots
from app.crawler.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Reason, TryLater, Validators
from app.models import Source

TRIES = 3
"""How often an address is asked for whose host asks to wait."""

FAILURES_IN_A_ROW = 20
"""After so many pages of a host that could not be had, one after another, its other pages are not asked for."""


class Visitor:
    """Fetches what one run reads. Thread-safe.

    Args:
        wait: Waits for seconds; it may raise to end the waiting.
        max_seconds: How long one fetch may take, without waiting.
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
        self._turns = turns
        self._wait = wait
        self._fetcher = Fetcher(
            network, self.scope, user_agent, headers=source.headers, headers_url=source.url, max_seconds=max_seconds
        )
        self._failures: Counter[str] = Counter()
        self._given_up: dict[str, NotIndexed] = {}
        self._lock = Lock()

    def fetch_page(self, url: str, validators: Callable[[str], Validators | None]) -> Fetched:
        """Fetch a page.

        Args:
            validators: What is known of an address; see :meth:`app.crawler.fetching.Fetcher.fetch`.

        Raises:
            NotIndexed: It cannot be had.
        """
        host = host_of(url)
        with self._lock:
            why = self._given_up.get(host)
        if why is not None:
            raise NotIndexed(why.reason, why.message)
        try:
            fetched = self._insist(lambda: self._fetcher.fetch(url, validators=validators, visit=self._visit))
        except NotIndexed as error:
            self._note_failure(host, error)
            raise
        with self._lock:
            self._failures.pop(host, None)
        return fetched

    def fetch_listing(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        """Fetch what lists pages: a sitemap, a feed, or an answer of an API.

        Raises:
            NotIndexed: It cannot be had.
        """
        return self._insist(
            lambda: self._fetcher.fetch(
                url, visit=self._visit, any_type=any_type, max_bytes=max_bytes, truncate=truncate
            )
        )

    def _fetch_rules(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        return self._insist(
            lambda: self._fetcher.fetch(
                url, visit=self._take_turn, any_type=any_type, max_bytes=max_bytes, truncate=truncate
            )
        )

    @contextmanager
    def _take_turn(self, url: str) -> Iterator[None]:
        with polite(self._turns, host_of(url), wait=self._wait):
            yield

    @contextmanager
    def _visit(self, url: str) -> Iterator[None]:
        rules = self.robots.check(url)
        with polite(self._turns, host_of(url), crawl_delay=rules.crawl_delay, wait=self._wait):
            yield

    def _insist(self, fetch: Callable[[], Fetched]) -> Fetched:
        """Fetch again while the host asks to wait: its next turn comes after that."""
        for _ in range(TRIES - 1):
            try:
                return fetch()
            except TryLater:
                continue
        try:
            return fetch()
        except TryLater as error:
            raise NotIndexed(error.reason, "The server asks to wait again and again.") from error

    def _note_failure(self, host: str, error: NotIndexed) -> None:
        """Give up a host that does not answer, so that a run ends."""
        if not is_failure(error.reason):
            return
        with self._lock:
            self._failures[host] += 1
            patience_is_over = isinstance(error.__cause__, TryLater)
            if patience_is_over or self._failures[host] >= FAILURES_IN_A_ROW:
                self._given_up[host] = error


_REFUSALS = {
    "http_404",
    "http_410",
    *(
        Reason.ROBOTS, Reason.NOINDEX, Reason.CANONICAL, Reason.DUPLICATE, Reason.TOO_LARGE, Reason.NOT_TEXT,
        Reason.OTHER_HOST, Reason.EXCLUDED, Reason.TRAP, Reason.QUOTA, Reason.EMPTY, Reason.SOFT_404,
    ),
}  # fmt: skip


def is_failure(reason: str) -> bool:
    """Whether a page could not be read now, rather than being none: what it was before stays."""
    return reason not in _REFUSALS
