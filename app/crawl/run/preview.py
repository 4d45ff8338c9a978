"""A preview of one page, before it is indexed: one bounded visit, nothing is stored."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.crawl.fetch.addresses import header_origins, host_of, parse_url
from app.crawl.fetch.politeness import Turns
from app.crawl.fetch.values import NotIndexed, Selectors
from app.crawl.sources.checks import check_address, check_field_rules, check_selectors
from app.errors import ApiError, ErrorCode
from app.models import Site, Source
from schemas.validation.sites import complete_url

AT_ONCE = 2
"""Previews at work in one process: they hold threads that answer requests."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview of a page.

    Attributes:
        document: As it would be indexed, but with what the titles of a site share.
        reason: Why there would be none.
    """

    document: Mapping[str, Any] | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CompletedUrl:
    """An address as people typed it, with a scheme where only that was missing.

    Attributes:
        is_silent: Whether it was asked for and answered neither with https nor with http.
    """

    url: str
    is_silent: bool = False


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
        self,
        site: Site,
        url: str,
        *,
        kind: str = "website",
        selectors: Mapping[str, str],
        fields: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str],
        headers_url: str | None = None,
    ) -> Preview:
        """Fetch and read one page.

        Args:
            url: The page's address; of other kinds than ``website`` that of the list, whose first page is read.
            fields: Rules for further fields.
            headers_url: The source whose headers these are, which go to no other host; by default they are the page's.

        Raises:
            ApiError: 400 for an address that is not the site's; 503 while too many pages are looked at.
        """
        address = check_address(site, url, private_addresses=self._private_addresses)
        check_selectors(selectors)
        check_field_rules(fields)
        if headers_url is not None and parse_url(address).origin not in header_origins(headers_url):
            headers = {}
        if not self._room.acquire(blocking=False):
            raise ApiError(
                ErrorCode.SERVER_BUSY, "Too many pages are being previewed; try again.", retry_after=RETRY_SECONDS
            )
        # What fetches and reads pages takes some 20 MB of a process: only one that previews pages loads it.
        from app.crawl.run.first_page import read_first_page

        try:
            source = Source(kind=kind, url=address, fields=[*map(dict, fields)], headers=dict(headers))
            document = read_first_page(
                source,
                Selectors(**selectors),
                self._turns,
                self._user_agent,
                private_addresses=self._private_addresses,
            )
            domain = {"domain": host_of(str(document["url"]))} if site.domains else {}
            return Preview(document=domain | dict(document))
        except NotIndexed as error:
            return Preview(reason=error.reason)
        finally:
            self._room.release()

    def complete_url(self, typed: str, otherwise: str = "https") -> CompletedUrl:
        """An address as people type it, with the scheme where only that is missing: https if it answers, else http.

        While too many pages are looked at, it is not asked for.

        Args:
            otherwise: The scheme if neither answers.
        """
        url = complete_url(typed)
        if url == typed or not self._room.acquire(blocking=False):
            return CompletedUrl(_with_scheme(url, otherwise) if url != typed else typed)
        from app.crawl.run.visits.answering import answers

        try:
            for scheme in ("https", "http"):
                tried = _with_scheme(url, scheme)
                if answers(tried, self._turns, self._user_agent, private_addresses=self._private_addresses):
                    return CompletedUrl(tried)
            return CompletedUrl(_with_scheme(url, otherwise), is_silent=True)
        finally:
            self._room.release()


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"
