"""The API's form of searches: queries from the parameters of requests, and JSON from results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from app.errors import ApiError, Detail, ErrorCode
from app.services.search.budget import ResponseBudget
from app.services.search.search import TimedResult, rejected
from backends.base import Hit
from backends.errors import BackendRejected
from backends.query import Highlight, SearchQuery, SortKey
from backends.sections import SECTIONS

MAX_SORT_KEYS = 3
_SECTIONS_MEMBER = f'"{SECTIONS}":'.encode()
_SORT_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]{0,63})\s*(?::\s*(asc|desc)\s*)?", re.ASCII | re.IGNORECASE)


def make_query(parameters: dict[str, Any]) -> SearchQuery:
    """Convert checked parameters of a request to a query, without the settings of a site.

    Raises:
        ApiError: 400 for ``sort`` or ``facets``.
    """
    limit = parameters["limit"]
    offset = parameters["offset"]
    if parameters["page"] > 1:
        offset = (parameters["page"] - 1) * limit
        if offset > 2147483647:
            raise ApiError(
                ErrorCode.VALIDATION_FAILED,
                "page is out of range",
                details=[Detail("page", "out_of_range", "page is out of range")],
            )
    fields = parse_fields(parameters["fields"])
    return SearchQuery(
        text=parameters["q"].strip(),
        limit=limit,
        offset=offset,
        native_filter=parameters["filters"].strip(),
        sort=parse_sort(parameters["sort"]),
        facets=parse_names(parameters["facets"]),
        highlight=Highlight(only_fields=fields, sentences=True) if parameters["highlight"] else None,
        sections=parameters["sections"],
        distinct=parameters["distinct"],
        explain=parameters["explain"],
        answers=True,
        returned_fields=fields,
    )


def parse_sort(text: str) -> tuple[SortKey, ...]:
    """Parse sort keys such as ``date:desc,title``.

    Raises:
        ApiError: 400 ``invalid_sort``.
    """
    if not text.strip():
        return ()
    keys: list[SortKey] = []
    for part in text.split(","):
        match = _SORT_KEY.fullmatch(part)
        if match is None:
            raise rejected(
                BackendRejected("sort", f"sort must be like date:desc,title:asc; {part.strip()[:80]!r} is not.")
            )
        keys.append(SortKey(match[1], (match[2] or "asc").lower() == "desc"))
    if len(keys) > MAX_SORT_KEYS:
        raise rejected(BackendRejected("sort", f"sort accepts at most {MAX_SORT_KEYS} fields."))
    if len({key.field for key in keys}) < len(keys):
        raise rejected(BackendRejected("sort", "sort names a field twice."))
    return tuple(keys)


def parse_names(text: str) -> tuple[str, ...]:
    """Parse distinct names such as ``author,category``.

    Raises:
        ApiError: 400 ``invalid_facet``.
    """
    if not text.strip():
        return ()
    names = [part.strip() for part in text.split(",")]
    if "" in names:
        raise rejected(BackendRejected("facets", "facets must be field names separated by commas, or *."))
    return tuple(dict.fromkeys(names))


def parse_fields(text: str) -> frozenset[str] | None:
    """Parse the fields of a hit, such as ``title,url``, and add ``id``; ``None`` for all fields."""
    names = {part.strip() for part in text.split(",")} - {""} if text else set()
    return frozenset({*names, "id"}) if names else None


def encode_hit(hit: Hit) -> bytes:
    """Return a hit as JSON, with ``sections``, ``_formatted``, and ``_explain``."""
    document, extra = hit.json, b""
    if hit.sections is not None:
        document = without_custom_sections(hit)
        extra += b',"sections":' + orjson.dumps([section.as_json() for section in hit.sections])
    if hit.formatted is not None:
        extra += b',"_formatted":' + orjson.dumps(hit.formatted)
    if hit.explanation is not None:
        extra += b',"_explain":' + orjson.dumps(hit.explanation)
    return document[:-1] + (extra if len(document) > 2 else extra[1:]) + b"}" if extra else document


def without_custom_sections(hit: Hit) -> bytes:
    """Return a hit's document as JSON, without a custom field named ``sections`` if the hit has matching sections."""
    if _SECTIONS_MEMBER not in hit.json or SECTIONS not in hit.document:
        return hit.json
    return orjson.dumps({name: value for name, value in hit.document.items() if name != SECTIONS})


def encode_hits(hits: Iterable[Hit], budget: ResponseBudget) -> list[bytes]:
    """Return hits as JSON.

    Raises:
        ApiError: 400 ``answer_too_large``.
    """
    encoded = list(map(encode_hit, hits))
    budget.spend(sum(map(len, encoded)))
    return encoded


def encode_effects(query: SearchQuery, timed: TimedResult, links: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the optional members of a response: effects of rules, an answer, and links for searches without results.

    Args:
        links: The site's links for searches without results.
    """
    effects = query.effects if timed.by_site is None else timed.effects
    members = {
        "rules": effects.rules,
        "redirect": effects.redirect,
        "notice": effects.notice,
        "answer": timed.answer,
        "no_results_links": () if timed.result.total else links,
        "partial": timed.unavailable,
    }
    return {name: value for name, value in members.items() if value}


def encode_results(
    query: SearchQuery,
    query_text: str,
    timed: TimedResult,
    hits: Iterable[bytes],
    query_id: str,
    links: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    """Return the ``results`` member of a response, for orjson. ``links`` is as in :func:`encode_effects`."""
    result = timed.result
    results: dict[str, Any] = {
        "hits": [orjson.Fragment(hit) for hit in hits],
        "estimatedTotalHits": result.total,
        "processingTimeMs": timed.took_ms,
        "query": query_text,
        "query_id": query_id,
        "matched": result.matched.value,
        "corrected_query": result.corrected_query,
        "limit": query.limit,
        "offset": query.offset,
    }
    results |= encode_effects(query, timed, links)
    if query.facets:
        results["facetDistribution"] = result.facets
        results["facetStats"] = {name: {"min": s.min, "max": s.max} for name, s in result.facet_stats.items()}
    return results
