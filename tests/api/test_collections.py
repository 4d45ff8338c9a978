"""Collections: one search over several sites."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from app.models import EngineTask, SearchClick, SearchEvent, Site
from app.services.search.merging import MAX_MERGED
from tests.callers import PASSWORD, ApiClient, Tenant, page, register_tenant
from tests.responses import assert_error


@dataclass
class Collection:
    """A collection of a tenant's site and a second one, with a key of each type."""

    tenant: Tenant
    id: int
    second_id: int
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, kind: str = "search") -> ApiClient:
        return ApiClient(self.tenant.app, self.tokens[kind])

    def index_second(self, *documents: dict[str, Any]) -> None:
        body = {"documents": list(documents)}
        response = self.tenant.private.post(f"/api/v1/index/bulk?site_id={self.second_id}", json=body)
        assert response.status_code == 200, response.get_json()

    def find(self, q: str, **parameters: Any) -> dict[str, Any]:
        response = self.client().get("/v1/search", query_string={"q": q, **parameters})
        assert response.status_code == 200, response.get_json()
        results: dict[str, Any] = response.get_json()["results"]
        return results

    def found(self, q: str, **parameters: Any) -> list[tuple[str, str]]:
        return [(hit["site"]["label"], hit["id"]) for hit in self.find(q, **parameters)["hits"]]

    def patch(self, **changes: Any) -> None:
        response = self.tenant.browser.call("PATCH", f"/api/collections/{self.id}", json=changes)
        assert response.status_code == 200, response.get_json()

    def sites(self, **second: Any) -> list[dict[str, Any]]:
        return [{"site_id": self.tenant.site_id}, {"site_id": self.second_id, "label": "Manual", **second}]


@pytest.fixture
def collection(tenant: Tenant) -> Collection:
    site = tenant.browser.post("/sites", json={"name": "Handbook", "url": "https://docs.example.com/"}).get_json()[
        "site"
    ]
    sites = [{"site_id": tenant.site_id}, {"site_id": site["id"], "label": "Manual"}]
    response = tenant.browser.post("/api/collections", json={"name": "Everything", "sites": sites})
    assert response.status_code == 201, response.get_json()
    made = Collection(tenant, response.get_json()["collection"]["id"], site["id"])
    for kind in ("public", "search"):
        response = tenant.browser.post(f"/api/collections/{made.id}/keys", json={"name": kind, "type": kind})
        assert response.status_code == 201, response.get_json()
        made.tokens[kind] = response.get_json()["api_key"]
    return made


def test_collection_is_created_changed_listed_and_deleted(collection: Collection) -> None:
    browser = collection.tenant.browser
    path = f"/api/collections/{collection.id}"
    shown = browser.get(path).get_json()["collection"]
    assert (shown["name"], shown["problems"]) == ("Everything", [])
    assert shown["sites"] == [
        {"site_id": collection.tenant.site_id, "weight": 1.0, "filters": "", "label": ""},
        {"site_id": collection.second_id, "weight": 1.0, "filters": "", "label": "Manual"},
    ]
    collection.patch(name="All", sites=collection.sites(weight=2, filters="author = Ann"))
    (listed,) = browser.get("/api/collections").get_json()["collections"]
    assert (listed["name"], listed["sites"][1]["weight"]) == ("All", 2.0)

    assert browser.delete(path).status_code == 200
    assert_error(browser.get(path), 404, "collection_not_found")
    assert_error(collection.client().get("/v1/search?q=x"), 401, "invalid_api_key")
    assert browser.get("/sites").get_json()["total"] == 2


def test_collection_is_removed_with_its_account(collection: Collection) -> None:
    tenant = collection.tenant
    response = tenant.browser.delete("/profile", json={"password": PASSWORD})
    assert response.status_code == 200, response.get_json()
    runtime = tenant.app.extensions["runtime"]
    runtime.run_engine_tasks()
    with runtime.database.read() as session:
        assert session.scalars(select(Site.id)).all() == []
        assert session.scalars(select(EngineTask)).all() == []


def test_collection_works_without_the_engine_that_it_was_created_with(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle"))
    with collection.tenant.app.extensions["runtime"].database.write() as session:
        session.get_one(Site, collection.id).engine = "typesense:gone"
    assert collection.client("public").get("/v1/client-info").status_code == 200
    assert collection.found("kettle") == [("Pages", "page-1")]


def test_collection_has_no_index_to_rebuild(collection: Collection) -> None:
    collection.tenant.index(page(1))
    runner = collection.tenant.app.test_cli_runner()
    assert runner.invoke(args=["search", "reindex"]).exit_code == 0
    result = runner.invoke(args=["search", "reindex", "--site", str(collection.id)])
    assert result.exit_code == 1
    assert "does not exist" in result.output


def test_collection_is_not_a_site(collection: Collection) -> None:
    browser = collection.tenant.browser
    assert {site["id"] for site in browser.get("/sites").get_json()["sites"]} == {
        collection.tenant.site_id, collection.second_id,
    }  # fmt: skip
    assert_error(browser.get(f"/sites/{collection.id}"), 404, "site_not_found")
    assert_error(browser.get(f"/api/sites/{collection.id}/keys"), 404, "site_not_found")
    assert_error(browser.get(f"/api/collections/{collection.second_id}"), 404, "collection_not_found")
    body = {"documents": [page(1)]}
    response = collection.tenant.private.post(f"/api/v1/index/bulk?site_id={collection.id}", json=body)
    assert_error(response, 404, "site_not_found")
    sites = [{"site_id": collection.id}]
    response = browser.post("/api/collections", json={"name": "Nested", "sites": sites})
    assert_error(response, 404, "site_not_found")


@pytest.mark.parametrize(
    ("sites", "status", "code"),
    [
        ([], 400, "validation_failed"),
        ([{"site_id": 1, "weight": 11}], 400, "validation_failed"),
        ([{"site_id": 1, "weight": 0.05}], 400, "validation_failed"),
        ([{"site_id": 1, "label": "x" * 101}], 400, "validation_failed"),
        ([{"site_id": 999_999}], 404, "site_not_found"),
    ],
)
def test_invalid_list_of_sites_is_rejected(tenant: Tenant, sites: list[Any], status: int, code: str) -> None:
    assert_error(tenant.browser.post("/api/collections", json={"name": "All", "sites": sites}), status, code)


def test_number_of_sites_and_of_collections_is_limited(collection: Collection) -> None:
    browser = collection.tenant.browser
    too_many = [{"site_id": number} for number in range(1, 12)]
    assert_error(browser.post("/api/collections", json={"name": "All", "sites": too_many}), 400, "validation_failed")
    twice = [{"site_id": collection.second_id}] * 2
    assert_error(browser.post("/api/collections", json={"name": "All", "sites": twice}), 400, "validation_failed")
    invalid = collection.sites(filters="author = ")
    assert_error(browser.post("/api/collections", json={"name": "All", "sites": invalid}), 400, "invalid_filter")
    for number in range(19):
        body = {"name": f"Number {number}", "sites": collection.sites()}
        assert browser.post("/api/collections", json=body).status_code == 201
    body = {"name": "One more", "sites": collection.sites()}
    assert_error(browser.post("/api/collections", json=body), 403, "collection_limit_reached")


def test_site_of_another_account_is_unknown(app: Flask, collection: Collection) -> None:
    other = register_tenant(app, "other@example.com")
    sites = [{"site_id": collection.second_id}]
    assert_error(other.browser.post("/api/collections", json={"name": "Theirs", "sites": sites}), 404, "site_not_found")
    path = f"/api/collections/{collection.id}"
    for method, suffix, body in [
        ("GET", "", None), ("PATCH", "", {"name": "Mine"}), ("DELETE", "", None), ("GET", "/keys", None),
        ("POST", "/keys", {"name": "Key"}),
    ]:  # fmt: skip
        assert_error(other.browser.call(method, path + suffix, json=body), 404, "collection_not_found")
    sites = [{"site_id": other.site_id}]
    response = collection.tenant.browser.call("PATCH", path, json={"sites": sites})
    assert_error(response, 404, "site_not_found")


def test_private_key_cannot_belong_to_a_collection(collection: Collection) -> None:
    path = f"/api/collections/{collection.id}/keys"
    response = collection.tenant.browser.post(path, json={"name": "All", "type": "private"})
    assert_error(response, 400, "validation_failed")


def test_key_of_a_collection_is_managed_like_a_key_of_a_site(collection: Collection) -> None:
    browser = collection.tenant.browser
    path = f"/api/collections/{collection.id}/keys"
    keys = browser.get(path).get_json()["keys"]
    assert [key["type"] for key in keys] == ["public", "search"]
    search_key = f"{path}/{keys[1]['id']}"
    assert browser.call("PATCH", search_key, json={"name": "Renamed"}).get_json()["key"]["name"] == "Renamed"
    token = browser.post(f"{search_key}/rotate").get_json()["api_key"]
    assert_error(collection.client().get("/v1/search?q=x"), 401, "invalid_api_key")
    assert ApiClient(collection.tenant.app, token).get("/v1/search?q=x").status_code == 200
    assert browser.delete(search_key).status_code == 200
    assert_error(ApiClient(collection.tenant.app, token).get("/v1/search?q=x"), 401, "invalid_api_key")
    assert_error(browser.get(search_key), 404, "key_not_found")


def test_site_only_key_cannot_manage_collections(collection: Collection) -> None:
    tenant = collection.tenant
    body = {"name": "One site", "type": "private", "site_only": True}
    token = tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json=body).get_json()["api_key"]
    client = ApiClient(tenant.app, token)
    assert_error(client.get("/api/collections"), 403, "insufficient_permission")
    assert_error(client.get(f"/api/collections/{collection.id}/keys"), 403, "insufficient_permission")


def test_key_of_a_collection_has_only_the_rights_of_its_type(collection: Collection) -> None:
    client = collection.client()
    assert_error(client.get("/api/collections"), 403, "insufficient_permission")
    assert_error(client.post("/api/v1/index/bulk", json={"documents": [page(1)]}), 403, "insufficient_permission")
    assert_error(collection.client("public").get("/v1/search?q=x"), 403, "insufficient_permission")


def test_hits_of_all_sites_are_in_one_list_with_their_site(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Install the kettle"), page(2, title="Prices of tin"))
    collection.index_second(page(1, title="Kettle manual"), page(3, title="Copper"))

    results = collection.find("kettle", facets="site")

    assert {(hit["site"]["id"], hit["site"]["label"], hit["id"]) for hit in results["hits"]} == {
        (collection.tenant.site_id, "Pages", "page-1"),
        (collection.second_id, "Manual", "page-1"),
    }
    assert results["estimatedTotalHits"] == 2
    assert results["facetDistribution"] == {"site": {"Manual": 1, "Pages": 1}}
    assert results["matched"] == "all"
    assert "partial" not in results


def test_site_can_be_filtered_by_label_by_id_and_by_parameter(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle", author="Ann"), page(2, title="Kettle", author="Bob"))
    collection.index_second(page(3, title="Kettle", author="Ann"))
    first, second = ("Pages", "page-1"), ("Manual", "page-3")

    assert collection.found("kettle", filters="site = manual") == [second]
    assert set(collection.found("kettle", filters="site != Manual AND author = Ann")) == {first}
    assert set(collection.found("kettle", filters="NOT site = Manual OR author = Bob")) == {first, ("Pages", "page-2")}
    assert set(collection.found("kettle", filters="site IN [Manual, Pages] AND author = Ann")) == {first, second}
    assert collection.found("kettle", filters="site = Nowhere") == []
    assert collection.found("kettle", site_id=collection.second_id) == [second]
    assert_error(collection.client().get(f"/v1/search?q=kettle&site_id={collection.id + 100}"), 404, "site_not_found")
    assert_error(collection.client().get("/v1/search?q=kettle&filters=unknown = 1"), 400, "invalid_filter")


def test_filter_of_a_site_limits_its_documents(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle", author="Bob"))
    collection.index_second(page(2, title="Kettle", author="Ann"), page(3, title="Kettle", author="Bob"))
    collection.patch(sites=collection.sites(filters="author = Ann"))
    assert set(collection.found("kettle")) == {("Pages", "page-1"), ("Manual", "page-2")}
    assert set(collection.found("kettle", filters="author = Bob")) == {("Pages", "page-1")}
    collection.patch(sites=collection.sites(filters="edition = second"))
    assert set(collection.found("kettle")) == {("Pages", "page-1")}


def test_document_with_every_word_comes_first_whichever_site_it_is_in(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Copper"), page(2, title="Kettle"), page(3, title="Tin"))
    collection.index_second(page(4, title="Tea", content="A copper kettle is not made of tin."), page(5, title="Cups"))
    found = collection.found("copper kettle")
    assert found[0] == ("Manual", "page-4")
    assert len(found) == 3


def test_weight_moves_the_hits_of_a_site(collection: Collection) -> None:
    same = {"title": "Kettle", "content": "A kettle boils water."}
    collection.tenant.index(page(1, **same))
    collection.index_second(page(2, **same))
    for weight, first in ((2, "Manual"), (0.5, "Pages")):
        collection.patch(sites=collection.sites(weight=weight))
        assert collection.found("kettle")[0][0] == first


def test_pages_of_hits_follow_each_other_without_gaps(collection: Collection) -> None:
    texts = ["kettle " * number for number in range(1, 8)]
    collection.tenant.index(*(page(number, title="Tea", content=text) for number, text in enumerate(texts)))
    collection.index_second(*(page(number, title="Tea", content=text) for number, text in enumerate(texts, 20)))
    whole = collection.found("kettle", limit=14)
    assert len(set(whole)) == 14
    pages = [collection.found("kettle", limit=3, offset=offset) for offset in range(0, 15, 3)]
    assert [hit for hits in pages for hit in hits] == whole


def test_pages_far_behind_the_first_are_merged(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.search.search.RANKED_AT_ONCE", 3)
    collection.tenant.index(*(page(number, title="Kettle") for number in range(8)))
    collection.index_second(*(page(number, title="Kettle") for number in range(20, 26)))
    whole = [hit for offset in range(0, 14, 5) for hit in collection.found("kettle", limit=5, offset=offset)]
    assert len(set(whole)) == len(whole) == 14


def test_page_beyond_the_last_merged_hit_is_rejected(collection: Collection) -> None:
    assert collection.find("kettle", limit=10, offset=MAX_MERGED - 10)["hits"] == []
    response = collection.client().get(f"/v1/search?q=kettle&limit=10&offset={MAX_MERGED - 9}")
    assert_error(response, 400, "validation_failed")


def test_hits_of_all_sites_are_sorted_together(collection: Collection) -> None:
    collection.tenant.index(page(1, price=5, date="2024-05-01"), page(2, price=1), page(3, title="Page without"))
    collection.index_second(page(4, price=3, date="2025-05-01"), page(5, price=8, date="2023-01-01"))

    def ids(q: str, **parameters: Any) -> list[str]:
        return [id for _, id in collection.found(q, **parameters)]

    assert ids("page", sort="price") == ["page-2", "page-4", "page-1", "page-5", "page-3"]
    assert ids("page", sort="price:desc") == ["page-5", "page-1", "page-4", "page-2", "page-3"]
    assert ids("*")[:3] == ["page-4", "page-1", "page-5"]
    assert ids("page", sort="title")[-1] == "page-3"


def test_facets_are_counted_over_all_sites(collection: Collection) -> None:
    collection.tenant.index(page(1, author="Ann", price=5), page(2, author="Bob", price=7))
    collection.index_second(page(3, author="Ann"), page(4, color="red"))
    results = collection.find("page", facets="*")
    assert results["facetDistribution"]["author"] == {"Ann": 2, "Bob": 1}
    assert results["facetDistribution"]["color"] == {"red": 1}
    assert results["facetDistribution"]["site"] == {"Manual": 2, "Pages": 2}
    assert results["facetStats"]["price"] == {"min": 5, "max": 7}


def test_distinct_value_is_shown_once_across_sites(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle", product="k1"), page(2, title="Kettle two", product="k2"))
    collection.index_second(page(3, title="Kettle", product="K1"), page(4, title="Kettle four"))
    results = collection.find("kettle", distinct="product")
    assert sorted(hit.get("product", "").lower() for hit in results["hits"]) == ["", "k1", "k2"]
    assert results["estimatedTotalHits"] == 3


def test_each_site_has_its_own_pins_synonyms_and_rules(collection: Collection) -> None:
    tenant = collection.tenant
    tenant.index(page(1, title="Kettle"), page(2, title="Pinned"), page(3, title="Boiler"))
    collection.index_second(page(4, title="Kettle"), page(5, title="Boiler"), page(6, title="Also pinned"))
    rule = {"id": "notice", "when": {"query": "kettle"}, "do": {"notice": {"text": "We moved"}}}
    for site_id, settings in (
        (tenant.site_id, {"pinned": [{"query": "kettle", "ids": ["page-2"]}], "synonyms": [["kettle", "boiler"]]}),
        (collection.second_id, {"pinned": [{"query": "kettle", "ids": ["page-6"]}], "rules": [rule]}),
    ):
        response = tenant.browser.call("PUT", f"/sites/{site_id}/search-settings", json=settings)
        assert response.status_code == 200, response.get_json()
    tenant.settle()

    results = collection.find("kettle")

    ids = [hit["id"] for hit in results["hits"]]
    assert ids[:2] == ["page-2", "page-6"]
    assert set(ids[2:]) == {"page-1", "page-3", "page-4"}
    assert results["notice"] == {"text": "We moved"}
    assert results["rules"] == ["notice"]


def test_corrected_query_is_of_the_site_that_corrects_it(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Tin"))
    collection.index_second(page(2, title="Watermelon"))
    results = collection.find("watermleon")
    assert (results["matched"], results["corrected_query"]) == ("corrected", "watermelon")


def test_highlights_sections_and_explanations_are_of_each_hit(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle", content="A kettle boils."))
    results = collection.find("kettle", highlight="true")
    assert results["hits"][0]["_formatted"]["title"] == "<em>Kettle</em>"
    assert results["hits"][0]["site"]["label"] == "Pages"
    only_title = collection.find("kettle", fields="title")["hits"][0]
    assert set(only_title) == {"id", "title", "site"}


def test_custom_field_named_site_is_replaced(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle", site="Elsewhere"))
    assert collection.find("kettle")["hits"][0]["site"] == {"id": collection.tenant.site_id, "label": "Pages"}
    assert collection.find("kettle", facets="site")["facetDistribution"]["site"] == {"Pages": 1}


def test_one_search_is_charged_and_recorded_for_the_collection_and_each_site(collection: Collection) -> None:
    tenant = collection.tenant
    tenant.index(page(1, title="Kettle"))
    collection.index_second(page(2, title="Kettle"), page(3, title="Kettle lid"), page(4, title="Tin"))
    response = collection.client().get("/v1/search?q=kettle&session_id=s1")
    assert response.get_json()["remaining_quota"]["used_today"] == 1
    assert collection.client().get("/v1/search?q=tin").get_json()["remaining_quota"]["used_today"] == 2
    runtime = tenant.app.extensions["runtime"]
    runtime.events.flush()
    with runtime.database.read() as session:
        events = session.scalars(select(SearchEvent).where(SearchEvent.query == "kettle")).all()
        counts = {event.site_id: event.results_count for event in events}
    assert counts == {collection.id: 3, tenant.site_id: 1, collection.second_id: 2}
    analytics = tenant.browser.get(f"/api/analytics?site_id={collection.id}").get_json()
    assert analytics["total_searches"] == 2


def test_paused_and_deleted_sites_are_skipped_and_reported(collection: Collection) -> None:
    tenant = collection.tenant
    tenant.index(page(1, title="Kettle"))
    collection.index_second(page(2, title="Kettle"))
    path = f"/sites/{collection.second_id}"
    assert tenant.browser.call("PATCH", path, json={"active": False}).status_code == 200
    assert collection.found("kettle") == [("Pages", "page-1")]
    shown = tenant.browser.get(f"/api/collections/{collection.id}").get_json()["collection"]
    assert shown["problems"] == [{"site_id": collection.second_id, "name": "Handbook", "reason": "paused"}]
    assert tenant.browser.delete(path).status_code == 200
    assert collection.found("kettle") == [("Pages", "page-1")]
    assert tenant.browser.delete(f"{path}?purge=true").status_code == 200
    shown = tenant.browser.get(f"/api/collections/{collection.id}").get_json()["collection"]
    assert shown["problems"] == [{"site_id": collection.second_id, "name": None, "reason": "deleted"}]
    # The list can still be saved as it is.
    collection.patch(sites=collection.sites(weight=2))
    assert tenant.browser.delete(f"/sites/{tenant.site_id}").status_code == 200
    assert collection.found("kettle") == []


def test_clicks_count_for_the_collection_and_the_site_of_the_hit(collection: Collection) -> None:
    tenant = collection.tenant
    tenant.index(page(1, title="Kettle"))
    collection.index_second(page(1, title="Kettle"), page(2, title="Kettle"))
    query_id = collection.find("kettle")["query_id"]
    for body in (
        {"id": "page-1", "position": 1, "site_id": collection.second_id},
        {"id": "page-2", "position": 2},
    ):
        response = collection.client().post("/api/v1/click", json={"query_id": query_id, **body})
        assert response.status_code == 200, response.get_json()
    response = collection.client().post("/api/v1/click", json={"query_id": query_id, "id": "page-1", "site_id": 99_999})
    assert_error(response, 404, "site_not_found")
    runtime = tenant.app.extensions["runtime"]
    runtime.events.flush()
    with runtime.database.read() as session:
        clicks = {(click.site_id, click.document_id) for click in session.scalars(select(SearchClick))}
    assert clicks == {(site_id, id) for site_id in (collection.id, collection.second_id) for id in ("page-1", "page-2")}


def test_suggestions_are_titles_of_all_sites(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle one"), page(2, title="Kettle two"))
    collection.index_second(page(3, title="Kettle three"))

    def titles(**parameters: Any) -> list[str]:
        response = collection.client().get("/v1/suggest", query_string={"q": "kett", **parameters})
        return [suggestion["text"] for suggestion in response.get_json()["suggestions"]]

    assert set(titles()) == {"Kettle one", "Kettle two", "Kettle three"}
    assert set(titles(limit=2)) >= {"Kettle three"}
    assert titles(filters="site = Manual") == ["Kettle three"]
    assert titles(site_id=collection.second_id) == ["Kettle three"]


def test_search_box_searches_a_collection_with_its_public_key(collection: Collection) -> None:
    collection.tenant.index(page(1, title="Kettle"))
    collection.index_second(page(2, title="Kettle manual"))
    client = collection.client("public")
    info = client.get("/v1/client-info").get_json()
    assert info["index"] == f"site_{collection.id}"
    query = {"indexUid": info["index"], "q": "kettle", "facets": ["site"], "filter": "site = Manual"}
    response = client.post("/engine/multi-search", json={"queries": [query, {**query, "filter": ""}]})
    narrowed, whole = response.get_json()["results"]
    assert [hit["site"]["label"] for hit in narrowed["hits"]] == ["Manual"]
    assert whole["facetDistribution"] == {"site": {"Manual": 1, "Pages": 1}}
    values = {"facetName": "site", "facetQuery": "man", "q": "kettle"}
    response = client.post(f"/engine/indexes/{info['index']}/facet-search", json=values)
    assert response.get_json()["facetHits"] == [{"value": "Manual", "count": 1}]


def test_agents_search_a_collection_if_all_its_sites_allow_it(collection: Collection) -> None:
    tenant = collection.tenant
    tenant.index(page(1, title="Kettle", url="/kettle"))
    collection.index_second(page(2, title="Kettle manual", url="/manual"))
    client = collection.client()

    def call(name: str, **arguments: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return client.post("/mcp", json=body).get_json()

    assert call("search", query="kettle")["error"] == "insufficient_permission"
    for site_id in (tenant.site_id, collection.second_id):
        assert tenant.browser.call("PATCH", f"/sites/{site_id}", json={"agents": True}).status_code == 200
    found = call("search", query="kettle")["result"]["structuredContent"]["results"]
    urls = {hit["url"] for hit in found}
    assert urls == {"https://www.example.com/kettle", "https://docs.example.com/manual"}
    fetched = call("fetch", id="page-2")["result"]["structuredContent"]
    assert fetched["title"] == "Kettle manual"


def test_related_and_popular_pages_are_of_the_collections_sites(collection: Collection) -> None:
    kettle = "A copper kettle with a long spout boils water on the stove."
    collection.tenant.index(page(1, title="Prices"))
    collection.index_second(
        page(2, title="Copper kettle", content=kettle, url="/kettle"),
        page(3, title="Copper kettle lid", content=kettle),
        *(page(number, title=f"Number {number}", content="Nothing of the kind") for number in range(10, 20)),
    )
    client = collection.client()
    for query in ({"id": "page-2"}, {"url": "https://docs.example.com/kettle"}):
        response = client.get("/v1/related", query_string=query)
        assert response.status_code == 200, response.get_json()
        assert [(hit["id"], hit["site"]["label"]) for hit in response.get_json()["pages"]] == [("page-3", "Manual")]
    assert_error(client.get("/v1/related?id=none"), 404, "document_not_found")
    assert client.get("/v1/popular").get_json()["pages"] == []
