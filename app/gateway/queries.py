"""Searches of the gateway: Meilisearch's parameters as a query of ours, our results in Meilisearch's shape."""

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
from app.services.search.parameters import MAX_SORT_KEYS, for_site
from app.services.search.responses import encode_effects
from app.services.search.search import TimedResult, rejected
from app.web.gateway_errors import GatewayError
from backends.distinct import distinct_field
from backends.errors import BackendRejected
from backends.filters import And, Filter, Or, parse_filter
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
    """One search of the gateway, checked.

    Attributes:
        query: What the engine runs.
        shape: How hits are shown.
        text: The query's text as sent.
        size: Hits asked for.
        page: Page number, if pages are counted.
        counts_facets: Whether facets were asked for, even if none.
        links: The site's, for searches that find nothing.
    """

    query: SearchQuery
    shape: HitShape
    text: str
    size: int
    page: int | None
    counts_facets: bool
    links: Sequence[Mapping[str, str]]

    def encode(self, timed: TimedResult) -> dict[str, Any]:
        """The answer, for orjson."""
        result = timed.result
        answer: dict[str, Any] = {
            "hits": [orjson.Fragment(hit) for hit in timed.hits],
            "query": self.text,
            "processingTimeMs": timed.took_ms,
        }
        if self.page is None:
            answer |= {"limit": self.size, "offset": self.query.offset, "estimatedTotalHits": result.total}
        else:
            pages = -(-result.total // self.size) if self.size else 0
            answer |= {"hitsPerPage": self.size, "page": self.page, "totalPages": pages, "totalHits": result.total}
        if self.counts_facets:
            answer["facetDistribution"] = result.facets
            answer["facetStats"] = {name: {"min": s.min, "max": s.max} for name, s in result.facet_stats.items()}
        answer["requestUid"] = str(uuid.uuid4())
        return answer | encode_effects(self.query, timed, self.links)


def search_metadata(search: EngineSearch, timed: TimedResult, site: SiteRecord, secret: str) -> dict[str, Any]:
    """Metadata that clients get of a search if they ask for it, as by Meilisearch.

    Args:
        secret: The installation's.
    """
    return {
        "query": search.text,
        "queryUid": make_query_id(secret, site.id, search.query.typed, timed.searched_at),
        "indexUid": site.index,
        "primaryKey": "id",
        "matched": timed.result.matched.value,
        "corrected_query": timed.result.corrected_query,
    }


def make_engine_search(parameters: Mapping[str, Any], site: SiteRecord) -> EngineSearch:
    """The checked parameters of a search as what is run.

    Raises:
        ApiError: 400 for what does not fit the site, or is not supported.
    """
    if parameters["showRankingScore"]:
        raise GatewayError(
            "invalid_search_show_ranking_score", "Ranking scores are not supported; omit showRankingScore."
        )
    shape = HitShape.of(parameters, site.kinds)
    page, size, offset = _window(parameters)
    query = SearchQuery(
        text=_text(parameters["q"]),
        # Before the first page there is nothing, as in Meilisearch.
        limit=0 if page == 0 else size,
        offset=offset,
        filter=read_filter(parameters["filter"]),
        sort=_sort(parameters["sort"]),
        facets=tuple(dict.fromkeys(parameters["facets"] or ())),
        highlight=shape.highlight(),
        fields=_searched(parameters["attributesToSearchOn"]),
        all_words=parameters["matchingStrategy"] == "all",
        sections=parameters["sections"],
        distinct=parameters["distinct"],
        answers=True,
    )
    query = for_site(query, site)
    try:
        distinct_field(query)
    except BackendRejected as error:
        raise GatewayError("invalid_search_distinct", str(error)) from error
    return EngineSearch(
        query, shape, parameters["q"], size, page, parameters["facets"] is not None, site.no_results_links
    )


def make_facet_query(parameters: Mapping[str, Any], site: SiteRecord) -> SearchQuery:
    """The checked parameters of a facet search as a query without hits.

    Raises:
        ApiError: 400 for what does not fit the site.
    """
    name = parameters["facetName"]
    if name == EVERY:
        raise GatewayError("invalid_facet_search_facet_name", "facetName must be the name of one field.")
    query = SearchQuery(
        text=_text(parameters["q"]),
        limit=0,
        filter=read_filter(parameters["filter"]),
        facets=(name,),
        facet_values=_SEARCHED_VALUES if (parameters["facetQuery"] or "").strip() else MAX_FACET_HITS,
        fields=_searched(parameters["attributesToSearchOn"]),
        all_words=parameters["matchingStrategy"] == "all",
        distinct="",
    )
    return for_site(query, site)


def matching_values(counts: Mapping[str, int], facet_query: str | None) -> list[dict[str, Any]]:
    """The values with the words of ``facet_query`` in a row, the last as a beginning; case and accents do not count."""
    wanted = " ".join(split_words(facet_query or ""))
    if facet_query is not None and facet_query.strip() and not wanted:
        return []
    matching = (value for value in counts if not wanted or f" {wanted}" in f" {' '.join(split_words(value))}")
    return [{"value": value, "count": counts[value]} for value in itertools.islice(matching, MAX_FACET_HITS)]


def read_filter(value: str | Sequence[str | Sequence[str]]) -> Filter | None:
    """A filter in any of its forms as one expression; ``None`` if it says nothing.

    Raises:
        ApiError: 400 for an expression that cannot be read.
    """
    if isinstance(value, str):
        return _parse(value)
    conditions: list[Filter] = []
    for member in value:
        texts = [member] if isinstance(member, str) else member
        alternatives = [parsed for text in texts if (parsed := _parse(text)) is not None]
        if alternatives:
            conditions.append(alternatives[0] if len(alternatives) == 1 else Or(tuple(alternatives)))
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def _parse(text: str) -> Filter | None:
    if not text.strip():
        return None
    try:
        return parse_filter(text)
    except BackendRejected as error:
        raise rejected(error) from error


def _text(sent: str) -> str:
    return sent.strip() or MATCH_ALL


def _window(parameters: Mapping[str, Any]) -> tuple[int | None, int, int]:
    """Page number if pages are counted, hits asked for, hits passed over."""
    page, size = parameters["page"], parameters["hitsPerPage"]
    if page is None and size is None:
        return None, parameters["limit"], parameters["offset"]
    page = 1 if page is None else page
    size = _DEFAULT_PAGE if size is None else size
    offset = max(0, page - 1) * size
    if offset > MAX_OFFSET:
        raise GatewayError("invalid_search_page", f"Invalid value at `.page`: it starts after hit {MAX_OFFSET}.")
    return page, size, offset


def _sort(wanted: Sequence[str]) -> tuple[SortKey, ...]:
    keys: dict[str, SortKey] = {}
    for text in wanted:
        match = _SORT.fullmatch(text)
        if match is None:
            message = f"Invalid value at `.sort`: {text[:80]!r} is not `field:asc` or `field:desc`."
            raise GatewayError("invalid_search_sort", message)
        keys.setdefault(match[1], SortKey(match[1], match[2] == "desc"))
    if len(keys) > MAX_SORT_KEYS:
        raise GatewayError(
            "invalid_search_sort", f"Invalid value at `.sort`: it accepts at most {MAX_SORT_KEYS} fields."
        )
    return tuple(keys.values())


def _searched(wanted: Sequence[str]) -> tuple[str, ...]:
    if EVERY in wanted:
        return ()
    for name in wanted:
        if name not in TEXT_FIELDS:
            raise GatewayError(
                "invalid_search_attributes_to_search_on",
                f"Invalid value at `.attributesToSearchOn`: {name[:80]!r} is not one of {', '.join(TEXT_FIELDS)}.",
            )
    return tuple(dict.fromkeys(wanted))
