"""Results of Meilisearch in the words of :mod:`backends.base`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from backends.base import FacetStats, Hit, SearchQuery
from backends.errors import BackendRejected
from backends.field_rules import first_values
from backends.meilisearch.query import CompiledQuery
from backends.meilisearch.schema import STORED_SECTIONS
from backends.meilisearch.transport import RefusedByMeilisearch
from backends.sections import unpack
from backends.servers import matched_words
from backends.servers.highlighter import Matcher, matched_hit
from backends.servers.matched_words import WordSearch
from backends.servers.replies import count_in, source_in, text_in

_PLACE = re.compile(r"^(\d+):\d+ ", re.MULTILINE)
_FILTER_REFUSALS = frozenset({"invalid_search_filter", "feature_not_enabled"})


def make_hit(found: Mapping[str, Any], query: SearchQuery, compiled: CompiledQuery) -> Hit:
    """One of the hits that Meilisearch gives.

    Meilisearch could tell which words of a document matched. But it takes all texts of the document apart for that,
    which takes seconds for a page of long documents; here only those that are shown are looked at.
    """
    id, source, packed = text_in(found["id"]), source_in(found["_doc"]), found.get(STORED_SECTIONS)
    if not query.shows_matches:
        return Hit(id, source.encode())

    def matcher(document: Mapping[str, Any]) -> Matcher:
        words = WordSearch(query, compiled.typed).words_in(_shown_texts(document, packed, query))
        return Matcher.of(compiled.typed, words, language=query.settings.language)

    return matched_hit(id, source, packed, query, matcher)


def searched_document(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a hit with all the text that is searched; the hit needs ``_doc`` and its sections."""
    return matched_words.searched_document(source_in(found["_doc"]), found.get(STORED_SECTIONS))


def _shown_texts(document: Mapping[str, Any], packed: str | None, query: SearchQuery) -> Iterator[str]:
    """The texts of a document in which matches are marked, or looked for."""
    shown = {} if query.highlight is None else dict(query.highlight.chosen(document))
    if query.needs_sections:
        shown |= {name: document.get(name) for name in ("title", "content")}
        yield from (section.title for section in (unpack(packed) if packed else ()))
    for value in shown.values():
        yield from (text for text in (value if isinstance(value, list) else (value,)) if isinstance(text, str))


def check_result(result: Mapping[str, Any], query: Mapping[str, Any], index: str) -> None:
    """Make sure that a result can be one of a query.

    Args:
        index: The one that it tells of.

    Raises:
        ValueError: It is of another index, or its numbers cannot be true.
    """
    given, found = len(result["hits"]), count_in(result["totalHits"])
    if index != query["indexUid"] or given > min(found, query["hitsPerPage"]):
        raise ValueError("a result of another query")


def merged_result(answer: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
    """The result of several queries that Meilisearch merged, in the form of a single one's.

    Raises:
        ValueError: It cannot be theirs.
    """
    index = query["indexUid"]
    hits = [{**hit, "_rankingScore": hit["_federation"]["weightedRankingScore"]} for hit in answer["hits"]]
    for hit in hits:
        check_result(answer, query, hit["_federation"]["indexUid"])
    counted = answer.get("facetsByIndex", {}).get(index, {})
    return {
        "hits": hits,
        "totalHits": count_in(answer["totalHits"]),
        "facetDistribution": counted.get("distribution", {}),
        "facetStats": counted.get("stats", {}),
    }


def make_facets(
    result: Mapping[str, Any], compiled: CompiledQuery, most: int
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """The ``most`` frequent values and the bounds of the facets that were asked for, in the order asked."""
    counted, bounds = result.get("facetDistribution", {}), result.get("facetStats", {})
    facets: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for name, field in compiled.facets.items():
        facets[name] = first_values(
            {str(value): count_in(count) for value, count in counted.get(field, {}).items()}, most
        )
        if name in bounds:
            stats[name] = FacetStats(float(bounds[name]["min"]), float(bounds[name]["max"]))
    return facets, stats


def filter_rejection(error: RefusedByMeilisearch, query: SearchQuery) -> BackendRejected | None:
    """Our error for a filter in Meilisearch's syntax that was refused; ``None`` if it was not about that."""
    if error.code not in _FILTER_REFUSALS or not query.filters:
        return None
    place = _PLACE.search(error.message)
    position = int(place[1]) - 1 if place else None
    if error.code == "feature_not_enabled":
        message = "The filter uses a feature of Meilisearch that is not enabled."
        return BackendRejected("filters", message, position=position)
    unknown = re.search(r"Attribute `([^`]*)` is not filterable", error.message)
    if unknown:
        found = query.filters.find(unknown[1])
        message = f"The documents have no field {unknown[1]!r} to filter by."
        return BackendRejected("filters", message, position=found if found >= 0 else position)
    return BackendRejected("filters", "The filter is not valid in Meilisearch's filter syntax.", position=position)
