"""One page while it is rendered: the fetcher serves its requests, and the page is read once it has settled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.crawl.fetch.network import time_limit
from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, NotIndexed

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Route

MAX_REQUESTS = 100
"""Maximum number of requests of one page."""
MAX_RESOURCE_BYTES = 5 * 1_048_576
"""Maximum size of the response to one request of a page."""
MAX_RESOURCES_BYTES = 50 * 1_048_576
"""Maximum size of all responses for one page."""

_QUIET_SECONDS = 0.5
"""Seconds without a request or a change after which a page has settled."""
_SETTLE_SHARE = 0.75
"""Share of a page's time limit after which the page is read even if it has not settled."""
_POLL_SECONDS = 0.05
_LITTLE_TEXT = 200
"""Number of visible characters below which a settled page gets :data:`_LATE_SECONDS` to draw its text."""
_LATE_SECONDS = 3.0
"""Seconds that a page with little text may stay unchanged, since some pages draw their text by a timer."""
_MAX_ROUNDS = 8
"""Number of checks, half a second apart, after which a page that changes but requests nothing is read anyway."""
_FETCHERS = 4
_MAX_NAVIGATIONS = 10
_FETCHED_TYPES = {"script", "stylesheet", "fetch", "xhr", "manifest", "other"}
"""Types of resources that a page may request. Images, fonts, media, frames, and open connections are blocked."""
_FORWARDED_HEADERS = ("content-type", "content-security-policy")
_FORWARDED_PREFIX = "access-control-"

_STATE = """
new Promise(done => requestIdleCallback(
  () => done(`${document.readyState} ${document.documentElement?.outerHTML.length}`), {timeout: 3000}
))
"""
"""Evaluates to the state of a page once its scripts are idle. Scripts may have removed the root element."""
_TEXT_LENGTH = "document.body?.innerText.length ?? 0"
_DOCUMENT = f"(document.documentElement?.outerHTML ?? '').slice(0, {MAX_PAGE_BYTES})"

log = logging.getLogger(__name__)

FetchResource = Callable[[str, float], Fetched]
"""Fetches a URL that a page requests, with all checks of the crawler, before a deadline in monotonic seconds.

Raises:
    NotIndexed: The URL cannot be fetched.
"""


class BrowserError(Exception):
    """A page could not be rendered."""


class BrowserFailed(BrowserError):
    """The browser cannot be started or reached, ended, or does not respond. The page is not necessarily the cause."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page after its scripts have run.

    Attributes:
        html: The document.
        navigations: URLs to which the page tried to navigate.
    """

    html: str
    navigations: tuple[str, ...] = ()


@dataclass
class Rendering:
    """One page while the browser renders it."""

    page: Fetched
    fetch: FetchResource
    max_seconds: float
    deadline: float = 0.0
    requests: int = 0
    bytes: int = 0
    pending: int = 0
    is_served: bool = False
    navigations: dict[str, None] = field(default_factory=dict)
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_FETCHERS, thread_name_prefix="crawl-resource")
    )

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def render(self, context: BrowserContext) -> RenderedPage:
        self.deadline = time.monotonic() + self.max_seconds
        page = await context.new_page()
        context.on("page", _close_popup)
        # By these events rather than when a response is sent: on a busy machine, the page gets it much later.
        page.on("request", self._begin)
        page.on("requestfinished", self._finish)
        page.on("requestfailed", self._finish)
        await context.route("**/*", self._respond)
        devtools = await context.new_cdp_session(page)
        # Not "load": a page with an endless request would never get there. ``_settle`` waits instead.
        await page.goto(self.page.url, wait_until="commit")
        tree = await devtools.send("Page.getFrameTree")
        # A world of its own, in which the page's scripts cannot replace any function.
        world = await devtools.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})

        async def evaluate(expression: str) -> Any:
            result = await devtools.send(
                "Runtime.evaluate",
                {
                    "expression": expression,
                    "contextId": world["executionContextId"],
                    "awaitPromise": True,
                    "returnByValue": True,
                },
            )
            if "exceptionDetails" in result:
                raise BrowserError("The page cannot be read after its scripts have run.")
            return result["result"]["value"]

        await self._settle(evaluate)
        html = await evaluate(_DOCUMENT)
        return RenderedPage(f"<!doctype html>{html}", tuple(self.navigations))

    async def _settle(self, evaluate: Callable[[str], Awaitable[Any]]) -> None:
        """Wait until the page is complete and has stopped requesting and changing things."""
        ends = time.monotonic() + self.max_seconds * _SETTLE_SHARE
        state, requests, rounds = "", 0, 0
        late_ends: float | None = None
        while time.monotonic() < ends and rounds < _MAX_ROUNDS:
            if self.pending:
                await asyncio.sleep(_POLL_SECONDS)
                continue
            earlier = state, requests
            state, requests = await evaluate(_STATE), self.requests
            if (state, requests) == earlier and state.startswith("complete"):
                if await evaluate(_TEXT_LENGTH) >= _LITTLE_TEXT:
                    return
                late_ends = late_ends or time.monotonic() + _LATE_SECONDS
                if time.monotonic() >= late_ends:
                    return
                await asyncio.sleep(_QUIET_SECONDS)
                continue
            # A page that changes without end, such as a clock, is read as it is.
            rounds = rounds + 1 if requests == earlier[1] else 0
            await asyncio.sleep(_QUIET_SECONDS)

    def _begin(self, request: Request) -> None:
        self.pending += 1

    def _finish(self, request: Request) -> None:
        self.pending -= 1

    async def _respond(self, route: Route) -> None:
        from playwright.async_api import Error

        # The browser may be gone when a response arrives.
        with contextlib.suppress(Error):
            request = route.request
            if request.is_navigation_request():
                await self._navigate(route)
            elif not self._may_fetch(request.resource_type, request.method, request.url):
                await route.abort("blockedbyclient")
            else:
                await self._fulfill(route, request.url)

    async def _navigate(self, route: Route) -> None:
        if not self.is_served:
            self.is_served = True
            await route.fulfill(status=200, headers=_forwarded(self.page.headers), body=self.page.body)
            return
        if route.request.frame.parent_frame is None and len(self.navigations) < _MAX_NAVIGATIONS:
            self.navigations[route.request.url] = None
        # Chromium stays on a page if a navigation is aborted, but shows an error for any other failure.
        await route.abort("aborted")

    def _may_fetch(self, kind: str, method: str, url: str) -> bool:
        # Only GET, because other methods could change something on the site.
        if kind not in _FETCHED_TYPES or method != "GET" or urlsplit(url).scheme not in ("http", "https"):
            return False
        self.requests += 1
        return self.requests <= MAX_REQUESTS and self.bytes < MAX_RESOURCES_BYTES

    async def _fulfill(self, route: Route, url: str) -> None:
        try:
            fetched = await asyncio.get_running_loop().run_in_executor(self.threads, self._fetch, url)
            self.bytes += len(fetched.body)
            await route.fulfill(status=200, headers=_forwarded(fetched.headers), body=fetched.body)
        except NotIndexed as error:
            status = error.reason.removeprefix("http_")
            # Some pages look for files that may be missing, and expect a status rather than a failure.
            if status.isdecimal() and int(status) >= 400:
                await route.fulfill(status=int(status), body="")
            else:
                await route.abort("failed")
        except Exception:
            # The page must not wait for a response that never comes.
            log.exception("%s requests %s, which cannot be fetched", self.page.url, url)
            await route.abort("failed")

    def _fetch(self, url: str) -> Fetched:
        with time_limit(max(0.0, self.deadline - time.monotonic())):
            return self.fetch(url, self.deadline)


async def _close_popup(page: Page) -> None:
    from playwright.async_api import Error

    with contextlib.suppress(Error):
        await page.close()


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name in _FORWARDED_HEADERS or name.startswith(_FORWARDED_PREFIX)
    }
