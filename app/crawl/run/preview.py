"""A preview of one page before it is indexed: one limited visit that stores nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.crawl.fetch.addresses import header_origins, host_of, parse_url
from app.crawl.fetch.politeness import Turns
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import NotIndexed, Reason, Selectors
from app.crawl.sources.checks import check_field_rules, check_selectors, check_url
from app.errors import ApiError, ErrorCode
from app.models import Site, Source
from backends.servers.waiting import waiting
from schemas.validation.sites import complete_url

MAX_PREVIEWS = 2
"""Maximum number of concurrent previews in one process, since each occupies a thread of the web server."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview of a page.

    Attributes:
        document: The document that would be indexed, except that its title keeps the prefix and suffix that the site's
            titles share.
        reason: The reason why the page would not be indexed; or ``needs_browser``, perhaps with a document that shows
            the page as sent, if a run renders the page in a browser before it reads it.
    """

    document: Mapping[str, Any] | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CompletedUrl:
    """A URL that a user typed, completed with a scheme.

    Attributes:
        is_silent: Whether the URL was requested with https and http and got no response.
    """

    url: str
    is_silent: bool = False


class Previewer:
    """Fetches pages while a user waits.

    Args:
        user_agent: The ``User-Agent`` header.
        private_addresses: Whether hosts may have private IP addresses.
        has_browser: Whether runs can render pages.
    """

    def __init__(self, turns: Turns, user_agent: str, *, private_addresses: bool, has_browser: bool):
        self._has_browser = has_browser
        self._turns = turns
        self._user_agent = user_agent
        self._private_addresses = private_addresses
        self._slots = threading.BoundedSemaphore(MAX_PREVIEWS)

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
        render: str = "auto",
    ) -> Preview:
        """Fetch and read one page.

        Args:
            url: URL of the page; for kinds other than ``website``, URL of the list whose first page is previewed.
            fields: Rules for custom fields.
            render: The source's ``render``.
            headers_url: URL whose host the headers may be sent to, which is the source's URL; by default, the page's.

        Raises:
            ApiError: 400 for a URL that does not belong to the site; 503 while too many previews are running.
        """
        checked_url = check_url(site, url, private_addresses=self._private_addresses)
        check_selectors(selectors)
        check_field_rules(fields)
        if headers_url is not None and parse_url(checked_url).origin not in header_origins(headers_url):
            headers = {}
        if not self._slots.acquire(blocking=False):
            raise ApiError(
                ErrorCode.SERVER_BUSY, "Too many pages are being previewed; try again.", retry_after=RETRY_SECONDS
            )
        # The modules that fetch and read pages take some 20 MB, so only a process that previews pages loads them.
        from app.crawl.run.visits.first_page import read_first_page

        try:
            source = Source(
                kind=kind, url=checked_url, fields=[*map(dict, fields)], headers=dict(headers), render=render
            )
            with waiting(), guarded("page", checked_url):
                first = read_first_page(
                    source,
                    Selectors(**selectors),
                    self._turns,
                    self._user_agent,
                    private_addresses=self._private_addresses,
                    has_browser=self._has_browser,
                )
            document, reason = first.document, Reason.NEEDS_BROWSER if first.needs_browser else None
            domain = {"domain": host_of(str(document["url"]))} if site.domains else {}
            return Preview(document=domain | dict(document), reason=reason)
        except NotIndexed as error:
            return Preview(reason=error.reason)
        finally:
            self._slots.release()

    def complete_url(self, typed: str, default_scheme: str = "https") -> CompletedUrl:
        """Add a missing scheme to a URL that a user typed: https if the host responds to it, otherwise http.

        While too many previews are running, the URL is not requested.

        Args:
            default_scheme: The scheme if the host responds to neither or is not requested.
        """
        url = complete_url(typed)
        if url == typed or not self._slots.acquire(blocking=False):
            return CompletedUrl(_with_scheme(url, default_scheme) if url != typed else typed)
        from app.crawl.run.visits.visitor import responds

        try:
            for scheme in ("https", "http"):
                candidate = _with_scheme(url, scheme)
                with waiting():
                    is_there = responds(
                        candidate, self._turns, self._user_agent, private_addresses=self._private_addresses
                    )
                if is_there:
                    return CompletedUrl(candidate)
            return CompletedUrl(_with_scheme(url, default_scheme), is_silent=True)
        finally:
            self._slots.release()


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"
