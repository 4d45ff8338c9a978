"""What one page would become, before it is indexed: one bounded visit, nothing is stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.crawler.addresses import Scope, host_of
from app.crawler.feeds import fetch_feed
from app.crawler.fetching import Fetcher
from app.crawler.network import Network
from app.crawler.politeness import Turns, polite
from app.crawler.reading import read_page
from app.crawler.robots import Robots
from app.crawler.sitemaps import walk_sitemaps
from app.crawler.values import MAX_PAGE_BYTES, Fetched, NotIndexed, Page, Reason, Selectors
from app.errors import ApiError, ErrorCode
from app.models import Site
from app.services.sources.page_documents import make_document
from app.services.sources.scope import check_address
from app.services.sources.visitor import USER_AGENT

AT_ONCE = 2
"""Previews at work in one process; they hold threads that answer requests."""
MAX_SECONDS = 6.0
"""How long one address may take, and how long all waiting for a host's turn."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """What a page would become.

    Attributes:
        document: As it would be indexed, except that what the titles of a site share is still there.
        reason: Why there would be none.
    """

    document: Mapping[str, Any] | None = None
    reason: str | None = None


class Previewer:
    """Looks at pages for people who wait."""

    def __init__(self, turns: Turns, *, private_addresses: bool):
        self._turns = turns
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
        if not self._room.acquire(blocking=False):
            raise ApiError(
                ErrorCode.SERVER_BUSY, "Too many pages are being previewed; try again.", retry_after=RETRY_SECONDS
            )
        network = Network(private_addresses=self._private_addresses)
        try:
            look = _Look(network, self._turns, address, headers)
            return Preview(document=look.read(kind, Selectors(**selectors)))
        except NotIndexed as error:
            return Preview(reason=error.reason)
        finally:
            network.close()
            self._room.release()


class _Look:
    """One preview."""

    def __init__(self, network: Network, turns: Turns, address: str, headers: Mapping[str, str]):
        self._address = address
        self._turns = turns
        self._until = time.monotonic() + MAX_SECONDS
        self._fetcher = Fetcher(
            network,
            Scope.of(address),
            USER_AGENT,
            headers=headers,
            headers_url=address,
            max_seconds=MAX_SECONDS,
        )
        self._robots = Robots(self._fetch_rules)
