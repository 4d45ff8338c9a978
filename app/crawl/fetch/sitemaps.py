"""Sitemaps: lists of a site's addresses, as XML, as text, as feeds, packed or not, and lists of such lists."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lxml import etree

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.feeds import MAX_NESTING, read_feed
from app.crawl.fetch.unpacking import UnpackingError, unpack
from app.crawl.fetch.values import Fetch, Fetched, NotIndexed, ReadListing, Reason

MAX_SITEMAP_BYTES = 50 * 1_048_576
MAX_ADDRESSES = 50_000
"""In one file. This and the size are the protocol's own limits; what is beyond them is not read."""
MAX_FILES = 1_000
"""In one run."""
MAX_DEPTH = 3
"""How many lists of lists lead to a sitemap."""

_MAX_ADDRESS_CHARACTERS = 2_048
_PIECE = 65_536
_FEEDS = {"rss", "feed", "RDF"}
_LONE_AMPERSAND = re.compile(rb"&(?!(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)")
_LONGEST_REFERENCE = 10
_WIDE_STARTS = (b"\xff\xfe", b"\xfe\xff", b"\0")
"""How XML in UTF-16 and UTF-32 begins, with a byte order mark or without."""


@dataclass(frozen=True, slots=True)
class Sitemap:
    """One file.

    Attributes:
        pages: Addresses of pages, absolute and normalized, each once.
        sitemaps: Addresses of further sitemaps.
        modified: Pages whose last change is told, and when that was, in Unix seconds.
    """

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...] = ()
    modified: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page that a sitemap lists.

    Attributes:
        modified: Unix seconds of its last change, if that is told.
    """

    url: str
    modified: int | None = None


def walk_sitemaps(
    fetch: Fetch, urls: Iterable[str], failed: Callable[[str, NotIndexed], object], read: ReadListing[Sitemap]
) -> Iterator[Listed]:
    """The pages that sitemaps list, and those that they list in turn. An address may come again.

    Holds one file (at most 50 MiB), its addresses, and the addresses of a thousand further files.

    Args:
        fetch: Fetches one file. It waits where a host asks to.
        urls: Where to begin.
        failed: Called with the address of each file that could not be read, and why; it may raise.
        read: Reads one file, as :func:`read_sitemap` does.
    """
    waiting = deque((url, 0) for url in urls)
    known = {url for url, _ in waiting}
    while waiting:
        url, depth = waiting.popleft()
        try:
            sitemap = read(fetch(url, any_type=True, max_bytes=MAX_SITEMAP_BYTES))
        except NotIndexed as error:
            failed(url, error)
            continue
        yield from (Listed(page, sitemap.modified.get(page)) for page in sitemap.pages)
        if depth == MAX_DEPTH:
            continue
        for further in sitemap.sitemaps:
            if further not in known and len(known) < MAX_FILES:
                known.add(further)
                waiting.append((further, depth + 1))


def read_sitemap(fetched: Fetched) -> Sitemap:
    """The addresses in a sitemap that was fetched.

    Raises:
        NotIndexed: It is no sitemap, or nests too deep (``bad_source``).
    """
    pieces: Iterable[bytes] = (fetched.body[at : at + _PIECE] for at in range(0, len(fetched.body), _PIECE))
    if fetched.body.startswith(b"\x1f\x8b"):
        pieces = _cut(unpack(pieces, "gzip"))
    try:
        head, pieces = _head(pieces)
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or head.startswith(_WIDE_STARTS):
            sitemap = _read_xml(pieces, fetched)
        else:
            sitemap = Sitemap(_addresses(_lines(pieces), fetched.url))
            if not sitemap.pages:
                raise NotIndexed(Reason.BAD_SOURCE, "The address gives no sitemap.")
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
    """The first piece that is not blank, and all pieces from it on: an XML declaration comes first, or not at all."""
    rest = iter(pieces)
    for piece in rest:
        if piece.strip():
            first = piece.lstrip(b" \t\r\n")
            return first, _chain(first, rest)
    return b"", iter(())


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    line = b""
    for piece in pieces:
        *whole, line = (line + piece).split(b"\n")
        for each in whole:
            yield each.decode("utf-8-sig", "replace").strip()
        line = line[: _MAX_ADDRESS_CHARACTERS + 1]
    yield line.decode("utf-8-sig", "replace").strip()


def _addresses(found: Iterable[str], base: str | None) -> tuple[str, ...]:
    """Addresses, absolute and normalized, each once; lines that are none list no page."""
    return tuple(_dated(((text, "") for text in found), base))


def _dated(found: Iterable[tuple[str, str]], base: str | None) -> dict[str, int | None]:
    """Such addresses with the times that are told with them."""
    addresses: dict[str, int | None] = {}
    for text, modified in found:
        if not text.startswith(("http://", "https://")) or len(text) > _MAX_ADDRESS_CHARACTERS:
            continue
        try:
            addresses.setdefault(normalize_url(text, base), _read_time(modified))
        except ValueError:
            continue
        if len(addresses) == MAX_ADDRESSES:
            break
    return addresses


def _read_time(text: str) -> int | None:
    """The Unix seconds of a W3C date, which may be no more than a year; ``None`` for anything else."""
    whole = f"{text}-01-01"[:10] if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text) else text
    try:
        moment = datetime.fromisoformat(whole)
    except ValueError:
        return None
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp())


def _read_xml(pieces: Iterable[bytes], fetched: Fetched) -> Sitemap:
    found = _Locations()
    # Calls the target without building a tree; nothing is looked up and no entity of its own is expanded.
    parser = etree.XMLParser(target=found, recover=True, resolve_entities=False, no_network=True, load_dtd=False)
    for piece in _escape_lone_ampersands(pieces):
        parser.feed(piece)
        if found.root in _FEEDS:
            return Sitemap(read_feed(fetched))
        if found.complete:
            break
    if found.root not in {"urlset", "sitemapindex"}:
        raise NotIndexed(Reason.BAD_SOURCE, "The address gives no sitemap.")
    pages = _dated(zip(found.pages, found.modified, strict=True), None)
    modified = {page: moment for page, moment in pages.items() if moment is not None}
    return Sitemap(tuple(pages), _addresses(found.sitemaps, None), modified)


class _Locations:
    """A parser's target: gathers ``<loc>`` of ``<url>``, with its ``<lastmod>``, and of ``<sitemap>``."""

    def __init__(self) -> None:
        self.root = ""
        self.pages: list[str] = []
        self.modified: list[str] = []
        self._lastmod = ""
        self._of_url = 0
        self.sitemaps: list[str] = []
        self._path: list[str] = []
        self._text = ""

    @property
    def complete(self) -> bool:
        return len(self.pages) >= MAX_ADDRESSES or len(self.sitemaps) >= MAX_ADDRESSES

    def start(self, tag: str, attributes: object) -> None:
        name = tag.rpartition("}")[2]
        self.root = self.root or name
        self._path.append(name)
        if len(self._path) > MAX_NESTING:
            raise NotIndexed(Reason.BAD_SOURCE, "The sitemap nests elements too deep.")
        self._text = ""
        if name == "url":
            self._lastmod, self._of_url = "", len(self.pages)

    def data(self, text: str) -> None:
        if len(self._text) <= _MAX_ADDRESS_CHARACTERS and self._path[-1:] in (["loc"], ["lastmod"]):
            self._text += text

    def end(self, tag: str) -> None:
        if self._path[-2:] == ["url", "loc"] and not self.complete:
            self.pages.append(self._text.strip())
            self.modified.append(self._lastmod)
        elif self._path[-2:] == ["url", "lastmod"]:
            self._lastmod = self._text.strip()
            self.modified[self._of_url :] = [self._lastmod] * (len(self.modified) - self._of_url)
        elif self._path[-2:] == ["sitemap", "loc"] and not self.complete:
            self.sitemaps.append(self._text.strip())
        self._path.pop()

    def close(self) -> None:
        pass


def _escape_lone_ampersands(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Mend what many sitemaps have: addresses whose ``&`` is not escaped. Entities of its own become text by it.

    Text in a CDATA section needs no escape, so that files with one are left as they are; so are those in UTF-16, for
    which the parser's own bounds of an expansion hold.
    """
    kept = b""
    as_they_are = False
    for piece in pieces:
        as_they_are = as_they_are or b"<![CDATA[" in kept + piece or b"\0" in piece
        if as_they_are:
            yield kept + piece
            kept = b""
            continue
        text = kept + piece
        end = text.rfind(b"&", max(0, len(text) - _LONGEST_REFERENCE))
        text, kept = (text, b"") if end < 0 else (text[:end], text[end:])
        yield _LONE_AMPERSAND.sub(b"&amp;", text)
    yield _LONE_AMPERSAND.sub(b"&amp;", kept)
