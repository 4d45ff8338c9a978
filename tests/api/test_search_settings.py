"""GET and PUT /sites/{id}/search-settings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page


def put(tenant: Tenant, **settings: Any) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert response.status_code == 200, response.get_json()


def test_a_new_site_has_the_defaults(tenant: Tenant) -> None:
    answer = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()

    assert answer == {
        "settings": {
            "language": None, "synonyms": [], "stop_words": None, "pinned": [], "hidden": [], "weights": {},
        }
    }  # fmt: skip


def test_settings_are_answered_as_written_and_what_is_absent_is_the_default(tenant: Tenant) -> None:
    put(tenant, language="de", weights={"title": 2})
    put(tenant, synonyms=[["car", "automobile"]])

    answer = tenant.browser.get(f"/sites/{tenant.site_id}/search-settings").get_json()

    assert answer["settings"]["language"] is None
    assert answer["settings"]["synonyms"] == [["car", "automobile"]]
    assert answer["settings"]["weights"] == {}


def test_synonyms_hold_from_the_next_search_on(tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Bread"))
    assert tenant.found_ids("car") == []

    put(tenant, synonyms=[["car", "automobile"]])

    assert tenant.found_ids("car") == ["page-1"]


def test_pinned_documents_come_first(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours and hours of hours"), page(3, title="Contact"))

    put(tenant, pinned=[{"query": "  Hours ", "ids": ["page-3"]}])

    assert tenant.found_ids("hours")[0] == "page-3"
    assert sorted(tenant.found_ids("hours")) == ["page-1", "page-2", "page-3"]


def test_hidden_documents_are_not_found_by_that_query(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours of work"))

    put(tenant, hidden=[{"query": "  Hours ", "ids": ["page-2"]}])

    assert tenant.found_ids("HOURS") == ["page-1"]
    assert sorted(tenant.found_ids("hour")) == ["page-1", "page-2"]


def test_ids_that_no_document_has_are_a_warning(tenant: Tenant) -> None:
    tenant.index(page(1))
    settings = {
        "pinned": [{"query": "a", "ids": ["page-1", "gone"]}],
        "hidden": [{"query": "a", "ids": ["gone", "page-9"]}],
    }

    answer = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings).get_json()

    assert answer["warnings"] == [
        {"code": "unknown_document", "message": "No document has the id gone."},
        {"code": "unknown_document", "message": "No document has the id page-9."},
    ]
    settings["pinned"][0]["ids"] = settings["hidden"][0]["ids"] = ["page-1"]
    assert "warnings" not in tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings).get_json()


def test_weights_change_which_field_counts(tenant: Tenant) -> None:
    tenant.index(
        page("title", title="Harbour", content="Nothing of that kind."),
        page("content", title="Something", content="The harbour, the old harbour and the new harbour."),
    )
    assert tenant.found_ids("harbour")[0] == "page-title"

    put(tenant, weights={"title": 0.01, "content": 10})

    assert tenant.found_ids("harbour")[0] == "page-content"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"language": "xx"}, "language"),
        ({"synonyms": [["alone"]]}, "synonyms[0]"),
        ({"synonyms": [["a", 5]]}, "synonyms[0][1]"),
        ({"synonyms": "a,b"}, "synonyms"),
        ({"stop_words": [""]}, "stop_words[0]"),
        ({"pinned": [{"query": "x"}]}, "pinned[0].ids"),
        ({"pinned": [{"query": " ", "ids": ["a"]}]}, "pinned[0].query"),
        ({"hidden": [{"query": "x", "ids": []}]}, "hidden[0].ids"),
        ({"weights": {"title": 11}}, "weights.title"),
        ({"weights": {"titel": 1}}, "weights.titel"),
        ({"synonym": []}, "synonym"),
    ],
)
def test_bad_settings_are_named_and_change_nothing(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=body)

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == field
    unchanged = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    assert unchanged["language"] is None
    assert unchanged["synonyms"] == []


def test_a_strangers_settings_are_not_found(tenant: Tenant, stranger: Tenant) -> None:
    path = f"/sites/{stranger.site_id}/search-settings"

    assert tenant.private.get(path).status_code == 404
    assert tenant.private.put(path, json={}).status_code == 404
