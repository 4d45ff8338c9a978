"""Google's Custom Search JSON API, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import time_machine
from werkzeug.test import TestResponse

from app.compat.custom_search_queries import read_narrowing
from app.services.access.credentials import SiteRecord
from tests.callers import ApiClient, Tenant, page
from tests.gateway.callers import used_today

Ask = Callable[..., TestResponse]


@pytest.fixture
def ask(tenant: Tenant) -> Ask:
    """Search with the search key in ``key``, as Google's clients send it."""
    client = ApiClient(tenant.app)

    def call(q: str | None = "harbour", **parameters: Any) -> TestResponse:
        sent = {"key": tenant.tokens["search"], "cx": "017576662512468239146:omuauf_lfve", "q": q, **parameters}
        return client.get("/customsearch/v1", query_string={name: value for name, value in sent.items() if value})

    return call


def found(response: TestResponse) -> list[str]:
    assert response.status_code == 200, response.get_json()
    return [item["link"].rsplit("/", 1)[-1] for item in response.get_json().get("items", [])]


def test_response_has_every_field_documented_by_google(tenant: Tenant, ask: Ask) -> None:
    tenant.index(
        {
            "id": "a", "title": "Harbour <tours>", "content": "Every tour of the harbour begins here & ends there.",
            "url": "/tours/a", "date": "2024-05-01", "section": "visit", "image": "/ship.png",
        },
        *[page(number, title=f"The harbour {number}") for number in range(30)],
    )  # fmt: skip

    answer = ask("harbour tours", num=1, start=2).get_json()

    assert answer["kind"] == "customsearch#search"
    assert answer["url"]["type"] == "application/json"
    assert answer["url"]["template"].startswith("http://localhost/customsearch/v1?q={searchTerms}&num={count?}")
    request = answer["queries"]["request"][0]
    assert request | {"totalResults": ""} == {
        "title": "Site Search - harbour tours", "totalResults": "", "searchTerms": "harbour tours", "count": 1,
        "startIndex": 2, "inputEncoding": "utf8", "outputEncoding": "utf8", "safe": "off",
        "cx": "017576662512468239146:omuauf_lfve",
    }  # fmt: skip
    assert (answer["queries"]["previousPage"][0]["startIndex"], answer["queries"]["nextPage"][0]["startIndex"]) == (
        1,
        3,
    )
    assert answer["context"] == {"title": "www.example.com"}
    information = answer["searchInformation"]
    assert information["totalResults"] == request["totalResults"] == information["formattedTotalResults"]
    assert information["formattedSearchTime"] == f"{information['searchTime']:.2f}"

    first = ask("harbour tours", num=1).get_json()["items"][0]

    assert first == {
        "kind": "customsearch#result",
        "title": "Harbour <tours>",
        "htmlTitle": "<b>Harbour</b> &lt;<b>tours</b>&gt;",
        "link": "https://www.example.com/tours/a",
        "displayLink": "www.example.com",
        "snippet": "Every tour of the harbour begins here & ends there.",
        "htmlSnippet": "Every <b>tour</b> of the <b>harbour</b> begins here &amp; ends there.",
        "formattedUrl": "https://www.example.com/tours/a",
        "htmlFormattedUrl": "https://www.example.com/tours/a",
        "pagemap": {
            "metatags": [{"date": "2024-05-01", "section": "visit", "image": "/ship.png"}],
            "cse_image": [{"src": "https://www.example.com/ship.png"}],
            "cse_thumbnail": [{"src": "https://www.example.com/ship.png"}],
        },
    }


def test_response_without_results_has_no_items_and_no_next_page(tenant: Tenant, ask: Ask) -> None:
    tenant.index(page(1))

    answer = ask("zzzz").get_json()

    assert "items" not in answer
    assert answer["searchInformation"]["totalResults"] == "0"
    assert list(answer["queries"]) == ["request"]


def test_spelling_contains_the_corrected_query(tenant: Tenant, ask: Ask) -> None:
    tenant.index(page(1, title="The lighthouse"))

    assert ask("lighthuose").get_json()["spelling"] == {
        "correctedQuery": "lighthouse", "htmlCorrectedQuery": "<b><i>lighthouse</i></b>",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {"a", "b", "c"}),
        ({"exactTerms": "old harbour"}, {"b"}),
        ({"excludeTerms": "ferry"}, {"a", "b"}),
        ({"dateRestrict": "d5"}, {"c"}),
        ({"dateRestrict": "w1"}, {"c"}),
        ({"dateRestrict": "m2"}, {"b", "c"}),
        ({"dateRestrict": "y[2]"}, {"a", "b", "c"}),
        ({"sort": "date:r:20240101:20240229"}, {"a", "b"}),
        ({"sort": "date:r::20240115"}, {"a"}),
        ({"fileType": "pdf"}, {"b"}),
        ({"fileType": "html"}, {"a", "c"}),
        ({"siteSearch": "www.example.com"}, {"a", "b", "c"}),
        ({"siteSearch": "example.com", "siteSearchFilter": "e"}, set()),
        ({"siteSearch": "elsewhere.example"}, set()),
        ({"siteSearch": "elsewhere.example", "siteSearchFilter": "e"}, {"a", "b", "c"}),
        ({"lr": "lang_de"}, {"a"}),
        ({"lr": "lang_de|lang_fr"}, {"a", "c"}),
    ],
)
@time_machine.travel("2024-03-20T12:00:00Z", tick=False)
def test_restricting_parameters_select_results(
    tenant: Tenant, ask: Ask, parameters: dict[str, str], expected: set[str]
) -> None:
    tenant.index(
        page("a", title="The harbour", url="/a", date="2024-01-10", lang="de"),
        page("b", title="The old harbour", url="/b", date="2024-02-10", type="pdf", lang="en"),
        page("c", title="A ferry in the harbour", url="/c", date="2024-03-18", lang="fr"),
    )

    assert set(found(ask(**parameters))) == expected


def test_results_are_sorted_by_date(tenant: Tenant, ask: Ask) -> None:
    tenant.index(*[page(day, title="The harbour", url=f"/{day}", date=f"2024-01-0{day}") for day in (2, 1, 3)])

    assert found(ask(sort="date")) == ["3", "2", "1"]
    assert found(ask(sort="date:a")) == ["1", "2", "3"]


def test_additional_query_terms_are_searched_too(tenant: Tenant, ask: Ask) -> None:
    tenant.index(*[page(name, title=f"The harbour {name}", url=f"/{name}") for name in ("walk", "ferry", "tour")])

    assert found(ask(hq="ferry"))[0] == "ferry"
    assert set(found(ask(None, orTerms="tour walk"))) == {"tour", "walk"}


@pytest.fixture
def manual(tenant: Tenant) -> list[str]:
    """300 pages about the harbour, of which every tenth is below /docs, and every third is about ferries or tours."""
    kinds = ("ferry", "tour", *["walk"] * 4)
    pages = [
        page(
            number,
            title=f"The harbour {number}",
            content=f"About a {kinds[number % 6]}.",
            url=f"/docs/{number}" if number % 10 == 0 else f"/news/{number}",
            date=f"2024-01-01T{number // 60:02}:{number % 60:02}:00Z",
        )
        for number in range(300)
    ]
    tenant.index(*pages)
    return [item["url"] for item in pages]


def every(ask: Ask, **parameters: Any) -> tuple[list[str], int]:
    """Return all available results of a query, page by page, and the last page's total."""
    links: list[str] = []
    total = 0
    for start in range(1, 100, 10):
        answer = ask(start=start, **parameters).get_json()
        links += [item["link"].removeprefix("https://www.example.com") for item in answer.get("items", [])]
        total = int(answer["searchInformation"]["totalResults"])
        if "nextPage" not in answer["queries"]:
            break
    return links, total


@pytest.mark.parametrize("order", ["", "date"])
def test_site_search_restricts_results_to_a_path_prefix(ask: Ask, manual: list[str], order: str) -> None:
    wanted = [url for url in manual if url.startswith("/docs/")]
    links, total = every(ask, siteSearch="www.example.com/docs/*", sort=order)
    assert sorted(links) == sorted(wanted)
    assert total == 30
    if order:
        assert links == wanted[::-1]
    item = ask(siteSearch="https://example.com/docs", num=1).get_json()["items"][0]
    assert item["htmlTitle"].startswith("The <b>harbour</b>")
    others, _ = every(ask, siteSearch="example.com/docs", siteSearchFilter="e")
    assert len(others) == 100
    assert not any(url.startswith("/docs/") for url in others)
    assert found(ask(siteSearch="elsewhere.example/docs")) == []


def test_stars_in_site_search_match_only_themselves(ask: Ask, manual: list[str]) -> None:
    parameters = {"siteSearch": "example.com/d*s/*a*b", "siteSearchFilter": "i"}
    none = dict.fromkeys(("q", "hq", "exactTerms", "orTerms"), "")

    narrowing = read_narrowing(parameters | none, cast(SiteRecord, None))

    assert narrowing is not None
    assert [boost.path for boost in narrowing.boosts] == ["/d*"]
    assert found(ask(siteSearch="www.example.com/d*s")) == []


def test_every_result_contains_one_of_the_or_terms(ask: Ask, manual: list[str]) -> None:
    links, total = every(ask, orTerms="ferry tour ferry")
    numbers = [int(url.rpartition("/")[2]) for url in links]
    assert len(numbers) == 100
    assert {number % 6 for number in numbers} == {0, 1}
    assert 80 <= total <= 120
    assert found(ask(orTerms="zeppelin submarine")) == []
    narrowed, _ = every(ask, orTerms="ferry", siteSearch="example.com/docs")
    assert sorted(narrowed) == sorted(url for url in manual if url.startswith("/docs/") and int(url[6:]) % 6 == 0)


def test_restricted_search_is_charged_and_logged_as_one_search(tenant: Tenant, ask: Ask, manual: list[str]) -> None:
    before = used_today(tenant)
    ask(orTerms="ferry")
    assert used_today(tenant) == before + 1
    tenant.app.extensions["runtime"].events.flush()
    analytics = tenant.browser.get(f"/api/analytics?site_id={tenant.site_id}").get_json()
    assert [(each["query"], each["count"]) for each in analytics["top_queries"]] == [("harbour", 1)]


def test_image_that_is_not_a_valid_url_is_omitted(tenant: Tenant, ask: Ask) -> None:
    tenant.index(page(1, title="The harbour", image="http://["))
    assert ask().get_json()["items"][0]["pagemap"] == {"metatags": [{"image": "http://["}]}


def test_file_result_has_its_mime_type_and_format(tenant: Tenant, ask: Ask) -> None:
    tenant.index(page(1, title="The harbour", type="pdf"))

    item = ask().get_json()["items"][0]

    assert (item["mime"], item["fileFormat"]) == ("application/pdf", "pdf")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"q": None}, "q is required"),
        ({"num": 11}, "num must be between 1 and 10"),
        ({"start": 95}, "start and num exceed the 100 available results"),
        ({"sort": "date!"}, "sort must be like date, date:a, or date:r:20240101:20240630"),
        ({"dateRestrict": "5d"}, "dateRestrict must be d, w, m, or y followed by a number, such as d5"),
        ({"dateRestrict": "y9999"}, "dateRestrict begins before the first year"),
        ({"siteSearch": "["}, "siteSearch must be a host or the beginning of a URL, such as example.com/docs"),
        ({"siteSearch": "/docs"}, "siteSearch must be a host or the beginning of a URL, such as example.com/docs"),
        ({"q": "x" * 250, "orTerms": "y" * 260}, "q and the other terms must have at most 512 bytes together"),
        ({"callback": "show"}, "callback is not supported"),
        ({"searchType": "image"}, "searchType is not supported"),
        ({"q": "x" * 300, "hq": "y" * 300}, "q and the other terms must have at most 512 bytes together"),
    ],
)
def test_invalid_parameters_return_400_in_googles_format(ask: Ask, parameters: dict[str, Any], message: str) -> None:
    response = ask(**parameters)

    assert response.status_code == 400
    assert response.get_json() == {
        "error": {
            "code": 400,
            "message": message,
            "errors": [{"message": message, "domain": "global", "reason": "badRequest"}],
            "status": "INVALID_ARGUMENT",
        }
    }


def test_invalid_keys_are_rejected_in_googles_format(tenant: Tenant, ask: Ask) -> None:
    absent, unknown, private = ask(key=None), ask(key="AIza"), ask(key=tenant.tokens["private"])

    assert [(answer.status_code, answer.get_json()["error"]["status"]) for answer in (absent, unknown, private)] == [
        (403, "PERMISSION_DENIED"), (400, "INVALID_ARGUMENT"), (403, "PERMISSION_DENIED"),
    ]  # fmt: skip
    assert absent.get_json()["error"]["message"] == "Send a public or search key of the site as the parameter key."
    assert unknown.get_json()["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_key_in_the_authorization_header_is_rejected(tenant: Tenant) -> None:
    assert tenant.search.get("/customsearch/v1?q=a").status_code == 403


def test_public_key_works_only_from_its_allowed_origins(tenant: Tenant, ask: Ask) -> None:
    tenant.index(page(1, title="The harbour"))
    key = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}"
    changed = tenant.browser.call("PATCH", key, json={"allowed_origins": ["https://www.example.com"]})
    assert changed.status_code == 200, changed.get_json()
    client = ApiClient(tenant.app)
    path = f"/customsearch/v1?q=harbour&key={tenant.tokens['public']}"

    own = client.get(path, headers={"Origin": "https://www.example.com"})
    foreign = client.get(path, headers={"Origin": "https://elsewhere.example"})

    assert own.headers["Access-Control-Allow-Origin"] == "*"
    assert len(found(own)) == 1
    assert (foreign.status_code, foreign.get_json()["error"]["code"]) == (403, 403)


def test_searches_are_charged_and_return_429_when_the_daily_quota_is_exhausted(tenant: Tenant, ask: Ask) -> None:
    tenant.set_plan("free", searches_per_day=1)
    tenant.index(page(1, title="The harbour"))

    first, second = ask(), ask()

    assert first.status_code == 200
    assert second.status_code == 429
    assert second.get_json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert int(second.headers["Retry-After"]) > 0
