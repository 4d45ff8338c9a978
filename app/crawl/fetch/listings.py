"""Lists of a site's pages: feeds (RSS, Atom, JSON), sitemaps (XML or text, often compressed), and sitemap indexes."""

from __future__ import annotations

import io
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice

import feedparser
from lxml import etree

from app.crawl.fetch.addresses import MAX_URL_CHARACTERS, normalize_url
from app.crawl.fetch.characters import MAX_REFERENCE, read_json, replace_impossible_references
from app.crawl.fetch.responses import HEAD_BYTES, UnpackingError, charset_of, unpack
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import Fetch, Fetched, NotIndexed, ReadListing, Reason

MAX_FEED_ENTRIES = 10_000
MAX_NESTING = 10_000
"""Maximum depth of nested elements. Malformed feeds may contain elements that are never closed."""

_JSON_FEED = re.compile(r"https?://(?:www\.)?jsonfeed\.org/version/1")
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
    links = _json_links(fetched.body) if _is_json(fetched.body) else _xml_links(fetched)
    urls: dict[str, None] = {}
    for link in islice(links, MAX_FEED_ENTRIES):
        if not link:
            continue
        try:
            urls[normalize_url(link, fetched.url)] = None
        except ValueError:
            continue  # The entry does not describe a page.
    return tuple(urls)


def _is_json(body: bytes) -> bool:
    return body[:HEAD_BYTES].removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def _json_links(body: bytes) -> Iterator[str]:
    """Yield the URL of each item's page, ``""`` if it has none, as in https://www.jsonfeed.org/version/1.1/."""
    try:
        feed = read_json(body.removeprefix(BOM_UTF8))
    except ValueError as error:
        raise _not_a_feed() from error
    version, items = feed.get("version"), feed.get("items")
    if not (isinstance(version, str) and _JSON_FEED.match(version) and isinstance(items, list)):
        raise _not_a_feed()
    for item in items:
        if isinstance(item, dict):
            url, id_ = (value if isinstance(value, str) else "" for value in (item.get("url"), item.get("id")))
            # Publishers are encouraged to use the URL of the item's page as its ID.
            yield url or (id_ if id_.startswith(("http://", "https://")) else "")


def _xml_links(fetched: Fetched) -> Iterator[str]:
    # feedparser keeps a kilobyte for each open element, so check the depth first.
    body = replace_impossible_references(fetched.body)
    etree.XMLParser(target=_Nesting(), recover=True, resolve_entities=False, no_network=True).feed(body)
    # A stream, since feedparser opens bytes that look like a file name or a URL.
    parsed = feedparser.parse(
        io.BytesIO(body),
        response_headers={
            **fetched.headers,
            "content-type": _content_type(fetched),
            "content-location": fetched.url,
        },
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not parsed.entries and not parsed.get("version"):
        raise _not_a_feed()
    return map(_page_link, parsed.entries)


def _not_a_feed() -> NotIndexed:
    return NotIndexed(Reason.BAD_SOURCE, "The URL does not return an RSS, Atom, or JSON feed.")


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
            raise NotIndexed(Reason.BAD_SOURCE, "The feed has elements that are nested too deeply.")

    def end(self, _tag: str) -> None:
        self._open -= 1

    def close(self) -> None:
        pass


MAX_SITEMAP_BYTES = 50 * 1_048_576
MAX_URLS = 50_000
"""Maximum number of URLs in one file. Files that exceed the sitemap protocol's limits are read up to the limit."""
MAX_FILES = 1_000
"""Maximum number of sitemap files in one run."""
MAX_DEPTH = 3
"""Maximum depth of nested sitemap indexes."""

_PIECE = 65_536
_FEEDS = {"rss", "feed", "RDF"}
_LONE_AMPERSAND = re.compile(rb"&(?!(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)")
_WIDE_STARTS = (b"\xff\xfe", b"\xfe\xff", b"\0")
"""Prefixes of XML in UTF-16 and UTF-32, with or without a byte order mark."""


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The content of one sitemap file.

    Attributes:
        pages: Distinct URLs of pages, normalized.
        sitemaps: URLs of the sitemaps that the file lists.
        modified: Time of each page's last change in Unix seconds, for pages with a time in the sitemap.
    """

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...] = ()
    modified: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page in a sitemap.

    Attributes:
        modified: Unix seconds of its last change, if the sitemap contains it.
    """

    url: str
    modified: int | None = None


def walk_sitemaps(
    fetch: Fetch, urls: Iterable[str], failed: Callable[[str, NotIndexed], object], read: ReadListing[Sitemap]
) -> Iterator[Listed]:
    """Iterate over the pages in sitemaps and in the sitemaps that they list. A URL may occur more than once.

    One file (at most 50 MiB), its URLs, and the URLs of a thousand further files are in memory at a time.

    Args:
        fetch: Fetches one file, and waits if the host asks it to.
        urls: URLs of the first sitemaps.
        failed: Called with the URL of each file that cannot be read, and the error; it may raise.
        read: Reads one file, as :func:`read_sitemap` does.
    """
    waiting = deque((url, 0) for url in urls)
    seen_urls = {url for url, _ in waiting}
    while waiting:
        url, depth = waiting.popleft()
        try:
            with guarded("list", url):
                sitemap = read(fetch(url, any_type=True, max_bytes=MAX_SITEMAP_BYTES))
        except NotIndexed as error:
            failed(url, error)
            continue
        yield from (Listed(page, sitemap.modified.get(page)) for page in sitemap.pages)
        if depth == MAX_DEPTH:
            continue
        for further in sitemap.sitemaps:
            if further not in seen_urls and len(seen_urls) < MAX_FILES:
                seen_urls.add(further)
                waiting.append((further, depth + 1))


def read_sitemap(fetched: Fetched) -> Sitemap:
    """Read the URLs in a fetched sitemap.

    Raises:
        NotIndexed: The file is not a sitemap, or is nested too deeply (``bad_source``).
    """
    pieces: Iterable[bytes] = (fetched.body[offset : offset + _PIECE] for offset in range(0, len(fetched.body), _PIECE))
    if fetched.body.startswith(b"\x1f\x8b"):
        pieces = _cut(unpack(pieces, "gzip"))
    try:
        head, pieces = _head(pieces)
        if _is_json(head):
            sitemap = Sitemap(read_feed(replace(fetched, body=b"".join(pieces))))
        elif head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or head.startswith(_WIDE_STARTS):
            sitemap = _read_xml(pieces, fetched)
        else:
            sitemap = Sitemap(_urls(_lines(pieces), fetched.url))
            if not sitemap.pages:
                raise NotIndexed(Reason.BAD_SOURCE, "The URL does not return a sitemap.")
    except UnpackingError as error:
        raise NotIndexed(Reason.BAD_SOURCE, f"The sitemap cannot be unpacked: {error}.") from error
    return sitemap


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    length = 0
    for piece in pieces:
        yield piece
        length += len(piece)
        if length >= MAX_SITEMAP_BYTES:
            return


def _head(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first nonblank piece, and all pieces from it on, since nothing may precede an XML declaration."""
    remaining = iter(pieces)
    for piece in remaining:
        if piece.strip():
            first = piece.lstrip(b" \t\r\n")
            return first, _chain(first, remaining)
    return b"", iter(())


def _chain(first: bytes, following: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from following


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    line = b""
    for piece in pieces:
        *complete, line = (line + piece).split(b"\n")
        for complete_line in complete:
            yield complete_line.decode("utf-8-sig", "replace").strip()
        line = line[: MAX_URL_CHARACTERS + 1]
    yield line.decode("utf-8-sig", "replace").strip()


def _urls(texts: Iterable[str], base: str | None) -> tuple[str, ...]:
    """Return the distinct URLs among texts, normalized."""
    return tuple(_dated(((text, "") for text in texts), base))


def _dated(entries: Iterable[tuple[str, str]], base: str | None) -> dict[str, int | None]:
    """Return the distinct URLs among texts, normalized, with the times of their last changes."""
    urls: dict[str, int | None] = {}
    for text, modified in entries:
        if not text.startswith(("http://", "https://")) or len(text) > MAX_URL_CHARACTERS:
            continue
        try:
            urls.setdefault(normalize_url(text, base), _read_time(modified))
        except ValueError:
            continue
        if len(urls) == MAX_URLS:
            break
    return urls


def _read_time(text: str) -> int | None:
    """``"1970" -> 0``, ``"1970-01-02" -> 86400``; ``None`` for other texts than W3C dates."""
    whole = f"{text}-01-01"[:10] if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text) else text
    try:
        moment = datetime.fromisoformat(whole)
    except ValueError:
        return None
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp())


def _read_xml(pieces: Iterable[bytes], fetched: Fetched) -> Sitemap:
    locations = _Locations()
    # The parser calls the target without building a tree, loads nothing, and does not expand the file's own entities.
    parser = etree.XMLParser(target=locations, recover=True, resolve_entities=False, no_network=True, load_dtd=False)
    for piece in _escape_lone_ampersands(pieces):
        parser.feed(piece)
        if locations.root in _FEEDS:
            return Sitemap(read_feed(fetched))
        if locations.complete:
            break
    if locations.root not in {"urlset", "sitemapindex"}:
        raise NotIndexed(Reason.BAD_SOURCE, "The URL does not return a sitemap.")
    pages = _dated(zip(locations.pages, locations.modified, strict=True), None)
    modified = {page: moment for page, moment in pages.items() if moment is not None}
    return Sitemap(tuple(pages), _urls(locations.sitemaps, None), modified)


class _Locations:
    """A parser target that collects ``<loc>`` from ``<sitemap>``, and ``<loc>`` and ``<lastmod>`` from ``<url>``."""

    def __init__(self) -> None:
        self.root = ""
        self.pages: list[str] = []
        self.modified: list[str] = []
        self._lastmod = ""
        self._url_start = 0
        self.sitemaps: list[str] = []
        self._path: list[str] = []
        self._text = ""

    @property
    def complete(self) -> bool:
        return len(self.pages) >= MAX_URLS or len(self.sitemaps) >= MAX_URLS

    def start(self, tag: str, attributes: object) -> None:
        name = tag.rpartition("}")[2]
        self.root = self.root or name
        self._path.append(name)
        if len(self._path) > MAX_NESTING:
            raise NotIndexed(Reason.BAD_SOURCE, "The sitemap has elements that are nested too deeply.")
        self._text = ""
        if name == "url":
            self._lastmod, self._url_start = "", len(self.pages)

    def data(self, text: str) -> None:
        if len(self._text) <= MAX_URL_CHARACTERS and self._path[-1:] in (["loc"], ["lastmod"]):
            self._text += text

    def end(self, tag: str) -> None:
        if self._path[-2:] == ["url", "loc"] and not self.complete:
            self.pages.append(self._text.strip())
            self.modified.append(self._lastmod)
        elif self._path[-2:] == ["url", "lastmod"]:
            self._lastmod = self._text.strip()
            self.modified[self._url_start :] = [self._lastmod] * (len(self.modified) - self._url_start)
        elif self._path[-2:] == ["sitemap", "loc"] and not self.complete:
            self.sitemaps.append(self._text.strip())
        self._path.pop()

    def close(self) -> None:
        pass


def _escape_lone_ampersands(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Escape each lone ``&`` in URLs, which many sitemaps contain. References to the file's own entities become text.

    Files with a CDATA section, where ``&`` needs no escape, remain unchanged, as do files in UTF-16; for these, the
    parser's own limits of entity expansion apply.
    """
    # The end of a piece, if it may be the beginning of a reference.
    pending = b""
    is_unchanged = False
    for piece in pieces:
        is_unchanged = is_unchanged or b"<![CDATA[" in pending + piece or b"\0" in piece
        if is_unchanged:
            yield pending + piece
            pending = b""
            continue
        text = pending + piece
        end = text.rfind(b"&", max(0, len(text) - MAX_REFERENCE))
        text, pending = (text, b"") if end < 0 else (text[:end], text[end:])
        yield _LONE_AMPERSAND.sub(b"&amp;", replace_impossible_references(text))
    yield _LONE_AMPERSAND.sub(b"&amp;", replace_impossible_references(pending))
