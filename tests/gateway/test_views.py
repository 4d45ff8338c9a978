"""Searching through the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from app.clock import now
from app.services.analytics.clicks import read_query_id
from backends.errors import BackendUnavailable
from tests.api.test_suggestions import searched
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway, assert_engine_error


@pytest.fixture
def gateway(tenant: Tenant) -> Gateway:
    return Gateway(tenant)


def test_health_needs_no_authentication(tenant: Tenant) -> None:
    response = tenant.app.test_client().get("/engine/health")

    assert response.status_code == 200
    assert response.get_json() == {"status": "available"}


def test_client_info_returns_the_gateway_url_and_working_engine_keys(tenant: Tenant) -> None:
    tenant.index(page(1, title="Bicycle"))

    info = tenant.search.get("/v1/client-info").get_json()

    assert info["engine_host"] == "http://localhost/engine"
    for field in ("engine_key", "engine_public_key"):
        assert Gateway(tenant, "search", field).ids("bicycle") == ["page-1"]


def test_search_response_contains_hits_and_the_request_parameters(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Installing the bicycle pump"), page(2))

    answer = gateway.search("bicycle")

    assert [hit["id"] for hit in answer["hits"]] == ["page-1"]
    assert {name: answer[name] for name in ("query", "limit", "offset", "estimatedTotalHits")} == {
        "query": "bicycle", "limit": 20, "offset": 0, "estimatedTotalHits": 1,
    }  # fmt: skip
    assert answer["processingTimeMs"] >= 0
    assert set(answer["hits"][0]) == {"id", "title", "content", "url", "excerpt"}
    assert not {"facetDistribution", "facetStats", "totalHits"} & set(answer)


@pytest.mark.parametrize("q", [None, "", "   "])
def test_search_without_words_returns_every_document_newest_first(
    tenant: Tenant, gateway: Gateway, q: str | None
) -> None:
    tenant.index(page("old", date="2020-01-01"), page("new", date="2024-01-01"), page("undated"))

    answer = gateway.search(q)

    assert [hit["id"] for hit in answer["hits"]] == ["page-new", "page-old", "page-undated"]
    assert answer["query"] == (q or "")


def test_get_accepts_the_same_parameters_as_post(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(*[page(number, author="Ann" if number % 2 else "Bob") for number in range(6)])
    wish: dict[str, Any] = {
        "q": "page", "limit": 2, "offset": 1, "filter": "author = Ann", "facets": ["author"], "sort": ["title:desc"],
        "attributesToRetrieve": ["id", "title"], "attributesToHighlight": ["title"], "highlightPreTag": "<b>",
        "highlightPostTag": "</b>", "attributesToCrop": ["content:2"], "cropMarker": "...", "matchingStrategy": "all",
        "attributesToSearchOn": ["title"], "showMatchesPosition": True,
    }  # fmt: skip

    by_post = gateway.search(**wish)
    text = {
        name: ",".join(value) if isinstance(value, list) else "true" if value is True else str(value)
        for name, value in wish.items()
    }
    by_get = gateway.get(**text).get_json()

    for answer in (by_post, by_get):
        answer.pop("processingTimeMs")
        answer.pop("requestUid")
    assert by_get == by_post
    assert [hit["id"] for hit in by_post["hits"]] == ["page-3", "page-1"]


def test_filter_in_a_query_string_may_be_a_json_array(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, author="Ann"), page(2, author="Bob"), page(3, author="Cid"))

    answer = gateway.get(filter='[["author = Ann", "author = Cid"]]').get_json()

    assert sorted(hit["id"] for hit in answer["hits"]) == ["page-1", "page-3"]


# --- pagination


def test_page_or_hits_per_page_returns_page_counts(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(*[page(number) for number in range(45)])

    for wish, expected in (
        ({"page": 2}, {"page": 2, "hitsPerPage": 20, "totalPages": 3, "totalHits": 45}),
        ({"hitsPerPage": 10}, {"page": 1, "hitsPerPage": 10, "totalPages": 5, "totalHits": 45}),
        ({"hitsPerPage": 10, "page": 9}, {"page": 9, "hitsPerPage": 10, "totalPages": 5, "totalHits": 45}),
        ({"page": 1, "hitsPerPage": 15, "limit": 3, "offset": 40},
         {"page": 1, "hitsPerPage": 15, "totalPages": 3, "totalHits": 45}),
        ({"hitsPerPage": 0}, {"page": 1, "hitsPerPage": 0, "totalPages": 0, "totalHits": 45}),
        ({"page": 0}, {"page": 0, "hitsPerPage": 20, "totalPages": 3, "totalHits": 45}),
    ):  # fmt: skip
        answer = gateway.search("page", **wish)
        assert {name: answer[name] for name in expected} == expected
        assert not {"limit", "offset", "estimatedTotalHits"} & set(answer)

    assert gateway.search("page", hitsPerPage=0)["hits"] == []
    assert gateway.search("page", page=0)["hits"] == []


def test_pages_and_offsets_return_every_hit_once(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(*[page(number) for number in range(25)])
    everything = sorted(f"page-{number}" for number in range(25))

    by_page = [name for number in (1, 2, 3) for name in gateway.ids("page", page=number, hitsPerPage=10)]
    by_offset = [name for offset in (0, 10, 20) for name in gateway.ids("page", offset=offset, limit=10)]

    assert sorted(by_page) == sorted(by_offset) == everything
    assert by_page == by_offset


def test_limit_zero_returns_only_counts_and_facets(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, author="Ann"), page(2, author="Bob"))

    answer = gateway.search("page", limit=0, facets=["author"])

    assert answer["hits"] == []
    assert answer["estimatedTotalHits"] == 2
    assert answer["facetDistribution"] == {"author": {"Ann": 1, "Bob": 1}}


def test_limit_is_at_most_101(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(*[page(number) for number in range(103)])

    assert len(gateway.search(limit=101)["hits"]) == 101
    assert_engine_error(gateway.send({"limit": 102}), 400, "invalid_search_limit")


# --- filters, sort, facets


@pytest.mark.parametrize(
    ("wish", "found"),
    [
        ('author = "Ann"', "1 4"),
        ("author != Ann", "2 3"),
        ("price > 1 AND price <= 3", "2 3"),
        ("price 2 TO 3", "2 3"),
        ("author IN [Ann, Bob]", "1 2 4"),
        ("author NOT IN [Ann, Bob]", "3"),
        ("author EXISTS", "1 2 3 4"),
        ("tags EXISTS", "4"),
        ("NOT tags EXISTS AND (price = 1 OR price = 2)", "1 2"),
        ("date > 2024-01-01", "4"),
        ([], "1 2 3 4"),
        ("", "1 2 3 4"),
        (["", []], "1 2 3 4"),
        (['"author"="Ann"'], "1 4"),
        ([['"author"="Ann"', '"author"="Bob"']], "1 2 4"),
        (["price >= 2", ["author = Ann", "author = Bob"]], "2 4"),
        ([["author = Ann AND price = 4", "price = 3"]], "3 4"),
        (None, "1 2 3 4"),
    ],
)
def test_filters_are_expressions_or_nested_arrays(tenant: Tenant, gateway: Gateway, wish: Any, found: str) -> None:
    tenant.index(
        page(1, author="Ann", price=1), page(2, author="Bob", price=2), page(3, author="Cid", price=3),
        page(4, author="Ann", price=4, tags=["x"], date="2024-06-01"),
    )  # fmt: skip

    assert sorted(gateway.ids("page", filter=wish)) == [f"page-{number}" for number in found.split()]


def test_hits_are_sorted_by_several_fields(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, author="Bob", price=1), page(2, author="Ann", price=2), page(3, author="Ann", price=3))

    assert gateway.ids("page", sort=["author:asc", "price:desc"]) == ["page-3", "page-2", "page-1"]
    assert gateway.ids("page", sort=["price:desc", "price:asc"]) == ["page-3", "page-2", "page-1"]


def test_facets_return_value_counts_and_number_ranges(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, author="Ann", price=1.5), page(2, author="Ann", price=3), page(3, author="Bob"))

    named = gateway.search("page", facets=["author", "price", "author"])
    every = gateway.search("page", facets=["*"])
    alone = gateway.search("page", facets="*")
    none = gateway.search("page", facets=[])

    assert named["facetDistribution"] == {"author": {"Ann": 2, "Bob": 1}, "price": {"1.5": 1, "3": 1}}
    assert named["facetStats"] == {"price": {"min": 1.5, "max": 3}}
    assert set(every["facetDistribution"]) >= {"author", "price", "date"}
    assert alone["facetDistribution"] == every["facetDistribution"]
    assert (none["facetDistribution"], none["facetStats"]) == ({}, {})


def test_attributes_to_search_on_restricts_the_searched_fields(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle"), page(2, content="A bicycle."))

    assert sorted(gateway.ids("bicycle")) == ["page-1", "page-2"]
    assert gateway.ids("bicycle", attributesToSearchOn=["title"]) == ["page-1"]
    assert gateway.ids("bicycle", attributesToSearchOn=["content", "excerpt"]) == ["page-2"]
    assert sorted(gateway.ids("bicycle", attributesToSearchOn=["*"])) == ["page-1", "page-2"]


def test_matching_strategy_all_requires_every_word(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle pump"), page(2, title="Bicycle bell"))

    assert gateway.ids("bicycle pump", matchingStrategy="all") == ["page-1"]
    assert gateway.ids("bicycle pump", matchingStrategy="last")[0] == "page-1"


# --- formatting of hits


def test_attributes_to_retrieve_selects_the_fields_of_hits(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, author="Ann"))

    assert gateway.search(attributesToRetrieve=["title", "author", "nowhere"])["hits"] == [
        {"title": "Page 1", "author": "Ann"}
    ]
    assert gateway.search(attributesToRetrieve=[])["hits"] == [{}]
    assert gateway.search(attributesToRetrieve=["title", "*"])["hits"][0]["author"] == "Ann"


def test_formatted_contains_every_retrieved_field_as_text(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle", price=5, ratio=0.5, sold=True, tags=["bicycle", "b"], sizes=[1, 2]))

    (hit,) = gateway.search("bicycle", attributesToHighlight=["title"])["hits"]

    assert hit["_formatted"] == {
        "id": "page-1", "title": "<em>Bicycle</em>", "content": "The content of page 1.", "url": "/pages/1",
        "excerpt": "", "price": "5", "ratio": "0.5", "sold": "true", "tags": ["bicycle", "b"], "sizes": ["1", "2"],
    }  # fmt: skip
    assert hit["price"] == 5
    (hit,) = gateway.search("bicycle", attributesToHighlight=["*"], attributesToRetrieve=["tags"])["hits"]
    assert hit == {"tags": ["bicycle", "b"], "_formatted": {"tags": ["<em>bicycle</em>", "b"]}}


def test_formatted_also_contains_highlighted_fields_that_are_not_retrieved(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle"))

    (hit,) = gateway.search("bicycle", attributesToRetrieve=["id"], attributesToHighlight=["title"])["hits"]

    assert hit == {"id": "page-1", "_formatted": {"id": "page-1", "title": "<em>Bicycle</em>"}}


@pytest.mark.parametrize("wish", [{"attributesToHighlight": ["nowhere"]}, {"attributesToCrop": ["nowhere:3"]}])
def test_formatted_is_absent_if_no_document_has_the_requested_fields(
    tenant: Tenant, gateway: Gateway, wish: dict[str, Any]
) -> None:
    tenant.index(page(1, title="Bicycle"))

    assert "_formatted" not in gateway.search("bicycle", **wish)["hits"][0]
    assert "_formatted" in gateway.search("bicycle", attributesToHighlight=["nowhere", "excerpt"])["hits"][0]


def test_highlights_are_not_escaped_as_in_meilisearch(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="<b>Bicycle</b> & pump"))

    (hit,) = gateway.search(
        "bicycle", attributesToHighlight=["*"], highlightPreTag="__ais-highlight__",
        highlightPostTag="__/ais-highlight__",
    )["hits"]  # fmt: skip

    assert hit["_formatted"]["title"] == "<b>__ais-highlight__Bicycle__/ais-highlight__</b> & pump"


@pytest.mark.parametrize(
    ("crop", "expected"),
    [
        ({"attributesToCrop": ["content:4"]}, 4),
        ({"attributesToCrop": ["content"], "cropLength": 6}, 6),
        ({"attributesToCrop": ["content"]}, 10),
        ({"attributesToCrop": ["*:5"]}, 5),
        ({"attributesToCrop": ["*"], "cropLength": 3}, 3),
        ({"attributesToCrop": ["content:0"]}, 61),
    ],
)
@pytest.mark.parametrize("positions", [False, True])
def test_long_fields_are_cropped_around_the_match(
    tenant: Tenant, gateway: Gateway, crop: dict[str, Any], expected: int, positions: bool
) -> None:
    tenant.index(page(1, content="before " * 30 + "bicycle" + " after" * 30))

    (hit,) = gateway.search(
        "bicycle", attributesToHighlight=["content"], cropMarker="[cut]", showMatchesPosition=positions, **crop
    )["hits"]

    shown = hit["_formatted"]["content"]
    assert "<em>bicycle</em>" in shown
    assert len(shown.replace("[cut]", "").split()) == expected
    assert (shown.startswith("[cut]"), shown.endswith("[cut]")) == (expected < 61, expected < 61)
    assert hit["content"].startswith("before before")


def test_match_positions_are_byte_offsets_in_the_whole_field(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Čeněk’s bicycle", content="Nothing.", tags=["none", "a bicycle"]))

    (hit,) = gateway.search("bicycle", showMatchesPosition=True)["hits"]

    assert hit["_matchesPosition"] == {
        "title": [{"start": len("Čeněk’s ".encode()), "length": 7}],
        "tags": [{"start": 2, "length": 7, "indices": [1]}],
    }
    assert "_formatted" not in hit
    assert gateway.search(showMatchesPosition=True)["hits"][0]["_matchesPosition"] == {}


def test_markup_in_a_document_is_not_treated_as_a_match(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="<em>not</em> a bicycle <\u200b>"))

    (hit,) = gateway.search(
        "bicycle", attributesToHighlight=["*"], highlightPreTag="[", highlightPostTag="]", showMatchesPosition=True
    )["hits"]

    assert hit["_formatted"]["title"] == "<em>not</em> a [bicycle] <\u200b>"
    assert hit["_matchesPosition"] == {"title": [{"start": 15, "length": 7}]}


# --- multi-search and facet search


def test_multi_search_returns_results_in_request_order(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle"), page(2, title="Car"))

    response = gateway.multi({"q": "car"}, {"q": "bicycle", "page": 1}, {"q": "plane"})

    assert response.status_code == 200
    first, second, third = response.get_json()["results"]
    assert [hit["id"] for hit in first["hits"]] == ["page-2"]
    assert second["totalHits"] == 1
    assert third["hits"] == []
    assert {result["indexUid"] for result in (first, second, third)} == {gateway.index}


def test_typo_in_a_section_title_does_not_fail_other_searches(tenant: Tenant, gateway: Gateway) -> None:
    section = {"anchor": "b", "title": "Watermelon", "level": 2, "start": 0}
    tenant.index(page(1, title="Fruit", sections=[section]), page(2, title="Car"))

    response = gateway.multi({"q": "xytermelon"}, {"q": "car"})

    assert [[hit["id"] for hit in result["hits"]] for result in response.get_json()["results"]] == [
        ["page-1"],
        ["page-2"],
    ]


def test_multi_search_without_queries_returns_an_empty_list(gateway: Gateway) -> None:
    assert gateway.multi().get_json() == {"results": []}


def test_federation_may_be_null(gateway: Gateway) -> None:
    queries = [{"indexUid": gateway.index, "q": "car"}]
    answer = gateway.client.post("/engine/multi-search", json={"queries": queries, "federation": None})
    assert [result["query"] for result in answer.get_json()["results"]] == ["car"]


def test_invalid_query_fails_the_whole_multi_search_and_is_named(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1))

    for bad, code in (
        ({"filter": "author ="}, "invalid_search_filter"),
        ({"filter": "nowhere = 1"}, "invalid_search_filter"),
        ({"limit": -1}, "invalid_search_limit"),
        ({"wrong": 1}, "bad_request"),
    ):
        body = assert_engine_error(gateway.multi({"q": "page"}, {"q": "page", **bad}), 400, code)
        assert "queries[1]" in body["message"]


def test_facet_search_matches_the_beginnings_of_words_in_values(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(
        page(1, author="Zoë Lee"), page(2, author="Ann Zola"), page(3, author="Ann Zola"), page(4, author="Bob"),
        page(5),
    )  # fmt: skip

    def found(facet_query: str | None, **body: Any) -> list[tuple[str, int]]:
        response = gateway.facet(facetName="author", facetQuery=facet_query, **body)
        assert response.status_code == 200, response.get_json()
        assert response.get_json()["facetQuery"] == facet_query
        return [(hit["value"], hit["count"]) for hit in response.get_json()["facetHits"]]

    assert found("zo") == [("Ann Zola", 2), ("Zoë Lee", 1)]
    assert found("ZOE L") == [("Zoë Lee", 1)]
    assert found("ola") == []
    assert found("!?") == []
    everything = [("Ann Zola", 2), ("Bob", 1), ("Zoë Lee", 1)]
    assert found(None) == found("") == everything
    assert found(None, filter="author != Bob") == [("Ann Zola", 2), ("Zoë Lee", 1)]
    assert found("zo", q="page", filter=["id = page-2"]) == [("Ann Zola", 1)]
    assert found("zo", q="page 2", matchingStrategy="all") == [("Ann Zola", 1)]
    assert found("zo", limit="ignored", wrong=1, facets=5) == [("Ann Zola", 2), ("Zoë Lee", 1)]


def test_facet_search_finds_rare_values_and_returns_at_most_100(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(*[page(number, author=f"Writer {number:03}") for number in range(250)], page("rare", author="Zoë"))

    assert gateway.facet(facetName="author", facetQuery="zoe").get_json()["facetHits"] == [{"value": "Zoë", "count": 1}]
    assert len(gateway.facet(facetName="author", facetQuery="writer").get_json()["facetHits"]) == 100
    assert len(gateway.facet(facetName="author").get_json()["facetHits"]) == 100


def test_invalid_facet_search_parameters_are_rejected(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1))

    for name in ("nowhere", "content", "*"):
        assert_engine_error(gateway.facet(facetName=name), 400, "invalid_facet_search_facet_name")
    assert_engine_error(gateway.facet(), 400, "missing_facet_search_facet_name")
    assert_engine_error(gateway.facet(facetName=5), 400, "invalid_facet_search_facet_name")
    assert_engine_error(gateway.facet(facetName="author", facetQuery=5), 400, "invalid_facet_search_facet_query")
    assert_engine_error(gateway.facet(facetName="author", filter="author ="), 400, "invalid_search_filter")


# --- metadata


def query_of(tenant: Tenant, metadata: dict[str, str]) -> str:
    secret = tenant.app.extensions["runtime"].settings.secret_key
    return read_query_id(secret, tenant.site_id, metadata["queryUid"], now())


@pytest.mark.parametrize(("value", "told"), [
    ("true", True), ("TRUE", True), ("1", True), ("false", False), ("yes", False), ("", False), (None, False),
])  # fmt: skip
def test_search_metadata_is_returned_only_on_request(
    tenant: Tenant, gateway: Gateway, value: str | None, told: bool
) -> None:
    headers = {} if value is None else {"Meili-Include-Metadata": value}
    path = f"/engine/indexes/{gateway.index}/search"
    for response in (
        gateway.send({"q": "Bicycle  pump"}, headers=headers),
        gateway.client.get(f"{path}?q=Bicycle%20%20pump", headers=headers),
    ):
        metadata = response.get_json().get("metadata")
        assert (metadata is not None) is told
        if metadata is not None:
            expected = {
                "query": "Bicycle  pump", "indexUid": gateway.index, "primaryKey": "id", "matched": "some",
                "corrected_query": None,
            }  # fmt: skip
            assert metadata == {**expected, "queryUid": metadata["queryUid"]}
            assert query_of(tenant, metadata) == "bicycle pump"


def test_metadata_reports_matched_words_and_corrections(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle"), page(2, title="Pump"))

    for q, told in (
        ("bicycle", ("all", None)),
        ("bicycel", ("corrected", "bicycle")),
        ("bicycle pump", ("some", None)),
    ):
        metadata = gateway.send({"q": q}, headers={"Meili-Include-Metadata": "true"}).get_json()["metadata"]
        assert (metadata["matched"], metadata["corrected_query"]) == told


def test_each_query_of_a_multi_search_has_its_own_metadata(tenant: Tenant, gateway: Gateway) -> None:
    queries = [{"indexUid": gateway.index, "q": q} for q in ("bicycle", "pump", "bicycle")]
    response = gateway.client.post(
        "/engine/multi-search", json={"queries": queries}, headers={"Meili-Include-Metadata": "true"}
    )

    told = [result["metadata"] for result in response.get_json()["results"]]
    assert [query_of(tenant, each) for each in told] == ["bicycle", "pump", "bicycle"]
    assert len({each["queryUid"] for each in told}) == 3
    assert all("metadata" not in result for result in gateway.multi(*queries).get_json()["results"])


def test_click_is_accepted_with_the_query_uid_of_the_gateway(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Bicycle"))
    answer = gateway.send({"q": "bicycle"}, headers={"Meili-Include-Metadata": "true"}).get_json()

    click = {"query_id": answer["metadata"]["queryUid"], "id": answer["hits"][0]["id"]}
    assert gateway.client.post("/api/v1/click", json=click).status_code == 200
    tenant.app.extensions["runtime"].events.flush()
    assert tenant.private.get("/api/analytics?period=7d").get_json()["clicks"] == 1


# --- suggestions


def suggest(gateway: Gateway, **wanted: Any) -> list[dict[str, Any]]:
    """Request suggestions by POST and by GET, and assert that both responses are equal."""
    by_body = gateway.client.post("/engine/suggest", json=wanted)
    by_query = gateway.client.get("/engine/suggest", query_string=wanted)
    assert (by_body.status_code, by_query.status_code) == (200, 200), (by_body.get_json(), by_query.get_json())
    assert by_body.get_json() == by_query.get_json()
    found: list[dict[str, Any]] = by_body.get_json()["suggestions"]
    return found


def test_suggestions_come_from_the_site_of_the_engine_key(tenant: Tenant, stranger: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Opening of the bridge"))
    searched(tenant, **{"opening hours": 3, "open salaries": 2})
    stranger.index(page(1, title="Open secrets"))
    searched(stranger, **{"open secrets": 9})

    assert suggest(gateway, q="open") == [
        {"text": "opening hours", "kind": "query"},
        {"text": "Opening of the bridge", "kind": "title", "url": "/pages/1"},
    ]
    assert suggest(gateway, q="open", limit=1) == suggest(gateway) == [{"text": "opening hours", "kind": "query"}]


def test_search_returns_the_suggestions_for_its_text_if_requested(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Opening of the bridge", section="news"), page(2, title="Open day"))
    searched(tenant, **{"opening hours": 3})

    both = gateway.search("open", suggestions=4)
    assert both["suggestions"] == suggest(gateway, q="open", limit=4)
    assert len(both["hits"]) == 2
    within = gateway.search("open", suggestions=4, filter="section = news")
    assert [each["text"] for each in within["suggestions"]] == ["opening hours", "Opening of the bridge"]
    assert gateway.search(limit=0, suggestions=4)["suggestions"] == suggest(gateway, limit=4)
    assert "suggestions" not in gateway.search("open")


def test_search_has_hits_even_if_suggestions_are_unavailable(
    tenant: Tenant, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1, title="Opening hours"))

    def fail(*arguments: Any) -> None:
        raise BackendUnavailable("The search engine does not respond.")

    monkeypatch.setattr(tenant.app.extensions["runtime"].suggester, "suggest", fail)
    answer = gateway.search("open", suggestions=4)
    assert len(answer["hits"]) == 1
    assert "suggestions" not in answer


@pytest.mark.parametrize(("wanted", "code"), [
    ({"q": "x" * 513}, "invalid_search_q"), ({"q": "a\0b"}, "invalid_search_q"), ({"limit": 0}, "invalid_search_limit"),
    ({"limit": 21}, "invalid_search_limit"), ({"limit": "many"}, "invalid_search_limit"), ({"wrong": 1}, "bad_request"),
])  # fmt: skip
def test_invalid_suggestion_parameters_are_rejected(gateway: Gateway, wanted: dict[str, Any], code: str) -> None:
    assert_engine_error(gateway.client.post("/engine/suggest", json=wanted), 400, code)
    assert_engine_error(gateway.client.get("/engine/suggest", query_string=wanted), 400, code)


def test_suggestions_require_a_public_or_engine_key_of_an_active_site(tenant: Tenant, gateway: Gateway) -> None:
    assert_engine_error(gateway.nobody.get("/engine/suggest"), 401, "missing_authorization_header")
    assert_engine_error(tenant.search.get("/engine/suggest"), 403, "invalid_api_key")
    for client in (tenant.public, gateway.client):
        assert client.get("/engine/suggest").status_code == 200
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    for client in (tenant.public, gateway.client):
        assert_engine_error(client.get("/engine/suggest"), 403, "invalid_api_key")
