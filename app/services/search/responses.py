"""The JSON of search responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import orjson

from app.services.search.search import TimedResult
from backends.base import Hit
from backends.query import SearchQuery
from backends.sections import SECTIONS


def encode_hit(hit: Hit, fields: Set[str] | None = None) -> bytes:
    """Return a hit as JSON, with ``_formatted`` and ``_explain``. Decodes the document only to select ``fields``."""
    document = hit.json
    if hit.sections is not None and SECTIONS in hit.document:
        fields = (fields or hit.document.keys()) - {SECTIONS}
    if fields is not None:
        document = orjson.dumps({name: value for name, value in hit.document.items() if name in fields})
    parts: list[bytes | memoryview] = [memoryview(document)[:-1]]
    if hit.sections is not None:
        parts += (b',"sections":', orjson.dumps([section.as_json() for section in hit.sections]))
    if hit.formatted is not None:
        parts += (b',"_formatted":', orjson.dumps(hit.formatted))
    if hit.explanation is not None:
        parts += (b',"_explain":', orjson.dumps(hit.explanation))
    return b"".join((*parts, b"}")) if len(parts) > 1 else document


def encode_effects(query: SearchQuery, timed: TimedResult, links: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the optional members of a response: effects of rules, an answer, and links for searches without results.

    Args:
        links: The site's links for searches without results.
    """
    effects = query.effects
    members = {
        "rules": effects.rules,
        "redirect": effects.redirect,
        "notice": effects.notice,
        "answer": timed.answer,
        "no_results_links": () if timed.result.total else links,
    }
    return {name: value for name, value in members.items() if value}


def encode_results(
    query: SearchQuery, query_text: str, timed: TimedResult, query_id: str, links: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Return the ``results`` member of a response, for orjson. ``links`` is as in :func:`encode_effects`."""
    result = timed.result
    results: dict[str, Any] = {
        "hits": [orjson.Fragment(hit) for hit in timed.hits],
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
