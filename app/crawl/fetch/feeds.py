"""Feeds (RSS, Atom): the addresses of the pages that their entries are about."""

from __future__ import annotations

import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE

import feedparser
from lxml import etree

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.media_types import charset_of
from app.crawl.fetch.values import Fetch, Fetched, NotIndexed, ReadListing, Reason

MAX_ENTRIES = 10_000
MAX_NESTING = 10_000
"""Elements within each other. Malformed feeds have some that are never closed."""

_PAGE_TYPES = {"text/html", "application/xhtml+xml"}


def fetch_feed(fetch: Fetch, url: str, read: ReadListing[tuple[str, ...]]) -> tuple[str, ...]:
    """Addresses of the pages of a feed, absolute and normalized, each once, in the feed's order.

    Args:
        fetch: Fetches the feed.
        url: Its address.
        read: Reads it, as :func:`read_feed` does.

    Raises:
        NotIndexed: It cannot be had (any reason), or is no feed (``bad_source``).
    """
    return read(fetch(url, any_type=True))


def read_feed(fetched: Fetched) -> tuple[str, ...]:
    """Addresses of the pages of a feed that was fetched, at most 10,000.

    The parser takes up to 20 seconds for a hostile megabyte: call it in a process of its own, see
    :mod:`app.crawl.read.reader`.

    Raises:
        NotIndexed: It is no feed, or nests too deep (``bad_source``).
    """
    # The parser keeps a kilobyte for each open element.
    etree.XMLParser(target=_Nesting(), recover=True, resolve_entities=False, no_network=True).feed(fetched.body)
    # A stream, since the parser opens what looks like the name of a file or an address.
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
        raise NotIndexed(Reason.BAD_SOURCE, "The address gives no RSS or Atom feed.")
    found: dict[str, None] = {}
    for entry in parsed.entries[:MAX_ENTRIES]:
        link = _page_link(entry)
        if not link:
            continue
        try:
            found[normalize_url(link, fetched.url)] = None
        except ValueError:
            continue  # An entry that is about no page.
    return tuple(found)


def _content_type(fetched: Fetched) -> str:
    """The header as the parser, which keeps to RFC 3023, must have it for RFC 7303 to hold.

    By the former ``text/xml`` is ASCII, and a header goes before a byte order mark. UTF-16 is seen by its NUL bytes.
    """
    charset = charset_of(fetched.headers.get("content-type", ""))
    is_wide = b"\0" in fetched.body[:4] or fetched.body.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
    return "application/xml" if charset is None or is_wide else f"application/xml; charset={charset}"


def _page_link(entry: feedparser.FeedParserDict) -> str:
    """The entry's page, or nothing: of several alternates the first. The parser takes the last, often a translation."""
    for link in entry.get("links", ()):
        if link.get("rel") == "alternate" and link.get("type") in _PAGE_TYPES and link.get("href"):
            return str(link["href"])
    return str(entry.get("link", ""))


class _Nesting:
    """A parser's target: counts the elements that are open."""

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
