"""The tools that search a site and read its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urljoin

import orjson
from marshmallow import Schema

from app.compat.agents.files import find_page
from app.errors import field_error
from app.services.access.credentials import SiteRecord
from app.services.search.search import rejected
from app.web.admission import current_admission
from app.web.callers import agent_visitor
from app.web.charges import run_charged_search
from app.web.parsing import load_values
from backends.errors import BackendRejected
from backends.filters import Filter, OneOf, all_of, parse_filter
from backends.query import Highlight, SearchQuery
from backends.sections import SECTIONS
from backends.standard_fields import STANDARD_FIELDS
from schemas.compat import (
    MAX_TOOL_HITS,
    FetchArgumentsSchema,
    SearchArgumentsSchema,
)
from schemas.search import MAX_FILTER_LENGTH

MAX_SNIPPET = 500
MAX_TEXT = 20_000
"""Maximum number of characters of a page per call."""
_MAX_NAMES = 40
_MAX_VALUES = 20
_MAX_VALUE = 300
_SHOWN_ELSEWHERE = frozenset({"id", "title", "url", "content", "excerpt", SECTIONS})

ToolResult = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that agents can call.

    Attributes:
        describe: Returns the tool's description for a site, for ``tools/list``.
        run: Runs the tool with arguments; raises the same errors as views.
    """

    describe: Callable[[SiteRecord], dict[str, Any]]
    run: Callable[[SiteRecord, Any], ToolResult]


def describe(site: SiteRecord) -> list[dict[str, Any]]:
    """Return the descriptions of a site's tools for ``tools/list``."""
    return [
        {
            "name": name,
            **tool.describe(site),
            "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        }
        for name, tool in TOOLS.items()
    ]


def _load(schema: Schema, arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, dict):  # Models send null for omitted arguments.
        arguments = {name: value for name, value in arguments.items() if value is not None}
    return load_values(schema, arguments)


def _about(site: SiteRecord) -> str:
    return f"{site.name} ({site.url})" + (f": {site.description}" if site.description else ".")


_TEXT = {"type": "string"}


def _schema(properties: Mapping[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


# --- search


def _describe_search(site: SiteRecord) -> dict[str, Any]:
    names = ", ".join(islice((*STANDARD_FIELDS, *sorted(site.kinds)), _MAX_NAMES))
    arguments = {
        "query": {**_TEXT, "description": "What to look for: a few words. Quote phrases, put - before unwanted words."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOOL_HITS,
            "default": 5,
            "description": "Most results.",
        },
        "filters": {
            **_TEXT,
            "maxLength": MAX_FILTER_LENGTH,
            "description": "A condition that pages must meet, such as: author = 'Ann' AND date >= '2024-01-01'. "
            f"Operators: = != > >= < <= IN [a, b], EXISTS, AND, OR, NOT. Fields: {names}.",
        },
        "section": {**_TEXT, "description": "Only pages whose field section has this value."},
    }
    hit = {
        "id": {**_TEXT, "description": "For fetch."},
        "title": _TEXT,
        "url": {
            **_TEXT,
            "description": "URL of the page, with the anchor of its best matching section, if it has one.",
        },
        "snippet": {**_TEXT, "maxLength": MAX_SNIPPET, "description": "The best matching passage."},
        "fields": {
            "type": "object",
            "description": "Custom fields of the page, such as author, date, and section.",
        },
    }
    results = {"type": "array", "items": _schema(hit, tuple(hit)), "description": "Best first."}
    result = {
        "results": results,
        "total": {"type": "integer", "description": "Number of matching pages, possibly estimated."},
        "corrected_query": {
            "type": ["string", "null"],
            "description": "The corrected query, if the original was misspelled.",
        },
    }
    return {
        "title": f"Search {site.name}",
        "description": f"Search the pages of {_about(site)}",
        "inputSchema": _schema(arguments, ("query",), additionalProperties=False),
        "outputSchema": _schema(result, tuple(result)),
    }


def _search(site: SiteRecord, arguments: Any) -> ToolResult:
    values = _load(SearchArgumentsSchema(), arguments)
    query = SearchQuery(
        text=values["query"],
        limit=values["limit"],
        portable_filter=_condition(values),
        highlight=Highlight(pre_tag="", post_tag="", escape=False, only_fields=frozenset({"content"}), sentences=True),
        sections=1,
        returned_fields=frozenset({*STANDARD_FIELDS, *site.kinds}) - {"content"},
    )
    outcome = run_charged_search(current_admission(), site, query, agent_visitor())
    return {
        "results": [_hit(orjson.loads(hit), site) for hit in outcome.hits],
        "total": outcome.timed.result.total,
        "corrected_query": outcome.timed.result.corrected_query,
    }


def _condition(values: Mapping[str, Any]) -> Filter | None:
    conditions: list[Filter] = [OneOf("section", (values["section"],))] if values["section"] else []
    if values["filters"]:
        try:
            conditions.append(parse_filter(values["filters"]))
        except BackendRejected as error:
            raise rejected(error) from error
    return all_of(conditions)


def _hit(document: Mapping[str, Any], site: SiteRecord) -> ToolResult:
    section = next((section for section in document.get(SECTIONS, ()) if isinstance(section, dict)), None)
    best_place = document if section is None else section
    return {
        "id": document["id"],
        "title": document["title"],
        "url": urljoin(_base_url(document, site), best_place["url"]),
        "snippet": best_place["_formatted"]["content"][:MAX_SNIPPET],
        "fields": {
            name: _cut(value)
            for name, value in document.items()
            if name not in _SHOWN_ELSEWHERE and not name.startswith("_") and value not in (None, "", [])
        },
    }


def _base_url(document: Mapping[str, Any], site: SiteRecord) -> str:
    """Return the URL that a hit's relative URL belongs to: its site's."""
    bases = {searched.record.id: searched.record.url for searched in site.searched_sites or ()}
    return bases[document["site"]["id"]] if bases else site.url


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(item) for item in value[:_MAX_VALUES]]
    return value[:_MAX_VALUE] if isinstance(value, str) else value


# --- fetch


def _describe_fetch(site: SiteRecord) -> dict[str, Any]:
    arguments = {
        "id": {**_TEXT, "description": "The page's ID, from search."},
        "url": {**_TEXT, "description": "The page's URL, instead of its ID."},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Offset in the text at which to begin: next_offset of the previous call.",
        },
    }
    result = {
        "id": _TEXT,
        "title": _TEXT,
        "url": _TEXT,
        "text": {**_TEXT, "maxLength": MAX_TEXT, "description": "The page, or a part of it, as Markdown."},
        "next_offset": {
            "type": ["integer", "null"],
            "description": "Offset at which the page continues; null at its end.",
        },
    }
    return {
        "title": f"Read a page of {site.name}",
        "description": f"Read a page as Markdown, by id or url, {MAX_TEXT} characters at a time. Site: {_about(site)}",
        "inputSchema": _schema(arguments, additionalProperties=False),
        "outputSchema": _schema(result, tuple(result)),
    }


def _fetch(site: SiteRecord, arguments: Any) -> ToolResult:
    values = _load(FetchArgumentsSchema(), arguments)
    page = find_page(site, identifier=values["id"], url=values["url"])
    text, offset = page.markdown, values["offset"]
    if offset and offset >= len(text):
        raise field_error("offset", "out_of_range", f"must be less than {len(text)}, the length of the page")
    end = _end_of_part(text, offset)
    return {
        "id": page.id,
        "title": page.title,
        "url": page.url,
        "text": text[offset:end],
        "next_offset": end if end < len(text) else None,
    }


def _end_of_part(text: str, start: int) -> int:
    """Return the end of the part from ``start``, at a line end unless the part would then be less than half full."""
    end = start + MAX_TEXT
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", start + MAX_TEXT // 2, end)
    return end if line_end < 0 else line_end + 1


TOOLS: Mapping[str, Tool] = {"search": Tool(_describe_search, _search), "fetch": Tool(_describe_fetch, _fetch)}
"""Maps names to tools, in display order."""
