"""Google's own client, whose endpoint is the only thing that is changed, searches with Custom Search."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

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


def test_it_turns_pages_until_there_is_none(customer: Customer) -> None:
    discovery = import_module("googleapiclient.discovery")
    service = discovery.build(
        "customsearch",
        "v1",
        developerKey=customer.tokens["search"],
        client_options={"api_endpoint": customer.server.base_url},
        static_discovery=True,
    )
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


def test_it_understands_what_is_refused(customer: Customer) -> None:
    discovery, errors = import_module("googleapiclient.discovery"), import_module("googleapiclient.errors")
    options = {"api_endpoint": customer.server.base_url}
    service = discovery.build("customsearch", "v1", developerKey="AIza", client_options=options, static_discovery=True)

    with pytest.raises(errors.HttpError, match="The API key is invalid") as caught:
        service.cse().list(q="bicycle", cx="any").execute()

    assert (caught.value.status_code, caught.value.error_details[0]["reason"]) == (400, "API_KEY_INVALID")
