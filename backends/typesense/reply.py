"""Results of Typesense in the words of :mod:`backends.base`."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from backends.base import FacetStats, Hit, SearchQuery
from backends.field_rules import first_values
from backends.servers import matched_words
from backends.servers.highlighter import Matcher, matched_hit
from backends.servers.replies import count_in, source_in, text_in
from backends.servers.sort_text import facet_text
from backends.typesense.query import CompiledQuery
from backends.typesense.schema import STORED_SECTIONS


def check_result(result: Mapping[str, Any], search: Mapping[str, str]) -> None:
    """Make sure that a result can be one of a search.

    Raises:
        ValueError: It is of another collection, or its numbers cannot be true.
    """
    told = result.get("request_params", {}).get("collection_name", search["collection"])
    found, given = count_in(result["found"]), len(result.get("hits", ()))
    if told != search["collection"] or not given <= found or given > int(search.get("per_page", given)):
        raise ValueError("a result of another search")


def make_hit(found: Mapping[str, Any], query: SearchQuery, compiled: CompiledQuery) -> Hit:
    """One of the hits that Typesense gives."""
    document = found["document"]
    id, source = text_in(document["_id"]), source_in(document["_doc"])
    if not query.shows_matches:
        return Hit(id, source.encode())
    words = [word for field in found.get("highlight", {}).values() for word in _matched(field)]
    matcher = Matcher.of(compiled.parts, words, compiled.fold, query.settings.language)
    return matched_hit(id, source, document.get(STORED_SECTIONS), query, lambda _document: matcher)


def searched_document(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a hit with all the text that is searched; it needs ``_doc`` and the stored sections."""
    return matched_words.searched_document(found["_doc"], found.get(STORED_SECTIONS))


def make_facets(
    counted: Iterable[Mapping[str, Any]], compiled: CompiledQuery, most: int
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """The ``most`` frequent values and the bounds of the facets that were asked for, in the order asked."""
    by_name = {facet["field_name"]: facet for facet in counted}
    facets: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for name, (values, numbers) in compiled.facets.items():
        counts: dict[str, int] = {}
        for item in by_name.get(values, {}).get("counts", ()):
            text = facet_text(item["value"])
            counts[text] = counts.get(text, 0) + count_in(item["count"])
        facets[name] = first_values(counts, most)
        bounds = by_name.get(numbers, {}).get("stats", {})
        if counts and "min" in bounds and "max" in bounds:
            stats[name] = FacetStats(_shortest(bounds["min"]), _shortest(bounds["max"]))
    return facets, stats


def facets_unsettled(counted: Iterable[Mapping[str, Any]], asked: int, most: int) -> bool:
    """Tell whether values beyond those given could belong among the ``most`` that are shown."""
    for facet in counted:
        counts = [int(item["count"]) for item in facet.get("counts", ())]
        if len(counts) >= asked and (most > asked or counts[asked - 1] == counts[most - 1]):
            return True
    return False


def _matched(field: Any) -> list[str]:
    tokens = field.get("matched_tokens", ()) if isinstance(field, dict) else ()
    return [token for token in tokens if isinstance(token, str)]


def _shortest(value: float) -> float:
    """The shortest decimal that is the same number in Typesense's 32-bit floats: 19.99 for 19.989999771118164."""
    value = float(value)
    if value.is_integer() or abs(value) > 3e38 or struct.unpack("f", struct.pack("f", value))[0] != value:
        return value
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return value
