"""Federated searches with Meilisearch's API."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.test_collections import Collection, collection
from tests.callers import page
from tests.gateway.callers import assert_engine_error

__all__ = ["collection"]


@pytest.fixture
def filled(collection: Collection) -> Collection:
    """A collection with documents in both sites."""
    collection.tenant.index(page(1, title="Lighthouse", author="Ann"), page(2, title="Boat", author="Bo"))
    collection.index_second(page(3, title="Repair a lighthouse", author="Ann"))
    return collection


def federated(searched: Collection, *queries: dict[str, Any], **federation: Any) -> TestResponse:
    """Send a federated search with queries of the collection's own index, unless they have another."""
    index = f"site_{searched.id}"
    body = {"federation": federation, "queries": [{"indexUid": index, **query} for query in queries]}
    return searched.client("public").post("/engine/multi-search", json=body)


def test_federated_search_returns_one_list_with_the_origin_of_each_hit(filled: Collection) -> None:
    response = federated(filled, {"q": "lighthouse", "federationOptions": {"weight": 0.5}}, limit=5).get_json()

    assert [(hit["title"], hit["site"]["label"]) for hit in response["hits"]] == [
        ("Lighthouse", filled.tenant.site["name"]), ("Repair a lighthouse", "Manual"),
    ]  # fmt: skip
    origins = [hit["_federation"] for hit in response["hits"]]
    assert [(each["indexUid"], each["queriesPosition"]) for each in origins] == [(f"site_{filled.id}", 0)] * 2
    first, second = [each["weightedRankingScore"] for each in origins]
    assert 0.5 > first > second > 0
    assert {name: response[name] for name in ("limit", "offset", "estimatedTotalHits")} == {
        "limit": 5, "offset": 0, "estimatedTotalHits": 2,
    }  # fmt: skip
    assert "query" not in response
    assert "facetsByIndex" not in response
    assert "facetDistribution" not in response


def test_weight_of_a_site_is_part_of_the_score(filled: Collection) -> None:
    filled.patch(sites=filled.sites(weight=5))
    response = federated(filled, {"q": "lighthouse"}).get_json()
    assert [hit["id"] for hit in response["hits"]] == ["page-3", "page-1"]
    scores = [hit["_federation"]["weightedRankingScore"] for hit in response["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_page_is_chosen_by_the_federation(filled: Collection) -> None:
    response = federated(filled, {"q": "lighthouse"}, limit=1, offset=1).get_json()
    assert [hit["id"] for hit in response["hits"]] == ["page-3"]
    assert (response["limit"], response["offset"]) == (1, 1)


def test_hits_without_words_or_by_sort_have_the_highest_score(filled: Collection) -> None:
    for query in ({}, {"q": "lighthouse", "sort": ["title:asc"]}):
        hits = federated(filled, query).get_json()["hits"]
        assert {hit["_federation"]["weightedRankingScore"] for hit in hits} == {1.0}


def test_facets_are_returned_by_index_or_merged(filled: Collection) -> None:
    index = f"site_{filled.id}"
    facets = {index: ["author", "site"]}
    by_index = federated(filled, {}, facetsByIndex=facets).get_json()
    assert by_index["facetsByIndex"] == {
        index: {
            "distribution": {"author": {"Ann": 2, "Bo": 1}, "site": {filled.tenant.site["name"]: 2, "Manual": 1}},
            "stats": {},
        }
    }
    assert "facetDistribution" not in by_index
    merged = federated(filled, {}, facetsByIndex=facets, mergeFacets={"maxValuesPerFacet": 1}).get_json()
    assert merged["facetDistribution"] == {"author": {"Ann": 2}, "site": {filled.tenant.site["name"]: 2}}
    assert merged["facetStats"] == {}
    assert "facetsByIndex" not in merged


def test_search_without_queries_finds_nothing(collection: Collection) -> None:
    assert federated(collection, limit=7).get_json() == {
        "hits": [], "processingTimeMs": 0, "limit": 7, "offset": 0, "estimatedTotalHits": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": 5}, "invalid_multi_search_query_pagination"),
        ({"page": 1}, "invalid_multi_search_query_pagination"),
        ({"facets": ["author"]}, "invalid_multi_search_query_facets"),
        ({"filter": "author ="}, "invalid_search_filter"),
    ],
)
def test_parameters_that_belong_into_the_federation_are_rejected(
    collection: Collection, query: dict[str, Any], code: str
) -> None:
    error = assert_engine_error(federated(collection, query), 400, code)
    assert "queries[0]" in error["message"] or code == "invalid_search_filter"


def test_other_indexes_several_queries_and_options_without_federation_are_rejected(collection: Collection) -> None:
    other = {"indexUid": f"site_{collection.second_id}"}
    assert_engine_error(federated(collection, {}, other), 403, "invalid_api_key")
    error = assert_engine_error(federated(collection, {}, {}), 400, "bad_request")
    assert "has one query here" in error["message"]
    facets = {f"site_{collection.second_id}": ["author"]}
    assert_engine_error(federated(collection, {}, facetsByIndex=facets), 400, "invalid_multi_search_facets")
    queries = [{"indexUid": f"site_{collection.id}", "federationOptions": {"weight": 1}}]
    response = collection.client("public").post("/engine/multi-search", json={"queries": queries})
    assert_engine_error(response, 400, "invalid_multi_search_query_federated")


def test_federated_search_is_charged_and_recorded_once(filled: Collection) -> None:
    federated(filled, {"q": "lighthouse"})
    filled.tenant.app.extensions["runtime"].events.flush()
    report = filled.tenant.browser.get(f"/api/analytics?site_id={filled.id}").get_json()
    assert report["total_searches"] == 1
    info = filled.client().get("/v1/client-info").get_json()
    assert info["limits"]["used_today"] == 1
