"""The document that a source's first page would become: one limited visit that stores nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from app.crawl.fetch.listings import fetch_feed, walk_sitemaps
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns
from app.crawl.fetch.values import NotIndexed, Reason, Selectors
from app.crawl.fetch.wordpress import UnreadablePost, walk_posts
from app.crawl.read.reader import PageReader
from app.crawl.run.page_documents import field_rules, make_document, page_of_post
from app.crawl.run.visits.rendering import mode_renders
from app.crawl.run.visits.visitor import HostVisitor, wait_at_most
from app.models import Source

MAX_SECONDS = 6.0
"""Maximum seconds of one fetch, and seconds after which the visit stops waiting for turns."""
MAX_CPU_SECONDS = 4
"""Maximum CPU seconds for reading the page or the list, in a separate process."""


@dataclass(frozen=True, slots=True)
class FirstPage:
    """The document that a page would become if it is not rendered.

    Attributes:
        needs_browser: Whether a run renders the page before it reads it.
    """

    document: Mapping[str, Any]
    needs_browser: bool = False


def read_first_page(
    source: Source,
    selectors: Selectors,
    turns: Turns,
    user_agent: str,
    *,
    private_addresses: bool,
    has_browser: bool,
) -> FirstPage:
    """Fetch and read the page of a ``website``, or the first page that another source lists, without rendering it.

    Args:
        user_agent: The ``User-Agent`` header.
        has_browser: Whether runs of the source can render pages.
        private_addresses: Whether hosts may have private IP addresses.

    Raises:
        NotIndexed: The page would not become a document.
    """
    with closing(Network(private_addresses=private_addresses)) as network:
        wait = wait_at_most(MAX_SECONDS)
        visitor = HostVisitor(network, turns, source, user_agent, wait, max_seconds=MAX_SECONDS)
        with closing(PageReader(MAX_CPU_SECONDS, MAX_SECONDS)) as reader:
            return _read(visitor, reader, source, selectors, has_browser=has_browser)


def _read(
    visitor: HostVisitor, reader: PageReader, source: Source, selectors: Selectors, *, has_browser: bool
) -> FirstPage:
    if source.kind == "wordpress":
        for post in walk_posts(visitor.fetch_listing, source.url, reader.read_posts):
            if isinstance(post, UnreadablePost):
                raise NotIndexed(Reason.INTERNAL_ERROR, "The post cannot be read.")
            page = page_of_post(post, field_rules(source))
            return FirstPage(make_document(page, post.url, page.title).fields)
        raise NotIndexed(Reason.EMPTY, "The blog has no published posts.")
    fetched = visitor.fetch_page(_first_url(visitor, reader, source))
    page = reader.read(fetched, selectors, field_rules(source))
    needs_browser = has_browser and not page.noindex and mode_renders(source.render, page)
    if needs_browser and page.skip_reason is not None:
        raise NotIndexed(Reason.NEEDS_BROWSER, "Runs render this page in a browser; the preview does not.")
    if page.skip_reason is not None:
        raise NotIndexed(page.skip_reason, "The page cannot be indexed as a document.")
    if page.canonical not in (None, fetched.url) and _is_page(visitor, reader, page.canonical):
        raise NotIndexed(Reason.CANONICAL, "The page declares another URL as its canonical URL.")
    return FirstPage(make_document(page, fetched.url, page.title).fields, needs_browser=needs_browser)


def _is_page(visitor: HostVisitor, reader: PageReader, canonical: str) -> bool:
    """Whether a canonical URL is a page that would be indexed itself."""
    try:
        fetched = visitor.fetch_page(canonical)
        page = reader.read(fetched)
    except NotIndexed:
        return False
    return page.skip_reason is None and page.canonical in (None, canonical, fetched.url)


def _first_url(visitor: HostVisitor, reader: PageReader, source: Source) -> str:
    match source.kind:
        case "sitemap":
            entries = walk_sitemaps(visitor.fetch_listing, [source.url], _raise_error, reader.read_sitemap)
            urls: Iterable[str] = (entry.url for entry in entries)
        case "feed":
            urls = fetch_feed(visitor.fetch_listing, source.url, reader.read_feed)
        case _:
            return source.url
    for url in urls:
        if visitor.scope.contains(url):
            return url
    raise NotIndexed(Reason.BAD_SOURCE, "The list does not contain any page of the site.")


def _raise_error(url: str, error: NotIndexed) -> None:
    raise error
