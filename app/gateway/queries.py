"""Converts Meilisearch's parameters to our queries, and our results to Meilisearch's format."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.gateway.hits import EVERY, HitShape
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.search.budget import ResponseBudget
from app.services.search.encoding import MAX_SORT_KEYS, encode_effects
from app.services.search.search import TimedResult, rejected
from app.services.search.site_queries import for_site
from app.web.gateway_errors import GatewayError
from backends.distinct import distinct_field
from backends.errors import BackendRejected
from backends.filters import Filter, all_of, any_of, parse_filter
from backends.query import MATCH_ALL, SearchQuery, SortKey
from backends.servers.tokenizer import split_words
from backends.standard_fields import TEXT_FIELDS

MAX_OFFSET = 2147483647
MAX_FACET_HITS = 100
_SEARCHED_VALUES = 10_000
_DEFAULT_PAGE = 20
_SORT = re.compile(r"(.+):(asc|desc)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class EngineSearch:
    """A checked search of the gateway.

    Attributes:
        query: Query for the engine.
        shape: Format of the hits.
        text: The query's text as the client sent it.
        size: Number of requested hits.
        page: Page number, or ``None`` for ``limit`` and ``offset``.
        counts_facets: Whether the request has facets, even an empty list.
        suggestions: Number of requested suggestions.
    """

    query: SearchQuery
    shape: HitShape
    text: str
    size: int
    page: int | None
    counts_facets: bool
    suggestions: int

    def encode(self, timed: TimedResult, budget: ResponseBudget, links: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Return the response as a value that orjson can encode.

        Args:
            links: Links for a search without results.

        Raises:
            ApiError: 400 if the hits exceed ``budget``.
        """
        result = timed.result
        response: dict[str, Any] = {
            "hits": [orjson.Fragment(self.shape.encode(hit, budget)) for hit in result.hits],
            "query": self.text,
            "processingTimeMs": timed.took_ms,
        }
        if self.page is None:
            response |= {"limit": self.size, "offset": self.query.offset, "estimatedTotalHits": result.total}
        else:
            pages = -(-result.total // self.size) if self.size else 0
            response |= {"hitsPerPage": self.size, "page": self.page, "totalPages": pages, "totalHits": result.total}
        if self.counts_facets:
            response["facetDistribution"] = result.facets
            response["facetStats"] = {name: {"min": s.min, "max": s.max} for name, s in result.facet_stats.items()}
        response["requestUid"] = str(uuid.uuid4())
        return response | encode_effects(self.query, timed, links)


def search_metadata(search: EngineSearch, timed: TimedResult, site: SiteRecord, secret: str) -> dict[str, Any]:
    """Return metadata of a search in Meilisearch's format, for clients that request it.

    Args:
        secret: Secret key of the installation.
    """
    return {
        "query": search.text,
        "queryUid": make_query_id(secret, site.id, search.query.typed, timed.searched_at),
        "indexUid": site.index,
        "primaryKey": "id",
        "matched": timed.result.matched.value,
        "corrected_query": timed.result.corrected_query,
    }


def make_engine_search(parameters: Mapping[str, Any], site: SiteRecord, max_bytes: int) -> EngineSearch:
    """Create a search from checked parameters.

    Args:
        max_bytes: Maximum size of the hits.

    Raises:
        ApiError: 400 for unsupported parameters, or values that are invalid for the site.
    """
    if parameters["showRankingScore"]:
        raise GatewayError(
            "invalid_search_show_ranking_score", "Ranking scores are not supported; omit showRankingScore."
        )
    shape = HitShape.of(parameters, site.kinds)
    page, size, offset = _window(parameters)
    query = SearchQuery(
        text=_text(parameters["q"]),
        # Page 0 is empty, as in Meilisearch.
        limit=0 if page == 0 else size,
        offset=offset,
        portable_filter=read_filter(parameters["filter"]),
        sort=_sort(parameters["sort"]),
        facets=tuple(dict.fromkeys(parameters["facets"] or ())),
        highlight=shape.highlight(),
        fields=_searched(parameters["attributesToSearchOn"]),
        all_words=parameters["matchingStrategy"] == "all",
        sections=parameters["sections"],
        distinct=parameters["distinct"],
        answers=True,
        returned_fields=shape.returned_fields,
        max_bytes=max_bytes,
    )
    query = for_site(query, site)
    try:
        distinct_field(query)
    except BackendRejected as error:
        raise GatewayError("invalid_search_distinct", str(error)) from error
    return EngineSearch(
        query,
        shape,
        parameters["q"],
        size,
        page,
        parameters["facets"] is not None,
        parameters["suggestions"],
    )


def make_facet_query(parameters: Mapping[str, Any], site: SiteRecord) -> SearchQuery:
    """Create a query without hits from checked parameters of a facet search.

    Raises:
        ApiError: 400 for values that are invalid for the site.
    """
    name = parameters["facetName"]
    if name == EVERY:
        raise GatewayError("invalid_facet_search_facet_name", "facetName must be the name of one field.")
    query = SearchQuery(
        text=_text(parameters["q"]),
        limit=0,
        portable_filter=read_filter(parameters["filter"]),
        facets=(name,),
        facet_values=_SEARCHED_VALUES if (parameters["facetQuery"] or "").strip() else MAX_FACET_HITS,
        fields=_searched(parameters["attributesToSearchOn"]),
        all_words=parameters["matchingStrategy"] == "all",
        distinct="",
    )
    return for_site(query, site)


def matching_values(counts: Mapping[str, int], facet_query: str | None) -> list[dict[str, Any]]:
    """Return values with the words of ``facet_query`` in sequence, the last as a prefix. Ignores case and accents."""
    words = " ".join(split_words(facet_query or ""))
    if facet_query is not None and facet_query.strip() and not words:
        return []
    matching = (value for value in counts if not words or f" {words}" in f" {' '.join(split_words(value))}")
    return [{"value": value, "count": counts[value]} for value in itertools.islice(matching, MAX_FACET_HITS)]


def read_filter(value: str | Sequence[str | Sequence[str]]) -> Filter | None:
    """Convert a filter in any of its forms to one expression, or ``None`` if it is empty.

    Raises:
        ApiError: 400 for an invalid expression.
    """
    if isinstance(value, str):
        return _parse(value)
    conditions: list[Filter] = []
    for member in value:
        texts = [member] if isinstance(member, str) else member
        alternatives = [parsed for text in texts if (parsed := _parse(text)) is not None]
        if (condition := any_of(alternatives)) is not None:
            conditions.append(condition)
    return all_of(conditions)


def _parse(text: str) -> Filter | None:
    if not text.strip():
        return None
    try:
        return parse_filter(text)
    except BackendRejected as error:
        raise rejected(error) from error


def _text(text: str) -> str:
    return text.strip() or MATCH_ALL


def _window(parameters: Mapping[str, Any]) -> tuple[int | None, int, int]:
    """Return the page number (``None`` for ``limit`` and ``offset``), and the numbers of hits and of skipped hits."""
    page, size = parameters["page"], parameters["hitsPerPage"]
    if page is None and size is None:
        return None, parameters["limit"], parameters["offset"]
    page = 1 if page is None else page
    size = _DEFAULT_PAGE if size is None else size
    offset = max(0, page - 1) * size
    if offset > MAX_OFFSET:
        raise GatewayError("invalid_search_page", f"Invalid value at `.page`: it starts after hit {MAX_OFFSET}.")
    return page, size, offset


def _sort(keys_sent: Sequence[str]) -> tuple[SortKey, ...]:
    keys: dict[str, SortKey] = {}
    for text in keys_sent:
        match = _SORT.fullmatch(text)
        if match is None:
            message = f"Invalid value at `.sort`: {text[:80]!r} is not `field:asc` or `field:desc`."
            raise GatewayError("invalid_search_sort", message)
        # The first of two keys for one field decides, so the second has no effect.
        keys.setdefault(match[1], SortKey(match[1], match[2] == "desc"))
    if len(keys) > MAX_SORT_KEYS:
        raise GatewayError(
            "invalid_search_sort", f"Invalid value at `.sort`: it accepts at most {MAX_SORT_KEYS} fields."
        )
    return tuple(keys.values())


def _searched(names: Sequence[str]) -> tuple[str, ...]:
    if EVERY in names:
        return ()
    for name in names:
        if name not in TEXT_FIELDS:
            raise GatewayError(
                "invalid_search_attributes_to_search_on",
                f"Invalid value at `.attributesToSearchOn`: {name[:80]!r} is not one of {', '.join(TEXT_FIELDS)}.",
            )
    return tuple(dict.fromkeys(names))
