"""Meilisearch's federated search: one list of hits for several queries. Here it has one query, since an index is a site
or a collection, and a collection merges its sites itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import orjson

from app.gateway.queries import EngineSearch, make_engine_search
from app.services.access.credentials import SiteRecord
from app.services.search.merging import SITE
from app.services.search.search import TimedResult
from app.web.gateway_errors import GatewayError
from backends.base import Hit, Level
from backends.query import MATCH_ALL, SearchQuery

_PAGINATION = ("limit", "offset", "page", "hitsPerPage")


def reject_outside_federation(raw_queries: Sequence[Any]) -> None:
    """Reject ``federationOptions`` in the queries of a request without ``federation``.

    Args:
        raw_queries: The queries as the client sent them.

    Raises:
        GatewayError: 400.
    """
    for position, query in enumerate(raw_queries):
        if query.get("federationOptions") is not None:
            message = f"Inside `.queries[{position}]`: federationOptions needs `federation` in the request."
            raise GatewayError("invalid_multi_search_query_federated", message)


def make_federated_search(
    federation: Mapping[str, Any], queries: Sequence[Mapping[str, Any]], raw_queries: Sequence[Any], site: SiteRecord,
    max_bytes: int,
) -> EngineSearch:  # fmt: skip
    """Create the search of a federated request from checked parameters.

    Args:
        raw_queries: The queries as the client sent them.
        max_bytes: Maximum size of the hits.

    Raises:
        ApiError: 400 for several queries, and for parameters of a query that belong in ``federation``.
    """
    if len(queries) > 1:
        message = "A federated search has one query here: the index of a collection searches all its sites."
        raise GatewayError("bad_request", f"Inside `.queries[1]`: {message}")
    for name in _PAGINATION:
        if raw_queries[0].get(name) is not None:
            message = f"`{name}` is not allowed in a federated query; use `federation.limit` and `federation.offset`."
            raise GatewayError("invalid_multi_search_query_pagination", f"Inside `.queries[0]`: {message}")
    if raw_queries[0].get("facets") is not None:
        message = "`facets` is not allowed in a federated query; use `federation.facetsByIndex`."
        raise GatewayError("invalid_multi_search_query_facets", f"Inside `.queries[0]`: {message}")
    for index in federation["facetsByIndex"]:
        if index != site.index:
            message = f"Inside `.federation.facetsByIndex`: no query searches the index `{index[:100]}`."
            raise GatewayError("invalid_multi_search_facets", message)
    window = {name: federation[name] for name in ("limit", "offset")}
    facets = federation["facetsByIndex"].get(site.index)
    search = make_engine_search({**queries[0], **window, "facets": facets}, site, max_bytes)
    return replace(search, query=replace(search.query, scored=True))


def with_federation(timed: TimedResult, query: SearchQuery, site: SiteRecord, weight: float) -> TimedResult:
    """Return a result whose hits have ``_federation``.

    Args:
        weight: Weight of the query.
    """
    weights = {searched.record.id: searched.weight for searched in site.searched_sites or ()}
    lowest = 1.0
    hits = []
    for hit in timed.result.hits:
        if query.text != MATCH_ALL and not query.sort:
            lowest = min(lowest, _ranking_score(hit, weights))
        details = {"indexUid": site.index, "queriesPosition": 0, "weightedRankingScore": lowest * weight}
        hits.append(replace(hit, json=hit.json[:-1] + b',"_federation":' + orjson.dumps(details) + b"}"))
    return replace(timed, result=replace(timed.result, hits=tuple(hits)))


def _ranking_score(hit: Hit, weights: Mapping[int, float]) -> float:
    """Return the score of a hit between 0 and 1, as in Meilisearch. Ours have no upper limit."""
    assert hit.score is not None, "the search is scored"
    if hit.score.level > Level.WORDS:
        return 1.0
    share = hit.score.share * (weights[hit.document[SITE]["id"]] if weights else 1.0)
    return share / (1 + share)


def federated_response(response: Mapping[str, Any], federation: Mapping[str, Any], site: SiteRecord) -> dict[str, Any]:
    """Return the response to a search in the format of a federated search."""
    members = {name: value for name, value in response.items() if name != "query"}
    if "facetDistribution" in members and federation["mergeFacets"] is None:
        distribution, stats = members.pop("facetDistribution"), members.pop("facetStats")
        members["facetsByIndex"] = {site.index: {"distribution": distribution, "stats": stats}}
    elif "facetDistribution" in members:
        max_values, counts = federation["mergeFacets"]["maxValuesPerFacet"], members["facetDistribution"]
        members["facetDistribution"] = {name: dict(islice(counts[name].items(), max_values)) for name in counts}
    return members


def empty_response(federation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a federated search without queries."""
    window = {name: federation[name] for name in ("limit", "offset")}
    return {"hits": [], "processingTimeMs": 0, **window, "estimatedTotalHits": 0}
