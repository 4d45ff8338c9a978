"""Statements that a page makes for other search services: Pagefind, Swiftype, Elastic's site search, and DocSearch.

Sources: https://pagefind.app/docs/indexing/, https://pagefind.app/docs/metadata/, https://pagefind.app/docs/filtering/,
https://www.elastic.co/guide/en/swiftype/current/ (meta tags and content inclusion), and
https://docsearch.algolia.com/docs/record-extractor/ for the names of ``<meta>`` elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from turbohtml import Document, Element

from app.crawl.read.bounds import cut_line
from backends.standard_fields import STANDARD_FIELDS

LEFT_OUT = "[data-pagefind-ignore], [data-elastic-exclude], [data-swiftype-index=false]"
"""Selects what is no content for those services."""
CONTENT = "[data-pagefind-body], [data-elastic-include], [data-swiftype-index=true]"
"""Selects what alone is content for them, on pages that have it."""
MAX_ANNOTATIONS = 100
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_PAGEFIND = re.compile(r"(?P<name>[^\[\]:,]+)(?:\[(?P<attribute>[^\]]+)\]|:(?P<value>.*))?", re.DOTALL)
_DOCSEARCH = "docsearch:"
_NAMES = {"published_at": "date", "description": "excerpt", "body": "content", "docsearch:language": "lang"}
"""Their names of fields that are called otherwise here."""
_READ_BY_US = frozenset({"id", "url", "content"})
"""Fields that are always taken from the page itself."""


def annotated_fields(document: Document) -> dict[str, str | list[str]]:
    """The fields that a page names for other services: a text, or a list where one is named several times.

    Those of the standard fields that a page may name are ``title``, ``excerpt``, ``author``, and ``date``.
    """
    found: dict[str, dict[str, None]] = {}
    for sent, text in _annotations(document):
        name = _NAMES.get(sent, sent.removeprefix(_DOCSEARCH))
        if name in _READ_BY_US or not _FIELD_NAME.fullmatch(name) or not (value := cut_line(text)):
            continue
        if name in found or len(found) < MAX_ANNOTATIONS:
            found.setdefault(name, {})[value] = None
    return {
        name: next(iter(values)) if len(values) == 1 or name in STANDARD_FIELDS else list(values)
        for name, values in found.items()
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
    """Names and values of one attribute: ``author``, ``image[src], image_alt[alt]``, or ``date:2024-05-01``."""
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
