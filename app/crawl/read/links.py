"""The links, canonical URL, and robots directives (``noindex``, ``nofollow``) of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from urllib.parse import unquote

from turbohtml import Document, Element

from app import clock
from app.crawl.fetch.addresses import MAX_URL_CHARACTERS, normalize_url, parse_url
from app.crawl.fetch.responses import parse_http_date
from app.crawl.fetch.values import PRODUCT_TOKEN

MAX_LINKS = 10_000
"""Maximum number of distinct links read from one page."""

URL_ATTRIBUTES = {"a": "href", "area": "href", "link": "href", "frame": "src", "iframe": "src"}
FOLLOWED_RELATIONS = {"next", "prev"}
"""Relations of ``<link>`` elements that are followed, besides translations."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
HEADER_LINK = re.compile(r"<([^<>]{1,4096})>([^<]*)")
TRANSLATION = re.compile(r"(?=.*;\s*hreflang\s*=).*;\s*rel\s*=\s*\"?[^\";]*\balternate\b", re.IGNORECASE | re.DOTALL)
CANONICAL_RELATION = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bcanonical\b[^\"]*\"|canonical\b)", re.IGNORECASE)


def page_base(document: Document, url: str) -> str:
    """Return the base URL of a page's relative URLs: ``<base href>``, or the page's URL."""
    base = document.select_one("base[href]")
    return (base is not None and absolute_address(base.attr("href") or "", url)) or url


def page_links(
    document: Document, headers: Mapping[str, str], base: str, *, keep_routes: bool = False
) -> tuple[str, ...]:
    """Return the distinct URLs of links and frames without ``nofollow``, and of an immediate redirect, in page order.

    They include the page's translations, which may be linked only by ``<link rel="alternate" hreflang="de">``.

    Args:
        headers: The response's headers.
        keep_routes: Whether URLs with different routes are different pages.
    """
    links: dict[str, None] = {}
    headings = _heading_routes(document, base) if keep_routes else frozenset()
    for address in chain(_raw_links(document), _header_translations(headers)):
        link = absolute_address(address, base, keep_route=keep_routes)
        if link is not None and (not headings or unquote(link) not in headings):
            links[link] = None
            if len(links) == MAX_LINKS:
                break
    return tuple(links)


def _heading_routes(document: Document, base: str) -> frozenset[str]:
    """Return the unquoted URLs of a page's own headings in docsify's style (``#/guide?id=install``); they are not
    pages.
    """
    page, _, route = base.partition("#")
    page_route = unquote(f"{page}#{route.partition('?')[0] or '/'}")
    return frozenset(
        f"{page_route}?id={name}" for heading in document.iter_elements(HEADINGS) if (name := heading.attr("id"))
    )


def canonical_address(document: Document, headers: Mapping[str, str], base: str, url: str) -> str | None:
    """Return the canonical URL from ``<link rel="canonical">``, otherwise from the header ``Link``."""
    for link in document.iter_elements("link"):
        if "canonical" in _relations(link):
            return absolute_address(link.attr("href") or "", base)
    return header_canonical(headers, url)


def header_canonical(headers: Mapping[str, str], url: str) -> str | None:
    """Return the canonical URL from the header ``Link``."""
    for address, parameters in HEADER_LINK.findall(headers.get("link", "")):
        if CANONICAL_RELATION.search(parameters):
            return absolute_address(address, url)
    return None


def _raw_links(document: Document) -> Iterator[str]:
    if (refresh := document.meta_refresh()) is not None:
        yield refresh[1]
    for element in document.iter_elements(URL_ATTRIBUTES):
        address = element.attr(URL_ATTRIBUTES[element.tag])
        if not address or "nofollow" in (relations := _relations(element)):
            continue
        is_translation = "alternate" in relations and element.attr("hreflang")
        if element.tag != "link" or is_translation or not FOLLOWED_RELATIONS.isdisjoint(relations):
            yield address


def _header_translations(headers: Mapping[str, str]) -> Iterator[str]:
    for address, parameters in HEADER_LINK.findall(headers.get("link", "")):
        if TRANSLATION.match(parameters):
            yield address


def _relations(element: Element) -> set[str]:
    return set((element.attr("rel") or "").lower().split())


def absolute_address(address: str, base: str, *, keep_route: bool = False, is_file: bool = False) -> str | None:
    """Resolve and normalize a URL; ``None`` if it is not an http or https URL, or too long for a document.

    Args:
        is_file: Whether the URL is an image's or another file's. Its parameters are kept, since a signature may look
            like a session ID.
    """
    if len(address) > 2 * MAX_URL_CHARACTERS:
        return None
    text = address.strip()
    try:
        url = parse_url(text, base).href if is_file else normalize_url(text, base, keep_route=keep_route)
    except ValueError:
        return None
    return url if len(url) <= MAX_URL_CHARACTERS else None


ROBOT_NAME = PRODUCT_TOKEN.lower()
DIRECTIVES_WITH_VALUES = {"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"}
"""Directives in which a colon precedes a value. Otherwise the name of a robot precedes the colon."""

WEEKDAY = re.compile(r"(unavailable_after\s*:\s*)[a-z]{3,9}\s*,(?=\s*[0-9])")
"""Matches the weekday of a date, whose comma does not separate directives."""


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives for robots.

    Attributes:
        noindex: Whether the page must not be indexed.
        nofollow: Whether its links must not be followed.
        expires: Whether the page must not be indexed from a later time on (``unavailable_after``).
    """

    noindex: bool = False
    nofollow: bool = False
    expires: bool = False

    def __or__(self, other: Directives) -> Directives:
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow, self.expires or other.expires)


def header_directives(headers: Mapping[str, str]) -> Directives:
    """Return the directives in the ``X-Robots-Tag`` headers.

    ``robot: directive, directive`` addresses the robot of that name; directives before any name address all robots.
    """
    robot = "robots"
    ours: list[str] = []
    for part in _parts(headers.get("x-robots-tag", "").replace("\n", ",")):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in DIRECTIVES_WITH_VALUES:
            robot, part = name.strip(), rest
        if robot in ("robots", "*", ROBOT_NAME):
            ours.append(part)
    return _directives(ours)


def meta_directives(document: Document) -> Directives:
    """Return the directives in ``<meta>`` elements that are named ``robots`` or after this crawler."""
    directives = Directives()
    for meta in document.iter_elements("meta"):
        if (meta.attr("name") or "").strip().lower() in ("robots", ROBOT_NAME):
            directives |= _directives(_parts(meta.attr("content") or ""))
    return directives


def _parts(directives: str) -> list[str]:
    return WEEKDAY.sub(r"\1", directives.lower()).split(",")


def _directives(names: Iterable[str]) -> Directives:
    values = {name.strip() for name in names}
    ends = [end for value in values if (end := _end_of(value)) is not None]
    noindex = bool(values & {"noindex", "none"}) or any(end <= clock.now() for end in ends)
    return Directives(noindex, bool(values & {"nofollow", "none"}), expires=bool(ends) and not noindex)


def _end_of(directive: str) -> datetime | None:
    """Return the time in ``unavailable_after: …``; ``None`` if it is not a date."""
    name, _, text = directive.partition(":")
    if name.strip() != "unavailable_after":
        return None
    text = text.strip().upper()
    try:
        end = datetime.fromisoformat(text)
        if len(text) == len("2030-06-25"):
            end += timedelta(days=1)  # The page is available on that day.
    except (ValueError, OverflowError):
        return parse_http_date(text)
    return end if end.tzinfo is not None else end.replace(tzinfo=UTC)
