"""Algolia's JavaScript client, with only the host and key changed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.npm.conftest import Customer, Packages


def call(packages: Packages, customer: Customer, *calls: tuple[str, dict[str, Any]], key: str = "") -> list[Any]:
    """Return the outcome of each call."""
    address = urlsplit(customer.server.base_url)
    wish = {
        "host": address.netloc,
        "protocol": address.scheme,
        "key": key or customer.tokens["public"],
        "calls": [{"method": method, "argument": argument} for method, argument in calls],
    }
    outcomes: list[Any] = packages.run("algolia.mjs", wish)
    return outcomes


def test_algolia_javascript_client_searches_one_index_and_several(packages: Packages, customer: Customer) -> None:
    wish = {"query": "install", "hitsPerPage": 3, "filters": "author:Ann", "facets": ["author"]}

    several, one = call(
        packages,
        customer,
        ("search", {"requests": [{"indexName": "any", **wish}, {"indexName": "any", "query": "upgrade"}]}),
        ("searchSingleIndex", {"indexName": "any", "searchParams": wish}),
    )

    first, second = several["value"]["results"]
    assert [hit["objectID"] for hit in first["hits"]] == [hit["objectID"] for hit in one["value"]["hits"]]
    assert (len(first["hits"]), list(first["facets"]["author"])) == (3, ["Ann"])
    assert all("<em>Install</em>" in hit["_highlightResult"]["title"]["value"] for hit in first["hits"])
    assert second["nbHits"] > 0


def test_algolia_javascript_client_receives_error_messages_and_statuses(packages: Packages, customer: Customer) -> None:
    (rejected,) = call(packages, customer, ("search", {"requests": [{"indexName": "any", "filters": "author"}]}))
    (unknown,) = call(packages, customer, ("search", {"requests": [{"indexName": "any"}]}), key="abc")

    assert rejected["error"] == {"message": "filters cannot be read at 'author'", "status": 400}
    message = "The API key is invalid: keys of this service begin with svc_pub_, svc_srch_, or svc_prv_."
    assert unknown["error"] == {"message": message, "status": 403}
