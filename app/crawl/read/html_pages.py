"""Reading an HTML page: main text, metadata, links, directives, and fields that it declares or that can be detected.

Sources for the fields that a page declares for other search services: https://pagefind.app/docs/indexing/,
https://pagefind.app/docs/metadata/, https://pagefind.app/docs/filtering/,
https://www.elastic.co/guide/en/swiftype/current/ (meta tags and content inclusion), and
https://docsearch.algolia.com/docs/record-extractor/ for the names of ``<meta>`` elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from turbohtml import Document, Element

from app.crawl.fetch.values import RANK, Fetched, FieldRules, Page, Reason, Selectors
from app.crawl.read.error_pages import error_of
from app.crawl.read.field_rules import Subject, ruled_fields
from app.crawl.read.links import (
    absolute_address,
    canonical_address,
    header_directives,
    meta_directives,
    page_base,
    page_links,
)
from app.crawl.read.main_text import main_part, only_lists
from app.crawl.read.metadata import Metadata, iso_date
from app.crawl.read.text import cut_line, cut_text
from app.texts.formats import node_to_text, parse_html, parse_xhtml
from app.texts.sections import mark_headings, take_sections
from backends.standard_fields import STANDARD_FIELDS
from backends.values import parse_number

EXCLUDED_SELECTOR = "[data-pagefind-ignore], [data-elastic-exclude], [data-swiftype-index=false]"
"""Selects elements that Pagefind, Elastic, and Swiftype exclude from the index."""
CONTENT_SELECTOR = "[data-pagefind-body], [data-elastic-include], [data-swiftype-index=true]"
"""Selects elements to which Pagefind, Elastic, and Swiftype limit the content, on pages that contain any of them."""
SCRIPT_SELECTOR = "script:not([type$=json])"
IGNORED = f"[data-site-search-ignore], {EXCLUDED_SELECTOR}"
RANK_OF_LISTS = -3
"""The rank of pages that only link to others."""


def read_html(html: str, fetched: Fetched, selectors: Selectors, rules: FieldRules, *, is_xml: bool = False) -> Page:
    """Read an HTML page.

    Args:
        html: The decoded body.
        fetched: The response.
        selectors: The source's selectors; parts without a selector are detected.
        rules: The source's rules for custom fields. Fields that the page declares for this service take precedence
            over the rules, and the rules take precedence over detected fields.
        is_xml: Whether the page is XHTML, which is read by the rules of XML if it is well-formed.

    Raises:
        ValueError: A selector is not valid CSS.
    """
    document = parse_xhtml(html) if is_xml else parse_html(html)
    base = page_base(document, fetched.url)
    directives = header_directives(fetched.headers) | meta_directives(document)
    links = () if directives.nofollow else page_links(document, fetched.headers, base, keep_routes=fetched.rendered)
    has_scripts = document.select_one(SCRIPT_SELECTOR) is not None
    canonical = canonical_address(document, fetched.headers, base, fetched.url)
    # A page that declares another page's URL as canonical only becomes a document if that URL is wrong.
    page_url = canonical if canonical is not None and canonical in fetched.redirects else fetched.url
    document.remove(f"{IGNORED}, {selectors.remove}" if selectors.remove else IGNORED)
    metadata = Metadata(document, fetched.headers)
    # Extracting the main text modifies the document, so everything else is read first.
    metadata_title, excerpt, author, date = metadata.title(), metadata.excerpt(), metadata.author(), metadata.date()
    fields = metadata.fields()
    annotated = _annotated_fields(document)
    declared = {name: str(annotated.pop(name)) for name in STANDARD_FIELDS if name in annotated}
    for more_fields in (
        annotated,
        ruled_fields(rules, page_url, Subject(document, metadata, base)),
        detected_fields(document, metadata, base, rules.start),
    ):
        fields |= {name: value for name, value in more_fields.items() if name not in fields}
    if isinstance(rank := fields.get(RANK), str) and (number := parse_number(rank)) is not None:
        fields[RANK] = number
    explicit_title = _selected_title(document, selectors.title) or declared.get("title")
    headings = () if explicit_title else metadata.headings(metadata_title)
    title = explicit_title or metadata_title or "".join(headings[:1])
    if selectors.content:
        marked = _selected_text(document, selectors.content)
    elif document.select_one(CONTENT_SELECTOR) is not None:
        marked = _selected_text(document, CONTENT_SELECTOR)
    else:
        main = main_part(document)
        marked = node_to_text(main)
        if RANK not in fields and only_lists(main):
            fields[RANK] = RANK_OF_LISTS
    content, sections = take_sections(cut_text(marked))
    return Page(
        id=metadata.id(),
        title=title,
        content=content,
        canonical=canonical,
        links=links,
        noindex=directives.noindex,
        expires=directives.expires,
        skip_reason=_skip_reason(directives.noindex, title, content),
        excerpt=declared.get("excerpt") or excerpt,
        author=declared.get("author") or author,
        date=iso_date(declared.get("date", "")) or date,
        lang=metadata.language(),
        fields=fields,
        has_scripts=has_scripts,
        sections=sections,
        headings=tuple(heading for heading in headings if heading != title),
    )


def _skip_reason(noindex: bool, title: str, content: str) -> Reason | None:
    if noindex:
        return Reason.NOINDEX
    if not content:
        return Reason.EMPTY
    return error_of(title, content)


def _selected_title(document: Document, selector: str | None) -> str:
    element = document.select_one(selector) if selector else None
    return cut_line(node_to_text(element)) if element is not None else ""


def _selected_text(document: Document, selector: str) -> str:
    """Return the text of all elements that a selector matches, with headings marked. Nested matches count once."""
    elements = document.select(selector)
    matches = set(elements)
    outermost: list[Element] = [element for element in elements if matches.isdisjoint(element.ancestors)]
    for element in outermost:
        mark_headings(element)
    return "\n\n".join(text for element in outermost if (text := node_to_text(element)))


MAX_ANNOTATIONS = 100
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_PAGEFIND = re.compile(r"(?P<name>[^\[\]:,]+)(?:\[(?P<attribute>[^\]]+)\]|:(?P<value>.*))?", re.DOTALL)
_DOCSEARCH = "docsearch:"
_ALIASES = {"published_at": "date", "description": "excerpt", "body": "content", "docsearch:language": "lang"}
"""Maps the field names of other search services to the names of fields here."""
_RESERVED_FIELDS = frozenset({"id", "url", "content"})
"""Fields that annotations cannot set."""


def _annotated_fields(document: Document) -> dict[str, str | list[str]]:
    """Return the fields that a page declares for other services: a string, or a list for a repeated name.

    They include the standard fields ``title``, ``excerpt``, ``author``, and ``date``.
    """
    fields: dict[str, dict[str, None]] = {}
    for label, text in _annotations(document):
        name = _ALIASES.get(label, label.removeprefix(_DOCSEARCH))
        if name in _RESERVED_FIELDS or not _FIELD_NAME.fullmatch(name) or not (value := cut_line(text)):
            continue
        if name in fields or len(fields) < MAX_ANNOTATIONS:
            fields.setdefault(name, {})[value] = None
    return {
        name: next(iter(values)) if len(values) == 1 or name in STANDARD_FIELDS else list(values)
        for name, values in fields.items()
    }


def _annotations(document: Document) -> Iterator[tuple[str, str]]:
    for element in document.select("meta.swiftype, meta.elastic")[:MAX_ANNOTATIONS]:
        yield element.attr("name") or "", element.attr("content") or ""
    for element in document.select("[data-swiftype-name]")[:MAX_ANNOTATIONS]:
        yield element.attr("data-swiftype-name") or "", element.text
    for element in document.iter_elements("meta"):
        name = (element.attr("name") or "").strip().lower()
        if name.startswith(_DOCSEARCH):
            yield from ((name, part) for part in (element.attr("content") or "").split(","))
    for kind in ("meta", "filter"):
        for element in document.select(f"[data-pagefind-{kind}]")[:MAX_ANNOTATIONS]:
            yield from _pagefind(element, element.attr(f"data-pagefind-{kind}") or "")


def _pagefind(element: Element, text: str) -> Iterator[tuple[str, str]]:
    """Parse an attribute: ``author``, ``image[src], image_alt[alt]``, or ``date:2024-05-01``."""
    parts = [text] if ":" in text.partition(",")[0] else text.split(",")
    for part in parts:
        match = _PAGEFIND.fullmatch(part.strip())
        if match is None:
            continue
        if match["value"] is not None:
            yield match["name"].strip(), match["value"].strip()
        elif match["attribute"] is not None:
            yield match["name"].strip(), element.attr(match["attribute"].strip()) or ""
        else:
            yield match["name"].strip(), element.text


MAX_CRUMBS = 20
NAVIGATION = "nav[aria-label*=breadcrumb i], [role=navigation][aria-label*=breadcrumb i]"
SEPARATORS = " /\\|>›»→·•<‹«←"
START_PATH = re.compile(r"/?(?:[a-z]{2}(?:[-_][a-z]{2,4})?/?)?(?:index\.[a-z]+)?", re.IGNORECASE)
"""The path of a site's home page, or of its home page in one language."""
START_NAMES = frozenset(
    [
        *("accueil", "ana sayfa", "domov", "etusivu", "forside", "główna", "hem", "home", "home page", "homepage"),
        *("hjem", "index", "inicio", "início", "pagina iniziale", "página inicial", "principal", "start"),
        *("start page", "startseite", "strona główna", "úvod", "αρχική", "главная", "ホーム", "トップ", "首页", "首頁"),
        "홈",
    ]
)
TYPES_OF_PARTS = frozenset(
    ("BreadcrumbList", "ImageObject", "ListItem", "Person", "SearchAction", "SiteNavigationElement", "WebSite")
)
"""Types of JSON-LD objects that do not describe the page as a whole."""
ANY_PAGE = "WebPage"
"""The least specific type."""
SCHEMA = re.compile(r"(?:https?://schema\.org/|schema:)")


@dataclass(frozen=True, slots=True)
class Crumb:
    """An item of a breadcrumb trail.

    Attributes:
        address: The absolute URL of its link, if it has one.
    """

    name: str
    address: str | None


def detected_fields(document: Document, metadata: Metadata, base: str, start: str | None) -> dict[str, Any]:
    """Return the custom fields ``section``, ``breadcrumbs``, ``image``, and ``type``, where they can be detected.

    Args:
        base: Base URL of the page's relative URLs.
        start: URL of the source, which counts as a home page, too.
    """
    crumbs = _json_ld_crumbs(metadata.json_ld, base) or _navigation_crumbs(document, base)
    fields: dict[str, Any] = {
        "section": _section(crumbs, start),
        "breadcrumbs": [crumb.name for crumb in crumbs],
        "image": _image(metadata, base),
        "type": _type(metadata.json_ld),
    }
    return {name: value for name, value in fields.items() if value}


def _section(crumbs: list[Crumb], start: str | None) -> str | None:
    """Return the name of the first crumb after the home page."""
    after = crumbs[1:] if crumbs and _is_start(crumbs[0], start) else crumbs
    return after[0].name if after else None


def _is_start(crumb: Crumb, start: str | None) -> bool:
    if crumb.name.casefold() in START_NAMES:
        return True
    return crumb.address is not None and (
        crumb.address == start or START_PATH.fullmatch(urlsplit(crumb.address).path) is not None
    )


def _json_ld_crumbs(objects: Iterable[Mapping[str, Any]], base: str) -> list[Crumb]:
    """Return the crumbs of the first ``BreadcrumbList`` that has any."""
    for item in objects:
        for candidate in (item, item.get("breadcrumb")):
            if isinstance(candidate, dict) and "BreadcrumbList" in _types(candidate):
                elements = candidate.get("itemListElement")
                listed = (
                    [element for element in elements if isinstance(element, dict)] if isinstance(elements, list) else []
                )
                crumbs = [
                    crumb
                    for element in sorted(listed, key=_position)[:MAX_CRUMBS]
                    if (crumb := _crumb(element, base)) is not None
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


def _navigation_crumbs(document: Document, base: str) -> list[Crumb]:
    """Return the crumbs of the first navigation whose label contains "breadcrumb"."""
    for navigation in document.select(NAVIGATION)[:MAX_CRUMBS]:
        elements = navigation.select("li") or navigation.select("a, [aria-current]")
        crumbs = [crumb for element in elements[:MAX_CRUMBS] if (crumb := _navigation_crumb(element, base)) is not None]
        if crumbs:
            return crumbs
    return []


def _navigation_crumb(element: Element, base: str) -> Crumb | None:
    link = element if element.tag == "a" else element.select_one("a")
    label = (link.attr("aria-label") or link.attr("title") or "") if link is not None else ""
    name = cut_line(element.text).strip(SEPARATORS) or cut_line(label)
    address = link.attr("href") if link is not None else None
    return Crumb(name, absolute_address(address, base) if address is not None else None) if name else None


def _image(metadata: Metadata, base: str) -> str | None:
    described = (item.get("image") for item in metadata.json_ld if _describes_page(item))
    candidates = [
        *metadata.contents("og:image", "og:image:url"),
        *(text for value in described for text in _addresses(value)),
    ]
    addresses = (absolute_address(text, base, is_file=True) for text in candidates)
    return next((address for address in addresses if address is not None), None)


def _addresses(image: object) -> Iterator[str]:
    for item in image[:MAX_CRUMBS] if isinstance(image, list) else [image]:
        text = (item.get("url") or item.get("contentUrl")) if isinstance(item, dict) else item
        if isinstance(text, str):
            yield text


def _type(objects: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the type of the first JSON-LD object that describes the page; ``WebPage`` only without a more specific
    one.
    """
    types = [name for item in objects if _describes_page(item) for name in _types(item)[:1]]
    return next((name for name in types if name != ANY_PAGE), types[0] if types else None)


def _describes_page(item: Mapping[str, Any]) -> bool:
    types = _types(item)
    return not types or not any(name in TYPES_OF_PARTS or name.endswith("Organization") for name in types)


def _types(item: Mapping[str, Any]) -> list[str]:
    """``{"@type": "https://schema.org/Article"} -> ["Article"]``"""
    types = item.get("@type")
    return [
        name
        for type_name in (types[:MAX_CRUMBS] if isinstance(types, list) else [types])
        if isinstance(type_name, str) and (name := cut_line(SCHEMA.sub("", type_name, count=1)))
    ]
