"""Google's own client, whose endpoint is the only thing that is changed, searches with Custom Search."""

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
    """Makes Google's client with a key; its connections are closed at the end."""
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


def test_it_turns_pages_until_there_is_none(customer: Customer, make_service: Callable[[str], Any]) -> None:
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


def test_it_understands_what_is_refused(make_service: Callable[[str], Any]) -> None:
    error = import_module("googleapiclient.errors").HttpError

    with pytest.raises(error, match="The API key is invalid") as caught:
        make_service("AIza").cse().list(q="bicycle", cx="any").execute()

    assert (caught.value.status_code, caught.value.error_details[0]["reason"]) == (400, "API_KEY_INVALID")
