"""At most one hit per value of the distinct field: GET and POST /v1/search, the gateway, and the search settings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page, register_tenant
from tests.gateway.callers import Gateway, assert_engine_error
from tests.responses import assert_error

LATEST = {"field": "version", "value": "latest"}


@pytest.fixture(autouse=True)
def manual(tenant: Tenant) -> None:
    """Index three versions of a page, the oldest being the best hit, and a page without a version."""
    tenant.index(
        page("1.9", title="Tea", content="Tea", page="tea", version="1.9"),
        page("1.10", title="On making tea", content="Boil water.", page="tea", version="1.10"),
        page("2.0", title="On pouring", content="Once it is made, pour the tea.", page="tea", version="2.0rc1"),
        page("other", title="Another page", content="On tea, too, at some length."),
    )


def put(tenant: Tenant, **settings: Any) -> dict[str, Any]:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert response.status_code == 200, response.get_json()
    answer: dict[str, Any] = response.get_json()
    return answer


def test_distinct_returns_and_counts_only_the_best_hit_of_each_value(tenant: Tenant) -> None:
    found = tenant.find("tea", distinct="page", facets="version")
    assert [hit["id"] for hit in found["hits"]] == ["page-1.9", "page-other"]
    assert found["estimatedTotalHits"] == 2
    assert found["facetDistribution"]["version"] == {"1.10": 1, "1.9": 1, "2.0rc1": 1}

    body = {"q": "tea", "distinct": "page", "limit": 1, "page": 2}
    results = tenant.search.post("/v1/search", json=body).get_json()["results"]
    assert [hit["id"] for hit in results["hits"]] == ["page-other"]


def test_distinct_parameter_overrides_settings_and_empty_value_disables_it(tenant: Tenant) -> None:
    put(tenant, distinct="page")
    assert tenant.find("tea")["estimatedTotalHits"] == 2
    assert tenant.find("tea", distinct="")["estimatedTotalHits"] == 4
    assert tenant.find("tea", distinct="version")["estimatedTotalHits"] == 4
    for absent in ({}, {"distinct": None}):
        answer = tenant.search.post("/v1/search", json={"q": "tea", **absent}).get_json()
        assert answer["results"]["estimatedTotalHits"] == 2
    off = tenant.search.post("/v1/search", json={"q": "tea", "distinct": ""}).get_json()
    assert off["results"]["estimatedTotalHits"] == 4


@pytest.mark.parametrize(("value", "shown"), [("latest", "page-2.0"), ("1.10", "page-1.10"), ("9", "page-1.9")])
def test_preferred_version_is_returned_or_else_the_best_hit(tenant: Tenant, value: str, shown: str) -> None:
    put(tenant, distinct="page", preferred={"field": "version", "value": value})
    assert tenant.found_ids("tea")[0] == shown


@pytest.mark.parametrize("name", ["nowhere", "title", "id"])
def test_distinct_by_an_unknown_field_returns_400(tenant: Tenant, name: str) -> None:
    response = tenant.search.get("/v1/search", query_string={"q": "tea", "distinct": name})
    assert_error(response, 400, "invalid_facet")
    (detail,) = response.get_json()["details"]
    assert (detail["field"], detail["code"]) == ("distinct", "invalid_facet")


def test_distinct_by_an_unknown_field_returns_400_even_without_documents(tenant: Tenant) -> None:
    bob = register_tenant(tenant.app, "bob@example.com")
    response = bob.search.get("/v1/search", query_string={"q": "tea", "distinct": "nowhere"})
    assert_error(response, 400, "invalid_facet")


def test_distinct_setting_of_a_missing_field_has_no_effect(tenant: Tenant) -> None:
    put(tenant, distinct="nowhere", preferred=LATEST)
    assert tenant.find("tea")["estimatedTotalHits"] == 4


def test_gateway_supports_meilisearchs_distinct_parameter(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    assert [hit["id"] for hit in gateway.search("tea", distinct="page")["hits"]] == ["page-1.9", "page-other"]
    pages = gateway.search("tea", distinct="page", page=1, hitsPerPage=1)
    assert (pages["totalHits"], pages["totalPages"]) == (2, 2)
    put(tenant, distinct="page", preferred=LATEST)
    assert [hit["id"] for hit in gateway.search("tea")["hits"]] == ["page-2.0", "page-other"]
    assert gateway.search("tea", distinct="")["estimatedTotalHits"] == 4
    for name in ("nowhere", "content"):
        response = gateway.send({"q": "tea", "distinct": name})
        assert_engine_error(response, 400, "invalid_search_distinct")


def test_distinct_settings_are_trimmed_and_null_by_default(tenant: Tenant) -> None:
    shown = put(tenant, distinct=" page ", preferred={"field": "version", "value": " 2.1 "})["settings"]
    assert (shown["distinct"], shown["preferred"]) == ("page", {"field": "version", "value": "2.1"})
    shown = put(tenant, distinct=None, preferred=None)["settings"]
    assert (shown["distinct"], shown["preferred"]) == (None, None)


@pytest.mark.parametrize(
    ("settings", "field", "code"),
    [
        ({"distinct": ""}, "distinct", "too_short"),
        ({"distinct": "no field"}, "distinct", "invalid_name"),
        ({"distinct": "x" * 65}, "distinct", "too_long"),
        ({"distinct": 5}, "distinct", "type"),
        ({"preferred": "latest"}, "preferred", "type"),
        ({"preferred": {"field": "version"}}, "preferred.value", "required"),
        ({"preferred": {"value": "latest"}}, "preferred.field", "required"),
        ({"preferred": {"field": "1st", "value": "latest"}}, "preferred.field", "invalid_name"),
        ({"preferred": {"field": "version", "value": " "}}, "preferred.value", "too_short"),
        ({"preferred": {"field": "version", "value": "x" * 101}}, "preferred.value", "too_long"),
    ],
)
def test_invalid_distinct_settings_return_400_naming_the_field(
    tenant: Tenant, settings: dict[str, Any], field: str, code: str
) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert_error(response, 400, "validation_failed")
    assert [(detail["field"], detail["code"]) for detail in response.get_json()["details"]] == [(field, code)]


def test_settings_preview_shows_the_effect_of_distinct(tenant: Tenant) -> None:
    body = {"settings": {"distinct": "page", "preferred": LATEST}, "queries": ["tea"]}
    path = f"/sites/{tenant.site_id}/search-settings/preview"
    (query,) = tenant.private.post(path, json=body).get_json()["queries"]
    assert len(query["before"]) == 4
    assert [document["id"] for document in query["after"]] == ["page-2.0", "page-other"]


def test_document_browser_ignores_the_distinct_setting(tenant: Tenant) -> None:
    put(tenant, distinct="page")
    response = tenant.browser.client.get(
        f"/sites/{tenant.site_id}/documents", query_string={"q": "tea"}, headers={"Accept": "text/html"}
    )
    assert all(title in response.text for title in ("On making tea", "On pouring"))
