"""Answers of Algolia's search API, with a hit for each section, as DocSearch shows them."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urljoin

import orjson

from app.services.access.credentials import SiteRecord
from app.web.searches import Found
from backends.query import SearchQuery
from backends.sections import SECTIONS
from backends.standard_fields import STANDARD_FIELDS

_LEVELS = tuple(f"lvl{level}" for level in range(7))
OPEN, CLOSE = "\0<", "\0>"
"""Tags that are put around matches while an answer is made; no document has a NUL."""


@dataclass(frozen=True, slots=True)
class AlgoliaSearch:
    """A search, and how its answer is told.

    Attributes:
        sent: The checked parameters.
        index: The name that the caller gave.
        window: Documents of a page of results.
        facets: Fields whose values are counted, by the name that was asked for; ``None`` for all fields.
    """

    query: SearchQuery
    sent: Mapping[str, Any]
    index: str
    window: int
    facets: Mapping[str, tuple[str, ...]] | None


def encode_answer(search: AlgoliaSearch, found: Found, site: SiteRecord) -> dict[str, Any]:
    """The answer to one search."""
    result, sent = found.timed.result, search.sent
    tags = sent["highlightPreTag"], sent["highlightPostTag"]
    answer: dict[str, Any] = {
        "hits": [hit for each in found.timed.hits for hit in _hits(orjson.loads(each), site, tags)],
        "nbHits": result.total,
        "page": sent["page"],
        "nbPages": -(-result.total // search.window) if search.window else 0,
        "hitsPerPage": sent["hitsPerPage"],
        "exhaustiveNbHits": False,
        "processingTimeMS": found.timed.took_ms,
        "query": sent["query"],
        "params": sent["params"] or urlencode({"query": sent["query"], "hitsPerPage": sent["hitsPerPage"]}),
        "index": search.index,
        "queryID": found.query_id,
    }
    if not search.query.facets:
        return answer
    facets = result.facets if search.facets is None else _facets(search.facets, result.facets)
    return {**answer, "facets": facets}


def _facets(names: Mapping[str, tuple[str, ...]], counted: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The counts of each name's fields together, most frequent values first."""
    facets = {}
    for name, fields in names.items():
        values: Counter[str] = Counter()
        for field in fields:
            values.update(counted.get(field, {}))
        facets[name] = dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0])))
    return facets


def _hits(document: Mapping[str, Any], site: SiteRecord, tags: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """The hits of a document: itself if its title matches, or no section does, and its sections."""
    marked, sections = document["_formatted"], document.get(SECTIONS, [])
    page = [(_group(document, site), None), (document["title"], marked["title"])]
    address = urljoin(site.url, document["url"])
    if OPEN in marked["title"] or not sections:
        yield _hit(document, document["id"], address, None, page, marked.get("content", ""), tags)
    for section in sections:
        titles = [*page, *((title, None) for title in section["path"])]
        titles.append((section["title"], section["_formatted"]["title"]))
        name = f"{document['id']}#{section['anchor']}"
        text = section["_formatted"]["content"]
        yield _hit(document, name, address, section["anchor"], titles[: len(_LEVELS)], text, tags)


def _group(document: Mapping[str, Any], site: SiteRecord) -> str:
    section = document.get("section")
    return section if isinstance(section, str) and section else site.domain


def _hit(
    document: Mapping[str, Any],
    name: str,
    address: str,
    anchor: str | None,
    titles: list[tuple[str, str | None]],
    text: str,
    tags: tuple[str, str],
) -> dict[str, Any]:
    plain: dict[str, str | None] = dict.fromkeys(_LEVELS)
    marked = {}
    for level, (title, formatted) in zip(_LEVELS, titles, strict=False):
        plain[level] = title
        marked[level] = _marked(html.escape(title, quote=False) if formatted is None else formatted, tags)
    has_title = OPEN in (titles[-1][1] or "")
    told = html.unescape(text.replace(OPEN, "").replace(CLOSE, ""))
    content = None if has_title and OPEN not in text else told or None
    shown: dict[str, Any] = {"hierarchy": marked}
    if content is not None:
        shown["content"] = _marked(text, tags)
    own = {key: value for key, value in document.items() if key not in STANDARD_FIELDS and key[0] != "_"}
    own.pop(SECTIONS, None)
    return own | {
        "objectID": name,
        "url": address if anchor is None else f"{address.partition('#')[0]}#{anchor}",
        "url_without_anchor": address.partition("#")[0],
        "anchor": anchor,
        "type": _LEVELS[len(titles) - 1] if has_title or content is None else "content",
        "content": content,
        "hierarchy": plain,
        "_highlightResult": shown,
        "_snippetResult": shown,
    }


def _marked(text: str, tags: tuple[str, str]) -> dict[str, Any]:
    words = re.findall(f"{OPEN}(.*?){CLOSE}", text, re.DOTALL)
    return {
        "value": text.replace(OPEN, tags[0]).replace(CLOSE, tags[1]),
        "matchLevel": "full" if words else "none",
        "matchedWords": list(dict.fromkeys(html.unescape(word).lower() for word in words)),
    }
