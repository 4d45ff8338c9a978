"""Meilisearch's unmodified JavaScript client, configured from client-info."""

from __future__ import annotations

from typing import Any

from tests.npm.conftest import Customer, Packages


def call(packages: Packages, customer: Customer, *calls: tuple[str, list[Any]], index: str | None = "") -> list[Any]:
    """Return the outcome of each call on an index, or on the client if ``index`` is ``None``."""
    info = customer.info
    wished = [
        {"method": method, "arguments": arguments, **({} if index is None else {"index": index or info["index"]})}
        for method, arguments in calls
    ]
    wish = {"host": info["engine_host"], "key": info["engine_public_key"], "calls": wished}
    outcomes: list[Any] = packages.run("client.mjs", wish)
    return outcomes


def test_meilisearch_client_reports_the_gateway_as_healthy(packages: Packages, customer: Customer) -> None:
    health, healthy = call(packages, customer, ("health", []), ("isHealthy", []), index=None)

    assert health == {"value": {"status": "available"}}
    assert healthy == {"value": True}


def test_meilisearch_client_searches_with_filters_sorting_and_facets(packages: Packages, customer: Customer) -> None:
    wish = {
        "limit": 2,
        "filter": [["author = Ann", "author = Čeněk"], "price > 3"],
        "sort": ["price:desc"],
        "facets": ["author", "price"],
        "attributesToRetrieve": ["id", "price"],
        "attributesToHighlight": ["title"],
        "attributesToCrop": ["content:4"],
    }

    by_body, by_query = call(
        packages, customer, ("search", ["install", wish]),
        ("searchGet", ["install", {**wish, "filter": "author IN [Ann, Čeněk] AND price > 3"}]),
    )  # fmt: skip

    answer = by_body["value"]
    assert [hit["id"] for hit in answer["hits"]] == ["p23", "p21"]
    assert answer["hits"][0] == {
        "id": "p23",
        "price": 23,
        "_formatted": {
            "id": "p23",
            "price": "23",
            "title": "<em>Install</em> guide 23",
            "content": "How to run the…",
        },
    }
    assert answer["estimatedTotalHits"] == 7
    assert answer["facetDistribution"]["author"] == {"Čeněk": 4, "Ann": 3}
    assert answer["facetStats"] == {"price": {"min": 5, "max": 23}}
    assert by_query["value"]["hits"] == answer["hits"]


def test_meilisearch_client_paginates_with_totals(packages: Packages, customer: Customer) -> None:
    (outcome,) = call(packages, customer, ("search", ["", {"hitsPerPage": 10, "page": 3}]))

    answer = outcome["value"]
    assert len(answer["hits"]) == 5
    assert {name: answer[name] for name in ("page", "hitsPerPage", "totalPages", "totalHits")} == {
        "page": 3, "hitsPerPage": 10, "totalPages": 3, "totalHits": 25,
    }  # fmt: skip


def test_meilisearch_client_runs_a_multi_search(packages: Packages, customer: Customer) -> None:
    index = customer.info["index"]
    queries = [{"indexUid": index, "q": "install", "limit": 0}, {"indexUid": index, "q": "upgrade", "limit": 1}]

    (outcome,) = call(packages, customer, ("multiSearch", [{"queries": queries}]), index=None)

    first, second = outcome["value"]["results"]
    assert (first["indexUid"], first["hits"], first["estimatedTotalHits"]) == (index, [], 12)
    assert second["estimatedTotalHits"] == 13


def test_meilisearch_client_searches_facet_values(packages: Packages, customer: Customer) -> None:
    (outcome,) = call(packages, customer, ("searchForFacetValues", [{"facetName": "author", "facetQuery": "ann"}]))

    assert outcome["value"]["facetHits"] == [{"value": "Ann", "count": 9}, {"value": "Bob Annan", "count": 8}]


def test_meilisearch_client_receives_error_codes(packages: Packages, customer: Customer) -> None:
    (foreign,) = call(packages, customer, ("search", ["x"]), index="site_999")
    (malformed,) = call(packages, customer, ("search", ["x", {"filter": "author ="}]))

    assert foreign["error"]["name"] == malformed["error"]["name"] == "MeilisearchApiError"
    assert (foreign["error"]["status"], foreign["error"]["code"]) == (403, "invalid_api_key")
    assert (malformed["error"]["status"], malformed["error"]["code"]) == (400, "invalid_search_filter")
    assert malformed["error"]["type"] == "invalid_request"
