"""Fields that a page brings without being asked: its place in the site, its picture, and what it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from turbohtml import Document, Element

from app.crawl.read.bounds import cut_line
from app.crawl.read.links import absolute_address
from app.crawl.read.metadata import Metadata

MAX_CRUMBS = 20
NAVIGATION = "nav[aria-label*=breadcrumb i], [role=navigation][aria-label*=breadcrumb i]"
SEPARATORS = " /\\|>›»→·•<‹«←"
START_PATH = re.compile(r"/?(?:[a-z]{2}(?:[-_][a-z]{2,4})?/?)?(?:index\.[a-z]+)?", re.IGNORECASE)
"""The path of a site's start page, or of that in one language."""
START_NAMES = frozenset(
    [
        *("accueil", "ana sayfa", "domov", "etusivu", "forside", "główna", "hem", "home", "home page", "homepage"),
        *("hjem", "index", "inicio", "início", "pagina iniziale", "página inicial", "principal", "start"),
        *("start page", "startseite", "strona główna", "úvod", "αρχική", "главная", "ホーム", "トップ", "首页", "首頁"),
        "홈",
    ]
)
NOT_THE_PAGE = frozenset(
    ("BreadcrumbList", "ImageObject", "ListItem", "Person", "SearchAction", "SiteNavigationElement", "WebSite")
)
"""Types of what is described beside a page."""
ANY_PAGE = "WebPage"
"""The type that says least."""
SCHEMA = re.compile(r"(?:https?://schema\.org/|schema:)")


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step on the way from a site's start page to a page.

    Attributes:
        address: Absolute, if it is a link.
    """

    name: str
    address: str | None


def found_fields(document: Document, metadata: Metadata, base: str, start: str | None) -> dict[str, Any]:
    """The further fields ``section``, ``breadcrumbs``, ``image``, and ``type``, as far as the page has them.

    Args:
        base: What the page's addresses are relative to.
        start: The address of the source, which is a start page, too.
    """
    crumbs = _listed_crumbs(metadata.json_ld, base) or _shown_crumbs(document, base)
    found: dict[str, Any] = {
        "section": _section(crumbs, start),
        "breadcrumbs": [crumb.name for crumb in crumbs],
        "image": _image(metadata, base),
        "type": _type(metadata.json_ld),
    }
    return {name: value for name, value in found.items() if value}


def _section(crumbs: list[Crumb], start: str | None) -> str | None:
    """The name of the first crumb after the start page."""
    after = crumbs[1:] if crumbs and _is_start(crumbs[0], start) else crumbs
    return after[0].name if after else None


def _is_start(crumb: Crumb, start: str | None) -> bool:
    if crumb.name.casefold() in START_NAMES:
        return True
    return crumb.address is not None and (
        crumb.address == start or START_PATH.fullmatch(urlsplit(crumb.address).path) is not None
    )


def _listed_crumbs(objects: Iterable[Mapping[str, Any]], base: str) -> list[Crumb]:
    """The crumbs of the first ``BreadcrumbList`` that has any."""
    for item in objects:
        for place in (item, item.get("breadcrumb")):
            if isinstance(place, dict) and "BreadcrumbList" in _types(place):
                elements = place.get("itemListElement")
                listed = [each for each in elements if isinstance(each, dict)] if isinstance(elements, list) else []
                crumbs = [
                    crumb
                    for each in sorted(listed, key=_position)[:MAX_CRUMBS]
                    if (crumb := _crumb(each, base)) is not None
                ]
                if crumbs:
                    return crumbs
    return []


def _position(element: Mapping[str, Any]) -> int:
    position = element.get("position")
    if isinstance(position, str) and len(position) <= len("100") and position.isdecimal():
        return int(position)
    return position if isinstance(position, int) else 0


def _crumb(element: Mapping[str, Any], base: str) -> Crumb | None:
    item = element.get("item")
    inner: Mapping[str, Any] = item if isinstance(item, dict) else {}
    name = next((text for text in (element.get("name"), inner.get("name")) if isinstance(text, str)), "")
    address = next((text for text in (item, inner.get("@id"), inner.get("url")) if isinstance(text, str)), None)
    line = cut_line(name)
    return Crumb(line, absolute_address(address, base) if address is not None else None) if line else None


def _shown_crumbs(document: Document, base: str) -> list[Crumb]:
    """The crumbs of the first navigation that calls itself so."""
    for navigation in document.select(NAVIGATION)[:MAX_CRUMBS]:
        elements = navigation.select("li") or navigation.select("a, [aria-current]")
        crumbs = [crumb for element in elements[:MAX_CRUMBS] if (crumb := _shown_crumb(element, base)) is not None]
        if crumbs:
            return crumbs
    return []


def _shown_crumb(element: Element, base: str) -> Crumb | None:
    link = element if element.tag == "a" else element.select_one("a")
    label = (link.attr("aria-label") or link.attr("title") or "") if link is not None else ""
    name = cut_line(element.text).strip(SEPARATORS) or cut_line(label)
    address = link.attr("href") if link is not None else None
    return Crumb(name, absolute_address(address, base) if address is not None else None) if name else None


def _image(metadata: Metadata, base: str) -> str | None:
    """The address of the page's picture."""
    described = (item.get("image") for item in metadata.json_ld if _is_of_the_page(item))
    candidates = [
        *metadata.named("og:image", "og:image:url"),
        *(text for value in described for text in _addresses(value)),
    ]
    return next((address for text in candidates if (address := absolute_address(text, base)) is not None), None)


def _addresses(image: object) -> Iterator[str]:
    for item in image[:MAX_CRUMBS] if isinstance(image, list) else [image]:
        text = (item.get("url") or item.get("contentUrl")) if isinstance(item, dict) else item
        if isinstance(text, str):
            yield text


def _type(objects: Iterable[Mapping[str, Any]]) -> str | None:
    """The type of the page, by the first object that describes it; ``WebPage`` only if nothing says more."""
    types = [name for item in objects if _is_of_the_page(item) for name in _types(item)[:1]]
    return next((name for name in types if name != ANY_PAGE), types[0] if types else None)


def _is_of_the_page(item: Mapping[str, Any]) -> bool:
    types = _types(item)
    return not types or not any(name in NOT_THE_PAGE or name.endswith("Organization") for name in types)


def _types(item: Mapping[str, Any]) -> list[str]:
    """The names of an object's types, without that of the vocabulary."""
    types = item.get("@type")
    return [
        name
        for each in (types[:MAX_CRUMBS] if isinstance(types, list) else [types])
        if isinstance(each, str) and (name := cut_line(SCHEMA.sub("", each, count=1)))
    ]
