"""Algolia's search API, as called by DocSearch's front end and Algolia's clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from werkzeug.test import TestResponse

from tests.callers import ApiClient, Tenant, page
from tests.gateway.callers import used_today

Ask = Callable[..., TestResponse]
HIERARCHY = [*(f"hierarchy.lvl{level}" for level in range(7)), "content", "type", "url"]
MANUAL = {
    "id": "install",
    "title": "Installing",
    "content": "How it begins.\nOn Debian\nInstall the package with apt.\nPitfalls & traps\nMind the locks of apt.",
    "url": "/manual/install",
    "section": "Manual",
    "lang": "en",
    "sections": [
        {"anchor": "debian", "title": "On Debian", "level": 2, "start": 15},
        {"anchor": "traps", "title": "Pitfalls & traps", "level": 3, "start": 54},
    ],
}


@pytest.fixture
def ask(tenant: Tenant) -> Ask:
    """Send searches as Algolia's browser clients do: the key in the URL, and JSON as plain text."""
    client = ApiClient(tenant.app)

    def call(*requests: dict[str, Any], kind: str = "search", **options: Any) -> TestResponse:
        address = {"x-algolia-api-key": tenant.tokens[kind], "x-algolia-application-id": "ANY"}
        body = json.dumps({"requests": [{"indexName": "any", **each} for each in requests]})
        return client.post(
            f"/1/indexes/*/queries?{urlencode(address)}", data=body, content_type="text/plain", **options
        )

    return call


def answered(response: TestResponse) -> dict[str, Any]:
    assert response.status_code == 200, response.get_json()
    answer: dict[str, Any] = response.get_json()["results"][0]
    return answer


def urls(response: TestResponse) -> list[str]:
    return [hit["url"].removeprefix("https://www.example.com") for hit in answered(response)["hits"]]


def test_each_matching_section_is_a_hit_with_its_parent_titles(tenant: Tenant, ask: Ask) -> None:
    tenant.index(MANUAL)

    answer = answered(ask({"query": "apt traps", "attributesToRetrieve": HIERARCHY, "highlightPreTag": "<mark>",
                           "highlightPostTag": "</mark>"}))  # fmt: skip
    first = answer["hits"][0]

    assert {name: answer[name] for name in ("nbHits", "page", "nbPages", "hitsPerPage", "query", "index")} == {
        "nbHits": 1, "page": 0, "nbPages": 1, "hitsPerPage": 20, "query": "apt traps", "index": "any",
    }  # fmt: skip
    assert answer["queryID"]
    assert {name: first[name] for name in ("objectID", "url", "url_without_anchor", "anchor", "type", "lang")} == {
        "objectID": "install#traps",
        "url": "https://www.example.com/manual/install#traps",
        "url_without_anchor": "https://www.example.com/manual/install",
        "anchor": "traps",
        "type": "lvl3",
        "lang": "en",
    }
    assert first["hierarchy"] == {
        "lvl0": "Manual", "lvl1": "Installing", "lvl2": "On Debian", "lvl3": "Pitfalls & traps",
        "lvl4": None, "lvl5": None, "lvl6": None,
    }  # fmt: skip
    assert first["_highlightResult"]["hierarchy"]["lvl3"] == {
        "value": "Pitfalls &amp; <mark>traps</mark>", "matchLevel": "full", "matchedWords": ["traps"],
    }  # fmt: skip
    assert first["_snippetResult"]["hierarchy"]["lvl1"]["matchLevel"] == "none"
    assert "locks of <mark>apt</mark>" in first["_snippetResult"]["content"]["value"]
    assert "locks of apt" in first["content"]


def test_page_with_a_matching_title_is_a_separate_hit(tenant: Tenant, ask: Ask) -> None:
    tenant.index(MANUAL)

    (hit,) = answered(ask({"query": "installing", "attributesToRetrieve": HIERARCHY}))["hits"]

    assert (hit["objectID"], hit["type"], hit["anchor"]) == ("install", "lvl1", None)


SHOE = {
    "id": "shoe", "title": "Red <b>shoe</b>", "content": f"A shoe for running. {'Very good. ' * 30}Shoes last.",
    "url": "/shoe", "author": "Ann", "name": "Shoe one", "price": 20, "tags": ["shoe", "red"],
    "sections": [{"anchor": "more", "title": "More", "level": 2, "start": 20}],
}  # fmt: skip


def test_hit_has_the_fields_of_its_page_and_highlights_of_its_texts(tenant: Tenant, ask: Ask) -> None:
    tenant.index(SHOE)

    (hit,) = answered(ask({"query": "shoe"}))["hits"]

    highlights = hit.pop("_highlightResult")
    excerpt = {"excerpt": ""} if "excerpt" in hit else {}
    assert hit == {
        **{name: SHOE[name] for name in ("title", "content", "author", "name", "price", "tags")}, **excerpt,
        "objectID": "shoe", "url": "https://www.example.com/shoe",
    }  # fmt: skip
    assert highlights["title"] == {
        "value": "Red &lt;b&gt;<em>shoe</em>&lt;/b&gt;", "matchLevel": "full", "matchedWords": ["shoe"],
    }  # fmt: skip
    assert highlights["name"]["value"] == "<em>Shoe</em> one"
    assert [each["value"] for each in highlights["tags"]] == ["<em>shoe</em>", "red"]
    assert highlights["author"] == {"value": "Ann", "matchLevel": "none", "matchedWords": []}
    assert highlights["content"]["value"].endswith("<em>Shoes</em> last.")
    assert "price" not in highlights


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({"attributesToRetrieve": ["title", "url", "nowhere"]}, {"title", "url"}),
        ({"attributesToRetrieve": "title,price"}, {"title", "price"}),
        ({"attributesToRetrieve": []}, set()),
        ({"attributesToRetrieve": ["*", "-content", "-excerpt"]}, {*SHOE, "objectID"} - {"id", "sections", "content"}),
        ({"attributesToRetrieve": ["objectID"]}, set()),
    ],
)
def test_hit_has_only_the_requested_fields(
    tenant: Tenant, ask: Ask, parameters: dict[str, Any], fields: set[str]
) -> None:
    tenant.index(SHOE)

    (hit,) = answered(ask({"query": "shoe", "attributesToHighlight": [], **parameters}))["hits"]

    assert hit.keys() == {"objectID", *fields}


def test_highlights_and_snippets_are_those_requested(tenant: Tenant, ask: Ask) -> None:
    tenant.index(SHOE)
    wish = {
        "query": "running shoe", "attributesToRetrieve": ["url"], "attributesToHighlight": ["name"],
        "attributesToSnippet": ["content:3"], "highlightPreTag": "__", "highlightPostTag": "--",
        "snippetEllipsisText": " [more]",
    }  # fmt: skip

    (hit,) = answered(ask(wish))["hits"]

    assert {name: each["value"] for name, each in hit["_highlightResult"].items()} == {"name": "__Shoe-- one"}
    snippet = hit["_snippetResult"]["content"]
    assert hit["_snippetResult"].keys() == {"content"}
    assert snippet["value"].endswith(" [more]")
    assert "__shoe--" in snippet["value"]
    assert len(snippet["value"]) < 60
    (every,) = answered(ask({**wish, "attributesToSnippet": ["*:2"], "attributesToHighlight": ["*"]}))["hits"]
    assert {"title", "content", "name", "tags"} <= every["_snippetResult"].keys() & every["_highlightResult"].keys()


def test_text_is_escaped_only_around_tags_of_html(tenant: Tenant, ask: Ask) -> None:
    """InstantSearch's tags are not HTML: it escapes the text, and then replaces the tags."""
    tenant.index(SHOE)
    placeholders = {"highlightPreTag": "__ais-highlight__", "highlightPostTag": "__/ais-highlight__"}

    (plain,) = answered(ask({"query": "shoe", **placeholders}))["hits"]
    (escaped,) = answered(ask({"query": "shoe", "highlightPreTag": "<i>", "highlightPostTag": "</i>"}))["hits"]

    assert plain["_highlightResult"]["title"]["value"] == "Red <b>__ais-highlight__shoe__/ais-highlight__</b>"
    assert escaped["_highlightResult"]["title"]["value"] == "Red &lt;b&gt;<i>shoe</i>&lt;/b&gt;"


@pytest.mark.parametrize(
    "wish",
    [
        {"attributesToRetrieve": ["hierarchy.lvl1"]},
        {"attributesToHighlight": ["hierarchy"]},
        {"attributesToSnippet": ["hierarchy.lvl2:10"]},
    ],
)
def test_request_for_title_levels_gets_docsearchs_hits(tenant: Tenant, ask: Ask, wish: dict[str, Any]) -> None:
    tenant.index(MANUAL)

    hits = answered(ask({"query": "apt", **wish}))["hits"]

    assert all(hit["hierarchy"]["lvl1"] == "Installing" for hit in hits)


@pytest.mark.parametrize("agent", ["Algolia for JavaScript (3.33.0); docsearch.js 2.6.3", "docsearch (5.0.0)"])
def test_docsearch_is_recognized_by_its_name(tenant: Tenant, agent: str) -> None:
    tenant.index(MANUAL)
    client, headers = ApiClient(tenant.app), {"X-Algolia-API-Key": tenant.tokens["public"]}
    path = "/1/indexes/any/query"

    in_query = client.post(f"{path}?{urlencode({'x-algolia-agent': agent})}", json={"query": "apt"}, headers=headers)
    in_header = client.post(path, json={"query": "apt"}, headers={**headers, "X-Algolia-Agent": agent})

    for response in (in_query, in_header):
        assert response.get_json()["hits"][0]["hierarchy"]["lvl0"] == "Manual"


def test_long_tags_count_toward_the_size_of_the_response(tenant: Tenant, ask: Ask) -> None:
    tenant.index(*[page(number, title="Shoe", content="shoe " * 400, url=f"/{number}") for number in range(100)])
    wish = {"query": "shoe", "hitsPerPage": 100, "highlightPreTag": "<" * 200, "highlightPostTag": ">" * 200}

    rejected = ask(wish)

    assert rejected.status_code == 400
    assert rejected.get_json()["message"].startswith("The response would contain more than")
    assert ask({**wish, "attributesToHighlight": ["title"]}).status_code == 200


def test_search_without_hierarchy_returns_one_hit_per_page(tenant: Tenant, ask: Ask) -> None:
    tenant.index(*[page(number, title="Harbour", content="ships", url=f"/{number}") for number in range(30)])

    first = answered(ask({"query": "harbour", "hitsPerPage": 20}))
    second = answered(ask({"query": "harbour", "hitsPerPage": 20, "page": 1}))

    assert (len(first["hits"]), len(second["hits"]), first["nbPages"]) == (20, 10, 2)
    assert not {hit["objectID"] for hit in first["hits"]} & {hit["objectID"] for hit in second["hits"]}


def test_page_of_section_hits_never_exceeds_hits_per_page(tenant: Tenant, ask: Ask) -> None:
    tenant.index(*[{**MANUAL, "id": str(number), "url": f"/{number}"} for number in range(9)])
    wish = {"query": "apt", "hitsPerPage": 8, "attributesToRetrieve": HIERARCHY}

    pages = [answered(ask({**wish, "page": at})) for at in range(6)]

    assert all(0 < len(answer["hits"]) <= 8 for answer in pages[:5])
    assert pages[0]["nbPages"] == 5
    assert {hit["objectID"].partition("#")[0] for answer in pages for hit in answer["hits"]} == set(map(str, range(9)))


def test_query_string_parameters_of_older_clients_are_accepted(tenant: Tenant, ask: Ask) -> None:
    tenant.index(MANUAL)
    params = urlencode({"query": "apt", "hitsPerPage": 4, "attributesToRetrieve": json.dumps(HIERARCHY),
                        "facetFilters": json.dumps([["lang:en", "lang:de"]]), "facets": "lang"})  # fmt: skip

    answer = answered(ask({"params": params}))

    assert (answer["params"], answer["hitsPerPage"], answer["facets"]) == (params, 4, {"lang": {"en": 1}})
    assert answer["hits"][0]["anchor"] in ("debian", "traps")


def test_single_index_search_has_its_own_url(tenant: Tenant) -> None:
    tenant.index(MANUAL)

    response = ApiClient(tenant.app).post(
        "/1/indexes/any/query", json={"query": "apt"}, headers={"X-Algolia-API-Key": tenant.tokens["public"]}
    )

    assert response.get_json()["index"] == "any"
    assert [hit["objectID"] for hit in response.get_json()["hits"]] == ["install"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"filters": "lang:en"}, ["/a"]),
        ({"filters": 'lang:"en"'}, ["/a"]),
        ({"filters": "language:en"}, ["/a"]),
        ({"filters": "NOT lang:en"}, ["/b", "/c"]),
        ({"filters": "lang:en OR (lang:de AND price <= 2)"}, ["/a", "/b"]),
        ({"filters": "price:2 TO 3"}, ["/b", "/c"]),
        ({"filters": "price = 3"}, ["/c"]),
        ({"filters": "nowhere:x"}, []),
        ({"filters": "NOT nowhere:x"}, ["/a", "/b", "/c"]),
        ({"filters": "objectID:page-a"}, ["/a"]),
        ({"facetFilters": ["lang:de", "price:2"]}, ["/b"]),
        ({"facetFilters": [["lang:en", "price:3"]]}, ["/a", "/c"]),
        ({"facetFilters": "lang:-en"}, ["/b", "/c"]),
        ({"numericFilters": ["price>1", "price<3"]}, ["/b"]),
    ],
)
def test_algolia_filters_select_hits(tenant: Tenant, ask: Ask, parameters: dict[str, Any], expected: list[str]) -> None:
    tenant.index(
        page("a", title="Harbour", url="/a", lang="en", price=1),
        page("b", title="Harbour", url="/b", lang="de", price=2),
        page("c", title="Harbour", url="/c", lang="de", price=3),
    )

    assert sorted(urls(ask({"query": "harbour", **parameters}))) == expected


@pytest.mark.parametrize("crawled", [False, True])
def test_imported_algolia_records_are_filtered_by_language(tenant: Tenant, ask: Ask, crawled: bool) -> None:
    """DocSearch's front end filters by ``language``, which records keep when they are imported; crawled pages have
    ``lang``. Facets have the requested names."""
    records = [
        {
            "objectID": language,
            "url": f"https://www.example.com/{language}",
            "hierarchy": {"lvl0": "Manual", "lvl1": "Harbour"},
            "language": language,
            "content": "Ships",
        }
        for language in ("en", "de")
    ]
    imported = tenant.private.post(f"/api/sites/{tenant.site_id}/import?format=algolia", json=records)
    assert imported.get_json()["indexed"] == 2, imported.get_json()
    if crawled:
        tenant.index(page("crawled", title="Harbour", url="/crawled", lang="en"))
    wish = {"query": "harbour", "facets": ["language", "nowhere"]}

    english = answered(ask({**wish, "facetFilters": ["language:en"]}))

    crawled_urls = ["https://www.example.com/crawled"] if crawled else []
    assert sorted(hit["url"] for hit in english["hits"]) == [*crawled_urls, "https://www.example.com/en"]
    assert english["facets"] == {"language": {"en": 1 + crawled}}
    assert answered(ask(wish))["facets"] == {"language": {"en": 1 + crawled, "de": 1}}
    others = urls(ask({"query": "harbour", "filters": "NOT language:en"}))
    assert others == ["/de"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "requests must be an array of 1 to 10 searches"),
        ([{}] * 11, "requests must be an array of 1 to 10 searches"),
        ([{"query": 5}], "query must be a string"),
        ([{"query": "x" * 600}], "query must have at most 512 bytes"),
        ([{"hitsPerPage": 101}], "hitsPerPage must be between 0 and 100"),
        ([{"filters": "lang"}], "filters cannot be read at 'lang'"),
        ([{"filters": "lang:en AND"}], "filters cannot be read at ''"),
        ([{"filters": "(lang:en"}], "filters cannot be read at ''"),
        ([{"filters": "(" * 100 + "lang:en" + ")" * 100}], None),
        ([{"facetFilters": "lang"}], "facetFilters cannot be read at 'lang'"),
        ([{"facetFilters": {"lang": "en"}}], "facetFilters must be a string or an array"),
    ],
)
def test_invalid_algolia_parameters_return_400_with_a_message(
    ask: Ask, requests: list[dict[str, Any]], message: str | None
) -> None:
    response = ask(*requests)

    assert (response.status_code, response.get_json()["status"]) == (400, 400)
    assert message in (None, response.get_json()["message"])


@pytest.mark.parametrize("body", ["", "[", "[]", "5", '{"requests": {}}', '{"requests": [5]}', "\udcff"])
def test_malformed_algolia_request_returns_400(tenant: Tenant, body: str) -> None:
    path = f"/1/indexes/*/queries?x-algolia-api-key={tenant.tokens['search']}"

    response = ApiClient(tenant.app).post(path, data=body.encode("utf-8", "surrogateescape"))

    assert response.status_code == 400


def test_invalid_keys_return_403_in_algolias_format(tenant: Tenant, ask: Ask) -> None:
    unknown = ApiClient(tenant.app).post("/1/indexes/a/query", json={}, headers={"X-Algolia-API-Key": "abc"})
    absent = ApiClient(tenant.app).post("/1/indexes/a/query", json={})

    assert [answer.status_code for answer in (unknown, absent, ask({}, kind="private"))] == [403, 403, 403]
    message = "The API key is invalid: keys of this service begin with svc_pub_, svc_srch_, or svc_prv_."
    assert unknown.get_json() == {"message": message, "status": 403}
    assert "X-Algolia-API-Key" in absent.get_json()["message"]


def test_keystrokes_of_one_query_are_charged_as_one_search(tenant: Tenant, ask: Ask) -> None:
    tenant.index(MANUAL)
    before = used_today(tenant)

    for typed in ("i", "in", "ins", "install"):
        assert ask({"query": typed}, kind="public").status_code == 200

    assert used_today(tenant) == before + 1


def test_each_distinct_query_of_an_algolia_request_is_charged(tenant: Tenant, ask: Ask) -> None:
    tenant.index(MANUAL)
    before = used_today(tenant)
    requests = [{"query": f"query {number}"} for number in range(10)]

    assert ask(*requests, kind="public").status_code == 200
    assert used_today(tenant) == before + 10
    assert ask(*[requests[0]] * 10).status_code == 200
    assert used_today(tenant) == before + 11


def test_preflight_from_any_origin_is_allowed(tenant: Tenant) -> None:
    response = tenant.app.test_client().options(
        "/1/indexes/*/queries",
        headers={"Origin": "https://a.example", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "x-algolia-api-key"},
    )  # fmt: skip

    assert response.status_code == 204
    assert "X-Algolia-API-Key" in response.headers["Access-Control-Allow-Headers"]
