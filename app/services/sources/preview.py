"""What one page would become, before it is indexed: one bounded visit, nothing is stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from app.crawler.feeds import fetch_feed
from app.crawler.network import Network
from app.crawler.politeness import Turns
from app.crawler.reading.reader import PageReader
from app.crawler.sitemaps import walk_sitemaps
from app.crawler.values import NotIndexed, Reason, Selectors
from app.crawler.wordpress import walk_posts
from app.errors import ApiError, ErrorCode
from app.models import Site, Source
from app.services.sources.checks import check_address, check_selectors
from app.services.sources.page_documents import make_document
from app.services.sources.posts import page_of_post
from app.services.sources.visitor import Visitor

AT_ONCE = 2
"""Previews at work in one process: they hold threads that answer requests."""
MAX_SECONDS = 6.0
"""How long one address may take, and when nothing is waited for any more."""
MAX_CPU_SECONDS = 4
"""Processor time for reading the page, in a process of its own."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """What a page would become.

    Attributes:
        document: As it would be indexed, but with what the titles of a site share.
        reason: Why there would be none.
    """

    document: Mapping[str, Any] | None = None
    reason: str | None = None


class Previewer:
    """Looks at pages for people who wait.

    Args:
        turns: Whose turn it is at a host.
        user_agent: Says who we are.
        private_addresses: Whether hosts may have addresses that are not public.
    """

    def __init__(self, turns: Turns, user_agent: str, *, private_addresses: bool):
        self._turns = turns
        self._user_agent = user_agent
        self._private_addresses = private_addresses
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def preview(
        self, site: Site, url: str, *, kind: str = "website", selectors: Mapping[str, str], headers: Mapping[str, str]
    ) -> Preview:
        """Fetch and read one page.

        Args:
            url: The page's address; of other kinds than ``website`` that of the list, whose first page is read.

        Raises:
            ApiError: 400 for an address that is not the site's; 503 while too many pages are looked at.
        """
        address = check_address(site, url, private_addresses=self._private_addresses)
        check_selectors(selectors)
        if not self._room.acquire(blocking=False):
            raise ApiError(
                ErrorCode.SERVER_BUSY, "Too many pages are being previewed; try again.", retry_after=RETRY_SECONDS
            )
        try:
            with closing(Network(private_addresses=self._private_addresses)) as network:
                source = Source(kind=kind, url=address, headers=dict(headers))
                visitor = Visitor(
                    network, self._turns, source, self._user_agent, _waiting_until(MAX_SECONDS), max_seconds=MAX_SECONDS
                )
                return Preview(document=_read(visitor, source, Selectors(**selectors)))
        except NotIndexed as error:
            return Preview(reason=error.reason)
        finally:
            self._room.release()


def _waiting_until(seconds: float) -> Any:
    """Waits, but never beyond this many seconds from now."""
    until = time.monotonic() + seconds

    def wait(pause: float) -> None:
        if time.monotonic() + pause > until:
            raise NotIndexed(Reason.TIMEOUT, "The host asks to wait for longer than a preview does.")
        time.sleep(pause)

    return wait


def _read(visitor: Visitor, source: Source, selectors: Selectors) -> Mapping[str, Any]:
    """The document of the first page.

    Raises:
        NotIndexed: There would be none.
    """
    if source.kind == "wordpress":
        for post in walk_posts(visitor.fetch_listing, source.url):
            page = page_of_post(post)
            return make_document(page, post.url, page.title).fields
        raise NotIndexed(Reason.EMPTY, "The blog has no published post.")
    fetched = visitor.fetch_page(_first_address(visitor, source), lambda url: None)
    with PageReader(MAX_CPU_SECONDS, MAX_SECONDS) as reader:
        page = reader.read(fetched, selectors)
    if page.left_out is not None:
        raise NotIndexed(page.left_out, "The page gives no document.")
    if page.canonical not in (None, fetched.url):
        raise NotIndexed(Reason.CANONICAL, "The page names another address as its own.")
    return make_document(page, fetched.url, page.title).fields


def _first_address(visitor: Visitor, source: Source) -> str:
    match source.kind:
        case "sitemap":
            listed: Iterable[str] = walk_sitemaps(visitor.fetch_listing, [source.url], _refuse)
        case "feed":
            listed = fetch_feed(visitor.fetch_listing, source.url)
        case _:
            return source.url
    for url in listed:
        if visitor.scope.contains(url):
            return url
    raise NotIndexed(Reason.BAD_SOURCE, "The list names no page of the site.")


def _refuse(url: str, error: NotIndexed) -> None:
    raise error
