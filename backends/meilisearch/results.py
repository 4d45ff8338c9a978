"""Converting Meilisearch's results to the results of :mod:`backends.base`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from backends.base import FacetStats, Hit
from backends.errors import BackendRejected
from backends.field_rules import first_values
from backends.meilisearch.query import CompiledQuery
from backends.meilisearch.schema import STORED_SECTIONS
from backends.meilisearch.transport import RejectedByMeilisearch
from backends.query import SearchQuery
from backends.sections import unpack
from backends.servers import matched_words
from backends.servers.highlighter import Matcher, matched_hit
from backends.servers.matched_words import WordSearch
from backends.servers.responses import count_in, source_in, text_in

_LOCATION = re.compile(r"^(\d+):\d+ ", re.MULTILINE)
_FILTER_ERROR_CODES = frozenset({"invalid_search_filter", "feature_not_enabled"})


def make_hit(hit: Mapping[str, Any], query: SearchQuery, compiled: CompiledQuery) -> Hit:
    """Build a hit from one of Meilisearch's hits.

    Meilisearch could report which words of a document matched. But for that, it tokenizes all texts of the document,
    which takes seconds for a page of long documents. This searches only the texts that are returned.
    """
    id, source, packed = text_in(hit["id"]), source_in(hit["_doc"]), hit.get(STORED_SECTIONS)
    if not query.shows_matches:
        return Hit(id, source.encode())

    def matcher(document: Mapping[str, Any]) -> Matcher:
        words = WordSearch(query, compiled.typed).words_in(_returned_texts(document, packed, query))
        return Matcher.of(compiled.typed, words, language=query.settings.language)

    return matched_hit(id, source, packed, query, matcher)


def searched_document(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a hit with all searched text; requires ``_doc`` and the stored sections."""
    return matched_words.searched_document(source_in(hit["_doc"]), hit.get(STORED_SECTIONS))


def _returned_texts(document: Mapping[str, Any], packed: str | None, query: SearchQuery) -> Iterator[str]:
    """Yield the texts of a document in which matches are marked or searched for."""
    fields = {} if query.highlight is None else dict(query.highlight.formatted_fields(document))
    if query.needs_sections:
        fields |= {name: document.get(name) for name in ("title", "content")}
        yield from (section.title for section in (unpack(packed) if packed else ()))
    for value in fields.values():
        yield from (text for text in (value if isinstance(value, list) else (value,)) if isinstance(text, str))


def check_result(result: Mapping[str, Any], query: Mapping[str, Any], index: str) -> None:
    """Check that a result can belong to a query.

    Args:
        index: The index named in the result.

    Raises:
        ValueError: It belongs to another index, or its numbers are inconsistent.
    """
    count, total = len(result["hits"]), count_in(result["totalHits"])
    if index != query["indexUid"] or count > min(total, query["hitsPerPage"]):
        raise ValueError("the result belongs to another query")


def merged_result(response: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of a federated search to the form of a single query's result.

    Raises:
        ValueError: It cannot belong to these queries.
    """
    index = query["indexUid"]
    hits = [{**hit, "_rankingScore": hit["_federation"]["weightedRankingScore"]} for hit in response["hits"]]
    for hit in hits:
        check_result(response, query, hit["_federation"]["indexUid"])
    counted = response.get("facetsByIndex", {}).get(index, {})
    return {
        "hits": hits,
        "totalHits": count_in(response["totalHits"]),
        "facetDistribution": counted.get("distribution", {}),
        "facetStats": counted.get("stats", {}),
    }


def make_facets(
    result: Mapping[str, Any], compiled: CompiledQuery, limit: int
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """Return the ``limit`` most frequent values and the bounds of the requested facets, in the requested order."""
    counted, bounds = result.get("facetDistribution", {}), result.get("facetStats", {})
    facets: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for name, field in compiled.facets.items():
        facets[name] = first_values(
            {str(value): count_in(count) for value, count in counted.get(field, {}).items()}, limit
        )
        if name in bounds:
            stats[name] = FacetStats(float(bounds[name]["min"]), float(bounds[name]["max"]))
    return facets, stats


def filter_rejection(error: RejectedByMeilisearch, query: SearchQuery) -> BackendRejected | None:
    """Return the exception for a rejected filter in Meilisearch's syntax; ``None`` if the error has another cause."""
    if error.code not in _FILTER_ERROR_CODES or not query.native_filter:
        return None
    location = _LOCATION.search(error.message)
    position = int(location[1]) - 1 if location else None
    if error.code == "feature_not_enabled":
        message = "The filter uses a feature of Meilisearch that is not enabled."
        return BackendRejected("filters", message, position=position)
    unknown = re.search(r"Attribute `([^`]*)` is not filterable", error.message)
    if unknown:
        name_position = query.native_filter.find(unknown[1])
        message = f"The documents have no field {unknown[1]!r} to filter by."
        return BackendRejected("filters", message, position=name_position if name_position >= 0 else position)
    return BackendRejected("filters", "The filter is not valid in Meilisearch's filter syntax.", position=position)
