"""What one page would become, before it is indexed: one bounded visit, nothing is stored."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.crawler.politeness import Turns
from app.crawler.values import NotIndexed, Selectors
from app.errors import ApiError, ErrorCode
from app.models import Site, Source
from app.services.sources.checks import check_address, check_selectors

AT_ONCE = 2
"""Previews at work in one process: they hold threads that answer requests."""
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
        # What fetches and reads pages takes some 20 MB of a process: only one that previews pages loads it.
        from app.services.crawling.first_page import read_first_page

        try:
            source = Source(kind=kind, url=address, headers=dict(headers))
            document = read_first_page(
                source,
                Selectors(**selectors),
                self._turns,
                self._user_agent,
                private_addresses=self._private_addresses,
            )
            return Preview(document=document)
        except NotIndexed as error:
            return Preview(reason=error.reason)
        finally:
            self._room.release()
