"""The document that a source's first page would become: one bounded visit, nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from app.crawler.feeds import fetch_feed
from app.crawler.network import Network
from app.crawler.politeness import Turns
from app.crawler.reading.reader import PageReader
from app.crawler.sitemaps import walk_sitemaps
from app.crawler.values import NotIndexed, Reason, Selectors
from app.crawler.wordpress import walk_posts
from app.models import Source
from app.services.crawling.page_documents import make_document
from app.services.crawling.posts import page_of_post
from app.services.crawling.visitor import Visitor

MAX_SECONDS = 6.0
"""How long one address may take, and when nothing is waited for any more."""
MAX_CPU_SECONDS = 4
"""Processor time for reading the page, in a process of its own."""


def read_first_page(
    source: Source, selectors: Selectors, turns: Turns, user_agent: str, *, private_addresses: bool
) -> Mapping[str, Any]:
    """Fetch and read the page of a ``website``, or the first page that another source lists.

    Args:
        turns: Whose turn it is at a host.
        user_agent: Says who we are.
        private_addresses: Whether hosts may have addresses that are not public.

    Raises:
        NotIndexed: There would be no document.
    """
    with closing(Network(private_addresses=private_addresses)) as network:
        wait = _waiting_until(MAX_SECONDS)
        visitor = Visitor(network, turns, source, user_agent, wait, max_seconds=MAX_SECONDS)
        return _read(visitor, source, selectors)


def _waiting_until(seconds: float) -> Any:
    """Waits, but never beyond this many seconds from now."""
    until = time.monotonic() + seconds

    def wait(pause: float) -> None:
        if time.monotonic() + pause > until:
            raise NotIndexed(Reason.TIMEOUT, "The host asks to wait for longer than a preview does.")
        time.sleep(pause)

    return wait


def _read(visitor: Visitor, source: Source, selectors: Selectors) -> Mapping[str, Any]:
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
