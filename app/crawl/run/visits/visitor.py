"""Asking the hosts of one run: with the rules of their robots.txt, in turns, and again where they ask for patience."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

from app.crawl.fetch.addresses import Scope, host_of, parse_url
from app.crawl.fetch.fetching import MAX_SECONDS, Fetcher
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns, polite
from app.crawl.fetch.robots import Robots
from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Reason, TryLater, Validators
from app.crawl.run.visits.patience import TRIES, HostPatience
from app.models import Source

LOOK_BYTES = 65_536
"""So much is read of a page that only shows whether its host answers."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a page among those that a run asks a host for.

    Attributes:
        before: Set when the page before it was asked for; ``None`` for the first.
        asked: Set when this one was, or will not be.
    """

    before: Event | None = None
    asked: Event = field(default_factory=Event)


class AskingOrder:
    """Gives the pages of a run their places, host by host. For one thread."""

    def __init__(self) -> None:
        self._last: dict[str, Event] = {}

    def place(self, url: str) -> Place:
        """The place behind all that were given for the host of an address."""
        host = host_of(url)
        place = Place(self._last.get(host))
        self._last[host] = place.asked
        return place


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
        self._source_url = source.url
        self._hosts: dict[str, HostPatience] = {}
        self._lock = Lock()

    def ask_for_page(
        self, url: str, validators: Callable[[str], Validators | None], place: Place | None = None
    ) -> Fetched:
        """Fetch a page, unless it is to be asked for later.

        Args:
            validators: What is known of an address; see :meth:`app.crawl.fetch.fetching.Fetcher.fetch`.
            place: The page's turn at the host is taken when the request for the page before it was sent. The caller
                sets ``asked`` at the end, since there may be no request.

        Raises:
            TryLater: Its host asks to wait, and is left alone until then; the page may be asked for again.
            NotIndexed: It cannot be had.
        """
        place = place or Place()

        @contextmanager
        def visit(address: str) -> Iterator[None]:
            while place.before is not None and not place.before.wait(1.0):
                self._wait(0.0)
            with self._visit(address):
                yield

        return self._ask(
            url, lambda: self._fetcher.fetch(url, validators=validators, visit=visit, on_sent=place.asked.set)
        )

    def fetch_page(self, url: str) -> Fetched:
        """Fetch a page, whatever is known of it; if its host asks to wait, again after that.

        Raises:
            NotIndexed: It cannot be had.
        """
        return _insist(lambda: self.ask_for_page(url, lambda url: None))

    def fetch_listing(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        """Fetch what lists pages: a sitemap, a feed, or an answer of an API.

        Raises:
            NotIndexed: It cannot be had.
        """

        def fetch() -> Fetched:
            return self._fetcher.fetch(
                url, visit=self._visit, any_type=any_type, max_bytes=max_bytes, truncate=truncate
            )

        return _insist(lambda: self._ask(url, fetch))

    def _fetch_rules(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        return _insist(
            lambda: self._fetcher.fetch(
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
            with polite(self._turns, host_of(url), crawl_delay=crawl_delay, wait=self._wait):
                yield
        except TryLater as asked:
            host.note_pause(url, asked)
            raise
        host.forget_pauses(url)

    def _ask(self, url: str, fetch: Callable[[], Fetched]) -> Fetched:
        host = self._host_of(url)
        host.check()
        try:
            fetched = fetch()
        except NotIndexed as error:
            if is_failure(error.reason):
                host.note_failure(error)
            raise
        host.note_answer(url)
        return fetched

    def _host_of(self, url: str) -> HostPatience:
        host = host_of(url)
        with self._lock:
            if host not in self._hosts:
                proof = self._source_url if host_of(self._source_url) == host else f"{parse_url(url).origin}/"
                self._hosts[host] = HostPatience(proof, self._look, self._wait)
            return self._hosts[host]

    def _look(self, url: str) -> None:
        self._fetcher.fetch(url, visit=self._visit, any_type=True, max_bytes=LOOK_BYTES, truncate=True)


def _insist(fetch: Callable[[], Fetched]) -> Fetched:
    """Fetch again while the host asks to wait: its next turn comes after that."""
    for _ in range(TRIES - 1):
        try:
            return fetch()
        except TryLater:
            continue
    try:
        return fetch()
    except TryLater as error:
        raise asks_again(error) from error


def asks_again(error: TryLater) -> NotIndexed:
    """The reason for leaving out an address whose host has asked to wait as often as it may."""
    return NotIndexed(error.reason, "The server asks to wait again and again.")


_REFUSALS = {
    "http_404",
    "http_410",
    *(
        Reason.ROBOTS, Reason.NOINDEX, Reason.CANONICAL, Reason.DUPLICATE, Reason.TOO_LARGE, Reason.NOT_TEXT,
        Reason.OTHER_HOST, Reason.EXCLUDED, Reason.TRAP, Reason.QUOTA, Reason.EMPTY, Reason.SOFT_404,
    ),
}  # fmt: skip


def is_failure(reason: str) -> bool:
    """Tell whether a page could not be read now, rather than being none: what it was before stays."""
    return reason not in _REFUSALS


def is_passing_reason(reason: str) -> bool:
    """Tell whether a page that could not be read may be read soon: its server was busy, broken, slow, or away."""
    return reason == "http_429" or reason.startswith("http_5") or reason in (Reason.TIMEOUT, Reason.UNREACHABLE)
