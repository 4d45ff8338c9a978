"""Addresses on a page: where its links lead, and what it says its own address is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from turbohtml import Document, Element

from app.crawl.fetch.addresses import normalize_url

MAX_LINKS = 10_000
MAX_ADDRESS_CHARACTERS = 2_048
"""Characters of an address, as a document's ``url`` takes them."""

ADDRESS_OF = {"a": "href", "area": "href", "link": "href", "frame": "src", "iframe": "src"}
FOLLOWED_RELATIONS = {"next", "prev"}
"""Relations of ``<link>`` that lead to further pages."""
HEADER_LINK = re.compile(r"<([^<>]{1,4096})>([^<]*)")
CANONICAL_RELATION = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bcanonical\b[^\"]*\"|canonical\b)", re.IGNORECASE)


def page_base(document: Document, url: str) -> str:
    """The address that a page's relative addresses are relative to: its own, or that of ``<base href>``."""
    base = document.select_one("base[href]")
    return (base is not None and absolute_address(base.attr("href") or "", url)) or url


def page_links(document: Document, base: str) -> tuple[str, ...]:
    """Addresses of links and frames that are not ``nofollow``, and of an immediate redirect; each once, in order."""
    links: dict[str, None] = {}
    for address in _addresses(document):
        if (link := absolute_address(address, base)) is not None:
            links[link] = None
            if len(links) == MAX_LINKS:
                break
    return tuple(links)


def canonical_address(document: Document, headers: Mapping[str, str], base: str, url: str) -> str | None:
    """The canonical address by ``<link rel="canonical">``, else by the header ``Link``."""
    for link in document.iter_elements("link"):
        if "canonical" in _relations(link):
            return absolute_address(link.attr("href") or "", base)
    return header_canonical(headers, url)


def header_canonical(headers: Mapping[str, str], url: str) -> str | None:
    """The canonical address by the header ``Link``."""
    for address, parameters in HEADER_LINK.findall(headers.get("link", "")):
        if CANONICAL_RELATION.search(parameters):
            return absolute_address(address, url)
    return None


def _addresses(document: Document) -> Iterator[str]:
    if (refresh := document.meta_refresh()) is not None:
        yield refresh[1]
    for element in document.iter_elements(ADDRESS_OF):
        address = element.attr(ADDRESS_OF[element.tag])
        if not address or "nofollow" in (relations := _relations(element)):
            continue
        if element.tag != "link" or not FOLLOWED_RELATIONS.isdisjoint(relations):
            yield address


def _relations(element: Element) -> set[str]:
    return set((element.attr("rel") or "").lower().split())


def absolute_address(address: str, base: str) -> str | None:
    """The address, ``None`` if it is no web address or too long for a document."""
    if len(address) > 2 * MAX_ADDRESS_CHARACTERS:
        return None
    try:
        url = normalize_url(address.strip(), base)
    except ValueError:
        return None
    return url if len(url) <= MAX_ADDRESS_CHARACTERS else None
