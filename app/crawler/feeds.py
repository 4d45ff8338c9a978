"""Feeds (RSS, Atom): the addresses of the pages that their entries are about."""

from __future__ import annotations

import io

import feedparser

from app.crawler.addresses import normalize_url
from app.crawler.values import Fetch, Fetched, NotIndexed, Reason

MAX_ENTRIES = 10_000


def fetch_feed(fetch: Fetch, url: str) -> tuple[str, ...]:
    """Addresses of the pages of a feed, absolute and normalized, each once, in the feed's order.

    Args:
        fetch: Fetches the feed.
        url: Its address.

    Raises:
        NotIndexed: It cannot be had (any reason), or is no feed (``bad_source``).
    """
    return read_feed(fetch(url, any_type=True))


def read_feed(fetched: Fetched) -> tuple[str, ...]:
    """Addresses of the pages of a feed that was fetched, at most 10,000.

    Raises:
        NotIndexed: It is no feed (``bad_source``).
    """
    # A stream, since the parser opens what looks like the name of a file or an address.
    parsed = feedparser.parse(
        io.BytesIO(fetched.body),
        response_headers={**fetched.headers, "content-location": fetched.url},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not parsed.entries and not parsed.get("version"):
        raise NotIndexed(Reason.BAD_SOURCE, "The address gives no RSS or Atom feed.")
    found: dict[str, None] = {}
    for entry in parsed.entries[:MAX_ENTRIES]:
        link = entry.get("link")
        if not link:
            continue
        try:
            found[normalize_url(link, fetched.url)] = None
        except ValueError:
            continue  # An entry that is about no page.
    return tuple(found)
