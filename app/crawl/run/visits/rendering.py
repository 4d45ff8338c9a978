"""Pages that need JavaScript: which pages of a run a browser renders, and the resources that they may request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from app.crawl.fetch.addresses import header_origins, host_of, parse_url, route_of
from app.crawl.fetch.browser import Browser
from app.crawl.fetch.fetching import Fetcher
from app.crawl.fetch.network import Network
from app.crawl.fetch.page_rendering import MAX_RESOURCE_BYTES, BrowserError, BrowserFailed, RenderedPage
from app.crawl.fetch.politeness import polite
from app.crawl.fetch.robots import Robots
from app.crawl.fetch.unexpected import EndsRun
from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Page, Reason
from app.crawl.read.links import absolute_address
from app.crawl.run.visits.visitor import HostVisitor
from app.models import Source

LITTLE_TEXT = 500
"""Number of characters of text below which ``auto`` renders a page with scripts."""
MAX_BARREN_PAGES = 5
"""Number of consecutive pages without more text after rendering, after which ``auto`` stops using the browser."""
MAX_FAILURES = 5
"""Number of consecutive pages that could not be rendered, after which a run stops using the browser."""
QUICK_SECONDS = 5.0
"""Seconds of browser time that each page may take without counting as slow."""
MAX_SLOW_SECONDS = 900.0
"""Maximum seconds beyond :data:`QUICK_SECONDS`, summed over the pages of a run. Then the run stops using the browser.
"""
MAX_CACHED_BYTES = 32 * 1_048_576
"""Maximum size of the resources that a run keeps for its next pages."""

_RESOURCE_SECONDS = 10.0
_STALE_HEADERS = {"etag", "last-modified", "content-type", "content-security-policy"}
"""Response headers dropped from rendered pages. Validators apply only to the body that the server sent: scripts may
meanwhile load different data.
"""


class Resources:
    """Fetches the resources that the pages of one run request while their scripts run, each URL once. Thread-safe.

    Resources may be on other hosts, such as content delivery networks, but there only on public IP addresses.

    Args:
        network: The connections for the source's hosts.
        public_network: The connections for all other hosts.
    """

    def __init__(
        self, visitor: HostVisitor, source: Source, user_agent: str, network: Network, public_network: Network
    ):
        self._visitor = visitor
        self._header_origins = header_origins(source.url)
        self._own = Fetcher(network, visitor.scope, user_agent, max_seconds=_RESOURCE_SECONDS)
        self._foreign = Fetcher(public_network, None, user_agent, max_seconds=_RESOURCE_SECONDS)
        self._foreign_robots = Robots(self._fetch_foreign_rules)
        self._cache: dict[str, Fetched | NotIndexed] = {}
        self._cached_bytes = 0
        self._lock = threading.Lock()

    def fetch(self, url: str, page_url: str, deadline: float) -> Fetched:
        """Fetch a resource of a page.

        Args:
            deadline: Time, in monotonic seconds, until which the caller waits for a turn at the host.

        Raises:
            NotIndexed: The resource cannot be fetched.
        """
        fetch = self._fetcher_for(url, page_url)
        # Responses for pages of another origin lack the source's headers, so they differ.
        key = f"{fetch is self._visitor.fetcher} {url}"
        with self._lock:
            entry = self._cache.get(key)
        if entry is None:
            entry = self._attempt(fetch, url, deadline)
            self._store(key, entry)
        if isinstance(entry, NotIndexed):
            raise entry
        return entry

    def _fetcher_for(self, url: str, page_url: str) -> Fetcher:
        if not self._visitor.scope.contains(url):
            return self._foreign
        # The source's headers and the run's cookies may be secrets. The scripts of other origins must not read what
        # they unlock.
        page_origin = parse_url(page_url).origin
        trusted = page_origin in self._header_origins and parse_url(url).origin == page_origin
        return self._visitor.fetcher if trusted else self._own

    def _attempt(self, fetcher: Fetcher, url: str, deadline: float) -> Fetched | NotIndexed:
        robots = self._foreign_robots if fetcher is self._foreign else self._visitor.robots

        def wait(seconds: float) -> None:
            if time.monotonic() + seconds > deadline:
                raise NotIndexed(Reason.TIMEOUT, "The host asks the crawler to wait too long.")
            try:
                self._visitor.wait(seconds)
            except EndsRun as error:
                raise NotIndexed(Reason.CANCELED, "The run was stopped.") from error

        def visit(target: str) -> AbstractContextManager[None]:
            crawl_delay = robots.check(target).crawl_delay
            return polite(self._visitor.turns, host_of(target), crawl_delay=crawl_delay, wait=wait)

        try:
            return fetcher.fetch(url, visit=visit, any_type=True, max_bytes=MAX_RESOURCE_BYTES)
        except NotIndexed as error:
            return error

    def _store(self, key: str, entry: Fetched | NotIndexed) -> None:
        if isinstance(entry, NotIndexed):
            # Other failures may be temporary.
            size = len(key) if entry.reason in (Reason.ROBOTS, "http_404", "http_410") else None
        else:
            size = None if "no-store" in entry.headers.get("cache-control", "") else len(entry.body) + len(key)
        with self._lock:
            if size is not None and self._cached_bytes + size <= MAX_CACHED_BYTES:
                self._cached_bytes += size
                self._cache[key] = entry

    def _fetch_foreign_rules(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        return self._foreign.fetch(
            url,
            visit=lambda target: polite(self._visitor.turns, host_of(target), wait=self._visitor.wait),
            any_type=any_type,
            max_bytes=max_bytes,
            truncate=truncate,
        )


class Renderer:
    """Renders the pages of one run that need it. Thread-safe.

    Args:
        wait: Called about once a second while other pages are rendered; may raise.
        account_id: The account whose turns at the browser the run uses.
        slow_seconds: The initial value of the attribute.
        mode: The source's ``render``: ``auto`` or ``always``.

    Attributes:
        slow_seconds: Browser time that the run has spent on slow pages, in seconds.
    """

    def __init__(
        self,
        browser: Browser,
        resources: Resources,
        wait: Callable[[float], object],
        account_id: int,
        slow_seconds: float = 0.0,
        *,
        mode: str,
    ):
        self.slow_seconds = slow_seconds
        self._account_id = account_id
        self._browser = browser
        self._resources = resources
        self._wait = wait
        self._mode = mode
        self._barren_pages = 0
        self._failures: list[BrowserError] = []

    def render(self, queued_url: str, fetched: Fetched, read: Callable[[Fetched], Page]) -> tuple[Fetched, Page]:
        """Read a page as sent or, if it needs a browser, as rendered.

        Args:
            queued_url: The URL that was requested, perhaps with a route.

        Raises:
            NotIndexed: The page cannot be read, or has little text and cannot be rendered.
        """
        route = route_of(queued_url)
        page = read(fetched)
        if page.noindex or not (route or self._needs_browser(page)):
            return fetched, page
        addressed = replace(fetched, url=fetched.url + route) if route else fetched
        try:
            rendered, rendered_page = self._render_in_browser(addressed, read)
        except BrowserError as error:
            if route or _has_little_text(page):
                reason = Reason.BROWSER_FAILED if isinstance(error, BrowserFailed) else Reason.NOT_RENDERED
                raise NotIndexed(reason, str(error)) from error
            return fetched, page
        barren = len(rendered_page.content) <= len(page.content) and not set(rendered_page.links) - set(page.links)
        self._barren_pages = self._barren_pages + 1 if barren else 0
        return rendered, rendered_page

    def _needs_browser(self, page: Page) -> bool:
        return mode_renders(self._mode, page) and (self._mode == "always" or self._barren_pages < MAX_BARREN_PAGES)

    def _render_in_browser(self, fetched: Fetched, read: Callable[[Fetched], Page]) -> tuple[Fetched, Page]:
        if len(self._failures) >= MAX_FAILURES:
            # The page is not to blame if the browser itself failed before.
            raise type(self._failures[-1])("The browser failed for several pages in a row.")
        if self.slow_seconds > MAX_SLOW_SECONDS:
            raise BrowserError("Other pages of the run have used up the browser time.")
        try:
            result = self._take_turn(fetched)
        except BrowserError as error:
            self._failures.append(error)
            raise
        self._failures.clear()
        headers = {name: value for name, value in fetched.headers.items() if name not in _STALE_HEADERS}
        headers["content-type"] = "text/html; charset=utf-8"
        body = result.html.encode(errors="replace")
        rendered = replace(fetched, headers=headers, body=body, rendered=True)
        page = read(rendered)
        targets = (absolute_address(url, fetched.url, keep_route=True) for url in result.navigations)
        links = dict.fromkeys((*(target for target in targets if target is not None), *page.links))
        page = replace(page, links=tuple(links))
        address, route, _ = fetched.url.partition("#")
        if route:
            # A URL has only one fragment, so sections of a route have no URLs. A canonical URL that names the
            # application's file is not meant for its routes.
            page = replace(page, sections=(), canonical=None if page.canonical == address else page.canonical)
        return rendered, page

    def _take_turn(self, fetched: Fetched) -> RenderedPage:
        with self._browser.turn(self._account_id, self._wait):
            started_at = time.monotonic()
            try:
                return self._browser.render(
                    fetched, lambda url, deadline: self._resources.fetch(url, fetched.url, deadline)
                )
            finally:
                self.slow_seconds += max(0.0, time.monotonic() - started_at - QUICK_SECONDS)


def mode_renders(mode: str, page: Page) -> bool:
    """Whether a source renders a page that was read as sent.

    Args:
        mode: The source's ``render``.
    """
    return page.has_scripts and (mode == "always" or (mode == "auto" and _has_little_text(page)))


def _has_little_text(page: Page) -> bool:
    return len(page.content) < LITTLE_TEXT
