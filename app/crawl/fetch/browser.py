"""A Chromium that renders pages without touching the network: the crawler's fetcher serves each of its requests.

Playwright and its Node.js process are loaded when the first page is rendered.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.crawl.fetch.account_turns import AccountTurns
from app.crawl.fetch.page_rendering import BrowserError, BrowserFailed, FetchResource, RenderedPage, Rendering
from app.crawl.fetch.values import Fetched

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import BrowserContext, Playwright

MAX_SECONDS = 20.0
"""Maximum seconds for rendering one page, including its requests."""
MAX_BROWSER_BYTES = 1_024 * 1_048_576
"""Maximum private memory of a Chromium that this process started, summed over its processes."""

_START_SECONDS = 30.0
_CLOSE_SECONDS = 5.0
_WATCH_SECONDS = 0.1
"""Seconds between two checks of the browser's memory. A page can fill about a gigabyte in a second."""
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not exist: the discard port, on which nothing listens."""
_LOOPBACK_TOO = "<-loopback>"
"""The proxy bypass rule that removes Chromium's own exception for loopback addresses."""

ARGUMENTS = (
    # A request that escapes the interception reaches only a proxy that does not exist. No name resolves.
    f"--proxy-server={_NOWHERE}",
    f"--proxy-bypass-list={_LOOPBACK_TOO}",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=DnsOverHttps,AsyncDns,Prerender2,SpeculationRulesPrefetchFuture,LoadingPredictorPrefetch,"
    "OptimizationHints,MediaRouter,Translate,WebTransport,PrivateStateTokens,InterestFeedContentSuggestions",
    "--block-new-web-contents",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--js-flags=--max-old-space-size=512",
)
"""Command-line arguments of a Chromium that this process starts, in addition to Playwright's."""

_NO_ACCOUNT = 0

T = TypeVar("T")

log = logging.getLogger(__name__)


class BrowserDied(BrowserFailed):
    """The browser ended or hung while it rendered a page."""


class Browser:
    """Renders one page at a time, each in a new context without cookies, storage, or cache. Thread-safe.

    Accounts take turns. A browser that hangs, crashes, or takes too much memory is ended, and the next page starts a
    new one.

    Args:
        location: Path of a Chromium, or the ``ws://``, ``wss://``, ``http://``, or ``https://`` URL of one that speaks
            the DevTools protocol.
        user_agent: The ``User-Agent`` that pages see.
        max_seconds: Maximum seconds for one page.
        max_bytes: Maximum private memory of a Chromium that this process starts.
    """

    def __init__(
        self,
        location: str,
        user_agent: str,
        *,
        max_seconds: float = MAX_SECONDS,
        max_bytes: int = MAX_BROWSER_BYTES,
    ):
        self._location = location
        self._user_agent = user_agent
        self._max_seconds = max_seconds
        self._max_bytes = max_bytes
        self._turns = AccountTurns()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._playwright: Playwright | None = None
        self._chromium: Chromium | None = None
        self._process_id: int | None = None
        self._has_exceeded_memory = False

    @contextmanager
    def turn(self, account: int, wait: Callable[[float], object]) -> Iterator[None]:
        """Wait until the browser is free for a page of an account, and reserve it until the context ends.

        Args:
            account: ID of the account.
            wait: Called about once a second while other pages are rendered; may raise.
        """
        with self._turns.take(account, wait):
            yield

    def render(self, page: Fetched, fetch: FetchResource) -> RenderedPage:
        """Run the scripts of a page during a :meth:`turn`. If the browser fails meanwhile, run them once more.

        Args:
            page: The page as sent; its URL may have a fragment.
            fetch: Called in other threads.

        Raises:
            BrowserFailed: The browser cannot be started or reached, or failed twice.
            BrowserError: The page takes too much time or memory, or cannot be read.
        """
        return self._call(self._render(page, fetch))

    def version(self) -> str:
        """Start or reach the browser, and return its version.

        Raises:
            BrowserFailed: The browser cannot be started or reached.
        """
        with self.turn(_NO_ACCOUNT, _no_wait):
            return self._call(self._version())

    def close(self) -> None:
        """End the browser, and the thread that drives it."""
        with self.turn(_NO_ACCOUNT, _no_wait):
            if self._loop is None or self._thread is None:
                return
            self._call(self._end(stop_driver=True))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
            self._thread.join()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="crawl-browser", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _version(self) -> str:
        return str((await self._started()).version)

    async def _render(self, page: Fetched, fetch: FetchResource) -> RenderedPage:
        try:
            return await self._render_once(await self._started(), page, fetch)
        except BrowserDied as error:
            log.warning("rendering %s again: %s", page.url, error)
            return await self._render_once(await self._started(), page, fetch)

    async def _render_once(self, chromium: Chromium, page: Fetched, fetch: FetchResource) -> RenderedPage:
        from playwright.async_api import Error

        self._has_exceeded_memory = is_usable = False
        watch = asyncio.create_task(self._watch())
        visit = Rendering(page, fetch, self._max_seconds)
        try:
            async with asyncio.timeout(self._max_seconds) as limit:
                # The browser's own arguments cannot be set if it runs elsewhere, so each context has the proxy, too.
                context = await chromium.new_context(
                    user_agent=self._user_agent,
                    # Requests of service workers would bypass the interception.
                    service_workers="block",
                    accept_downloads=False,
                    reduced_motion="reduce",
                    proxy={"server": _NOWHERE, "bypass": _LOOPBACK_TOO},
                )
                try:
                    return await visit.render(context)
                finally:
                    # In every case, because the scripts of the page would otherwise continue beside the next pages.
                    is_usable = not limit.expired() and await _close(context)
        except (Error, TimeoutError) as error:
            failure = await self._explain(chromium, error)
            log.info("%s: %s (%s)", page.url, failure, error)
            raise failure from error
        finally:
            watch.cancel()
            visit.close()
            if not is_usable:
                # With the driver, because that may be what failed.
                await self._end(stop_driver=True)

    async def _explain(self, chromium: Chromium, error: Exception) -> BrowserError:
        """Return the error for a page, after asking the browser whether the page or the browser itself failed."""
        if self._has_exceeded_memory:
            return BrowserError("The page needs too much memory.")
        if not await _within_seconds(_ask_version(chromium)):
            return BrowserDied("The browser ended or does not respond.")
        if isinstance(error, TimeoutError):
            return BrowserError("The page takes too long to render.")
        return BrowserError("The browser fails on this page.")

    async def _started(self) -> Chromium:
        from playwright.async_api import Error, async_playwright

        if self._chromium is not None and self._chromium.is_connected():
            return self._chromium
        try:
            async with asyncio.timeout(_START_SECONDS):
                if self._playwright is None:
                    self._playwright = await async_playwright().start()
                if is_address(self._location):
                    self._chromium = await self._playwright.chromium.connect_over_cdp(self._location)
                else:
                    self._chromium = await self._playwright.chromium.launch(
                        executable_path=self._location,
                        args=list(ARGUMENTS),
                        # Chromium refuses to run as root with its sandbox.
                        chromium_sandbox=os.geteuid() != 0,
                        # The worker process handles signals itself: it hands back its runs before the browser ends.
                        handle_sigint=False,
                        handle_sigterm=False,
                        handle_sighup=False,
                    )
                    self._process_id = await _process_id(self._chromium)
                return self._chromium
        except (Error, OSError, TimeoutError) as error:
            await self._end(stop_driver=True)
            line = next(iter(str(error).strip().splitlines()), "") or "it takes too long"
            raise BrowserFailed(f"The browser cannot be started: {line}") from error

    async def _end(self, *, stop_driver: bool = False) -> None:
        """End the browser by force if it does not end by itself."""
        chromium, process_id = self._chromium, self._process_id
        self._chromium, self._process_id = None, None
        # Killed first, because a hanging browser does not answer a request to close.
        if process_id is not None:
            _kill(process_id)
        if chromium is not None:
            await _within_seconds(chromium.close())
        if stop_driver and self._playwright is not None:
            playwright, self._playwright = self._playwright, None
            await _within_seconds(playwright.stop())

    async def _watch(self) -> None:
        process_id = self._process_id
        while process_id is not None:
            if _private_bytes(process_id) > self._max_bytes:
                log.warning("The crawler's browser exceeded its memory and was ended.")
                self._has_exceeded_memory = True
                _kill(process_id)
                return
            await asyncio.sleep(_WATCH_SECONDS)


def _no_wait(seconds: float) -> None:
    pass


def is_address(location: str) -> bool:
    """Whether the location of a browser is a URL rather than a path."""
    return location.startswith(("ws://", "wss://", "http://", "https://"))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    # Handlers of requests that no page waits for anymore.
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


async def _close(context: BrowserContext) -> bool:
    return await _within_seconds(context.unroute_all(behavior="ignoreErrors")) and await _within_seconds(
        context.close()
    )


async def _ask_version(chromium: Chromium) -> None:
    devtools = await chromium.new_browser_cdp_session()
    await devtools.send("Browser.getVersion")
    await devtools.detach()


async def _within_seconds(step: Awaitable[object]) -> bool:
    """Whether a step succeeds in time. A browser that fails or hangs is ended by force."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await step
    except (Error, TimeoutError):
        return False
    return True


async def _process_id(chromium: Chromium) -> int:
    devtools = await chromium.new_browser_cdp_session()
    processes = await devtools.send("SystemInfo.getProcessInfo")
    await devtools.detach()
    return next(int(process["id"]) for process in processes["processInfo"] if process["type"] == "browser")


def _private_bytes(process_id: int) -> int:
    """Return the private memory of a process and its descendants; 0 where ``/proc`` does not exist."""
    total, waiting = 0, [process_id]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):
            _, resident, shared, *_ = map(int, (folder / "statm").read_text().split())
            # Shared pages, such as the program itself, would otherwise count once for each of some ten processes.
            total += (resident - shared) * os.sysconf("SC_PAGE_SIZE")
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


def _kill(process_id: int) -> None:
    # Playwright starts the browser as the leader of a process group.
    with suppress(ProcessLookupError):
        os.killpg(process_id, signal.SIGKILL)
