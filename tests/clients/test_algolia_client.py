"""Algolia's Python client, with only the host and key changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.callers import page
from tests.clients.conftest import Customer


@pytest.fixture(scope="module")
def customer(needs_package: Callable[[str], None], make_customer: Callable[[str], Customer]) -> Customer:
    needs_package("algoliasearch")
    customer = make_customer("algolia@example.com")
    pages = [page(number, title=f"Bicycle {number}", url=f"/{number}", author="Ann") for number in range(3)]
    customer.call("private", "POST", "/api/v1/index/bulk", json={"documents": pages}).raise_for_status()
    return customer


@pytest.fixture
def make_client(customer: Customer) -> Iterator[Callable[[str], Any]]:
    """Yield a function that creates Algolia's client with a key, and close its connections at the end."""
    address = urlsplit(customer.server.base_url)
    hosts = import_module("algoliasearch.http.hosts")

    with ExitStack() as stack:

        def make(key: str) -> Any:
            config = import_module("algoliasearch.search.config").SearchConfig("any", key)
            host = hosts.Host(address.hostname, scheme=address.scheme, port=address.port)
            config.hosts = hosts.HostsCollection([host])
            client = import_module("algoliasearch.search.client").SearchClientSync.create_with_config(config)
            return stack.enter_context(client)

        yield make


def test_algolia_python_client_searches_one_index_and_several(
    customer: Customer, make_client: Callable[[str], Any]
) -> None:
    client = make_client(customer.tokens["search"])
    wish = {"query": "bicycle", "hitsPerPage": 2, "filters": "author:Ann", "facets": ["author"]}

    one = client.search_single_index(index_name="any", search_params=wish)
    several = client.search(
        {"requests": [{"indexName": "any", **wish, "page": 1}, {"indexName": "any", "query": "no"}]}
    )

    assert (one.nb_hits, one.nb_pages, len(one.hits), one.facets) == (3, 2, 2, {"author": {"Ann": 3}})
    first, second = (result.actual_instance for result in several.results)
    assert {hit.object_id for hit in (*one.hits, *first.hits)} == {f"page-{number}" for number in range(3)}
    assert "<em>Bicycle</em>" in one.hits[0].to_json()
    assert (second.nb_hits, second.query) == (0, "no")


def test_algolia_python_client_raises_error_messages_and_statuses(
    customer: Customer, make_client: Callable[[str], Any]
) -> None:
    error = import_module("algoliasearch.http.exceptions").RequestException

    with pytest.raises(error, match="filters cannot be read") as rejected:
        make_client(customer.tokens["search"]).search_single_index(
            index_name="any", search_params={"filters": "author"}
        )
    with pytest.raises(error, match="The API key is invalid") as unknown:
        make_client("abc").search_single_index(index_name="any")

    assert (rejected.value.status_code, unknown.value.status_code) == (400, 403)
