"""Converting Typesense's results and errors to the types of :mod:`backends.base`."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from backends.base import FacetStats, Hit
from backends.errors import BackendError, BackendRejected, BackendUnavailable
from backends.field_rules import first_values
from backends.query import SearchQuery
from backends.servers import matched_words
from backends.servers.documents import facet_text
from backends.servers.highlighter import Matcher, matched_hit
from backends.servers.responses import ServerRejection, count_in, source_in, text_in
from backends.typesense.query import CompiledQuery
from backends.typesense.schema import STORED_SECTIONS

WRONG_MAX = -sys.float_info.min
"""The maximum that 0.24.1 reports for a facet whose numbers are all negative."""

_ONE_WORD = 1 << 59
"""``text_match`` of a word in the best field, without what orders hits with equally many words."""

_FIELD = re.compile(r"Could not find a (?P<what>filter |facet )?field named `(?P<name>[^`]*)`(?P<sorting>.*sorting)?")
_IN_FILTER = re.compile(r"filter field `(?P<name>[^`]*)`")
_ABOUT_FILTERS = re.compile(r"filter", re.IGNORECASE)


class RejectedByTypesense(ServerRejection):
    """Typesense rejected a request, with a status that concerns the request.

    Attributes:
        status: 400, 404, 408, 409, 413, or 422.
        message: Typesense's message; never shown to a caller.
    """

    def __init__(self, status: int, message: str):
        super().__init__(f"{status}: {message[:500]}")
        self.status = status
        self.message = message

    @property
    def is_missing_index(self) -> bool:
        missing = self.message in ("Not Found", "Not found.") or "collection with" in self.message
        return self.status == 404 and missing


def rejection(status: int, response: Any) -> RejectedByTypesense:
    """Build the exception for a status and the decoded body of a response."""
    return RejectedByTypesense(status, str(response["message"]))


def is_stale_schema(error: RejectedByTypesense) -> bool:
    """Whether one of the adapter's own fields is missing, which means that the known schema is out of date."""
    match = _FIELD.search(error.message) if error.status == 404 else None
    return match is not None and (match["what"] != "filter " or match["name"].startswith("_"))


def rejection_of(error: RejectedByTypesense, query: SearchQuery) -> BackendError:
    """Return the exception for a failed search. It blames the caller only for filters in Typesense's syntax."""
    if error.status in (400, 404, 422) and query.native_filter and _ABOUT_FILTERS.search(error.message):
        match = _FIELD.search(error.message) or _IN_FILTER.search(error.message)
        if match is None:
            return BackendRejected("filters", "The filter is not valid in Typesense's filter syntax.")
        name = match["name"]
        position = query.native_filter.find(name)
        if error.status == 404:
            message = f"The documents have no field {name!r} to filter by."
        else:
            message = f"The value compared with {name!r} does not match the field's type."
        return BackendRejected("filters", message, position=position if position >= 0 else None)
    if error.status == 408:
        return BackendUnavailable("The search took too long.")
    return BackendUnavailable("The search engine rejected a request.")


def check_result(result: Mapping[str, Any], search: Mapping[str, str]) -> None:
    """Check that a result can belong to a search.

    Raises:
        ValueError: It belongs to another collection, or its numbers are inconsistent.
    """
    collection = result.get("request_params", {}).get("collection_name", search["collection"])
    total, count = count_in(result["found"]), len(result.get("hits", ()))
    if collection != search["collection"] or not count <= total or count > int(search.get("per_page", count)):
        raise ValueError("the result belongs to another search")


def make_hit(hit: Mapping[str, Any], query: SearchQuery, compiled: CompiledQuery) -> Hit:
    """Build a hit from one of Typesense's hits."""
    document = hit["document"]
    id, source = text_in(document["_id"]), source_in(document["_doc"])
    if not query.shows_matches:
        return Hit(id, source.encode())
    words = [word for field in hit.get("highlight", {}).values() for word in _matched(field)]
    matcher = Matcher.of(compiled.parts, words, compiled.fold, query.settings.language)
    return matched_hit(id, source, document.get(STORED_SECTIONS), query, lambda _document: matcher)


def match_quality(word_count: int, hit: Mapping[str, Any]) -> float:
    """Return how well one of Typesense's hits matches, from 0 to about 1 (every word in the title).

    The highest bits of ``text_match`` are the number of words in the best field; its last byte is the field's weight
    and the number of fields, and would be lost in a float.
    """
    text_match = int(hit.get("text_match", 0))
    return (text_match / _ONE_WORD + text_match % 256 / 256) / ((word_count or 1) + 0.5)


def searched_document(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a hit with all searched text; requires ``_doc`` and the stored sections."""
    return matched_words.searched_document(hit["_doc"], hit.get(STORED_SECTIONS))


def make_facets(
    counted: Iterable[Mapping[str, Any]], compiled: CompiledQuery, limit: int
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """Return the ``limit`` most frequent values and the bounds of the requested facets, in the requested order."""
    by_name = {facet["field_name"]: facet for facet in counted}
    facets: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for name, (values, numbers) in compiled.facets.items():
        counts: dict[str, int] = {}
        for item in by_name.get(values, {}).get("counts", ()):
            text = facet_text(item["value"])
            counts[text] = counts.get(text, 0) + count_in(item["count"])
        facets[name] = first_values(counts, limit)
        bounds = by_name.get(numbers, {}).get("stats", {})
        if counts and "min" in bounds and "max" in bounds:
            stats[name] = FacetStats(_shortest(bounds["min"]), _shortest(bounds["max"]))
    return facets, stats


def facets_unsettled(counted: Iterable[Mapping[str, Any]], requested: int, limit: int) -> bool:
    """Whether values beyond those in the result could be among the ``limit`` most frequent ones."""
    for facet in counted:
        counts = [int(item["count"]) for item in facet.get("counts", ())]
        if len(counts) >= requested and (limit > requested or counts[requested - 1] == counts[limit - 1]):
            return True
    return False


def _matched(field: Any) -> list[str]:
    tokens = field.get("matched_tokens", ()) if isinstance(field, dict) else ()
    return [token for token in tokens if isinstance(token, str)]


def _shortest(value: float) -> float:
    """Return the shortest decimal with the same 32-bit float in Typesense: 19.99 for 19.989999771118164."""
    value = float(value)
    if value.is_integer() or abs(value) > 3e38 or struct.unpack("f", struct.pack("f", value))[0] != value:
        return value
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return value
