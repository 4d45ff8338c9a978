"""Feeds (RSS, Atom): the URLs of the pages that their entries describe."""

from __future__ import annotations

import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE

import feedparser
from lxml import etree

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.responses import charset_of
from app.crawl.fetch.values import Fetch, Fetched, NotIndexed, ReadListing, Reason

MAX_ENTRIES = 10_000
MAX_NESTING = 10_000
"""Maximum depth of nested elements. Malformed feeds may contain elements that are never closed."""

_PAGE_TYPES = {"text/html", "application/xhtml+xml"}


def fetch_feed(fetch: Fetch, url: str, read: ReadListing[tuple[str, ...]]) -> tuple[str, ...]:
    """Fetch a feed, and return the distinct URLs of its pages, normalized, in the feed's order.

    Args:
        fetch: Fetches the feed.
        url: The feed's URL.
        read: Reads the feed, as :func:`read_feed` does.

    Raises:
        NotIndexed: The feed cannot be fetched (any reason), or is not a feed (``bad_source``).
    """
    return read(fetch(url, any_type=True))


def read_feed(fetched: Fetched) -> tuple[str, ...]:
    """Return the URLs of the pages of a fetched feed, at most 10,000.

    The parser takes up to 20 seconds for a megabyte of hostile input, so call this in a separate process; see
    :mod:`app.crawl.read.reader`.

    Raises:
        NotIndexed: The file is not a feed, or is nested too deeply (``bad_source``).
    """
    # feedparser keeps a kilobyte for each open element, so check the depth first.
    etree.XMLParser(target=_Nesting(), recover=True, resolve_entities=False, no_network=True).feed(fetched.body)
    # A stream, since feedparser opens bytes that look like a file name or a URL.
    parsed = feedparser.parse(
        io.BytesIO(fetched.body),
        response_headers={
            **fetched.headers,
            "content-type": _content_type(fetched),
            "content-location": fetched.url,
        },
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not parsed.entries and not parsed.get("version"):
        raise NotIndexed(Reason.BAD_SOURCE, "The URL does not return an RSS or Atom feed.")
    urls: dict[str, None] = {}
    for entry in parsed.entries[:MAX_ENTRIES]:
        link = _page_link(entry)
        if not link:
            continue
        try:
            urls[normalize_url(link, fetched.url)] = None
        except ValueError:
            continue  # The entry does not describe a page.
    return tuple(urls)


def _content_type(fetched: Fetched) -> str:
    """Return a ``Content-Type`` that makes feedparser, which follows RFC 3023, decode the feed as RFC 7303 requires.

    In RFC 3023, ``text/xml`` is ASCII, and the header takes precedence over a byte order mark. NUL bytes reveal UTF-16.
    """
    charset = charset_of(fetched.headers.get("content-type", ""))
    is_wide = b"\0" in fetched.body[:4] or fetched.body.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
    return "application/xml" if charset is None or is_wide else f"application/xml; charset={charset}"


def _page_link(entry: feedparser.FeedParserDict) -> str:
    """Return the URL of the entry's page, or an empty string.

    If there are several alternate links, the first is used; feedparser's ``link`` is the last, often a translation.
    """
    for link in entry.get("links", ()):
        if link.get("rel") == "alternate" and link.get("type") in _PAGE_TYPES and link.get("href"):
            return str(link["href"])
    return str(entry.get("link", ""))


class _Nesting:
    """A parser target that counts open elements."""

    def __init__(self) -> None:
        self._open = 0

    def start(self, _tag: str, _attributes: object) -> None:
        self._open += 1
        if self._open > MAX_NESTING:
            raise NotIndexed(Reason.BAD_SOURCE, "The feed nests elements too deep.")

    def end(self, _tag: str) -> None:
        self._open -= 1

    def close(self) -> None:
        pass
