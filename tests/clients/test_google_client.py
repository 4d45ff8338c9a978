"""Google's Custom Search client, with only the endpoint changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import pytest

from tests.callers import page
from tests.clients.conftest import Customer


@pytest.fixture(scope="module")
def customer(needs_package: Callable[[str], None], make_customer: Callable[[str], Customer]) -> Customer:
    needs_package("googleapiclient")
    customer = make_customer("google@example.com")
    pages = [page(number, title=f"Bicycle {number}", url=f"/{number}") for number in range(3)]
    customer.call("private", "POST", "/api/v1/index/bulk", json={"documents": pages}).raise_for_status()
    return customer


@pytest.fixture
def make_service(customer: Customer) -> Iterator[Callable[[str], Any]]:
    """Yield a function that creates Google's client with a key, and close its connections at the end."""
    with ExitStack() as stack:
        yield lambda key: stack.enter_context(
            import_module("googleapiclient.discovery").build(
                "customsearch",
                "v1",
                developerKey=key,
                client_options={"api_endpoint": customer.server.base_url},
                static_discovery=True,
            )
        )


def test_google_client_pages_through_all_results(customer: Customer, make_service: Callable[[str], Any]) -> None:
    service = make_service(customer.tokens["search"])
    request = service.cse().list(q="bicycle", cx="any", num=2, safe="active", hl="en")
    links = []

    for _ in range(2):
        answer = request.execute()
        links += [item["link"] for item in answer["items"]]
        following = answer["queries"].get("nextPage")
        if following:
            request = service.cse().list(q="bicycle", cx="any", num=2, start=following[0]["startIndex"])

    assert following is None
    assert sorted(links) == [f"https://example.com/{number}" for number in range(3)]


def test_google_client_raises_error_message_and_reason(make_service: Callable[[str], Any]) -> None:
    error = import_module("googleapiclient.errors").HttpError

    with pytest.raises(error, match="The API key is invalid") as caught:
        make_service("AIza").cse().list(q="bicycle", cx="any").execute()

    assert (caught.value.status_code, caught.value.error_details[0]["reason"]) == (400, "API_KEY_INVALID")
