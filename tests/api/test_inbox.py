"""GET and PUT /api/analytics/inbox."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.responses import assert_error, assert_ok
from tests.services.inbox.test_items import missed

PATH = "/api/analytics/inbox"


def show(tenant: Tenant, **parameters: Any) -> dict[str, Any]:
    return assert_ok(tenant.private.get(PATH, query_string={"site_id": tenant.site_id, **parameters}))


def change(tenant: Tenant, query: str, *, ignored: bool) -> dict[str, Any]:
    body = {"site_id": tenant.site_id, "query": query, "ignored": ignored}
    return assert_ok(tenant.private.put(PATH, json=body))


def queries(tenant: Tenant, **parameters: Any) -> list[str]:
    return [item["query"] for item in show(tenant, **parameters)["items"]]


def test_empty_inbox_returns_an_empty_list(tenant: Tenant) -> None:
    assert show(tenant) == {"items": [], "total": 0, "limit": 20, "offset": 0}


def test_query_leaves_the_inbox_once_it_finds_documents(tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 2, 3)
    missed(tenant, "airship", 1)
    assert show(tenant)["items"] == [
        {"query": "zeppelin", "kind": "no_results", "searches": 3, "visitors": 2, "finds_now": 0},
        {"query": "airship", "kind": "no_results", "searches": 1, "visitors": 1, "finds_now": 0},
    ]

    tenant.index(page(1, title="Airship"))
    assert queries(tenant) == ["zeppelin"]

    tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"synonyms": [["zeppelin", "airship"]]})
    assert queries(tenant) == []


def test_search_without_results_appears_in_the_inbox_after_a_flush(tenant: Tenant) -> None:
    tenant.index(page(1))
    for visitor in ("one", "two"):
        tenant.find("Zeppelin", session_id=visitor)
    tenant.find("page", session_id="one")
    tenant.app.extensions["runtime"].events.flush()

    (item,) = show(tenant)["items"]
    assert item == {"query": "zeppelin", "kind": "no_results", "searches": 2, "visitors": 2, "finds_now": 0}


def test_search_matching_only_some_words_is_partial_until_a_document_has_all(tenant: Tenant) -> None:
    tenant.index(page(1, title="Lighthouse"))
    tenant.find("lighthouse zeppelin", session_id="one")
    tenant.app.extensions["runtime"].events.flush()
    (item,) = show(tenant)["items"]
    assert item == {"query": "lighthouse zeppelin", "kind": "partial", "searches": 1, "visitors": 1, "finds_now": 1}

    tenant.index(page(2, title="Zeppelin at the lighthouse"))
    assert queries(tenant) == []


def test_pinning_a_page_resolves_a_partial_query(tenant: Tenant) -> None:
    tenant.index(page(1, title="Lighthouse"), page(2, title="Tickets"))
    tenant.find("lighthouse zeppelin")
    tenant.app.extensions["runtime"].events.flush()
    assert queries(tenant) == ["lighthouse zeppelin"]

    pinned = [{"query": "lighthouse zeppelin", "ids": ["page-2"]}]
    tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"pinned": pinned})
    assert queries(tenant) == []


def test_no_click_query_appears_from_five_visitors_once_clicks_are_reported(tenant: Tenant) -> None:
    tenant.index(page(1, title="Lighthouse"), page(2, title="Tickets"))
    for visitor in range(5):
        tenant.find("lighthouse", session_id=str(visitor))
    tenant.app.extensions["runtime"].events.flush()
    assert queries(tenant) == []

    assert_ok(tenant.public.post("/api/v1/click", json={"query": "tickets", "id": "page-2"}))
    tenant.app.extensions["runtime"].events.flush()
    (item,) = show(tenant)["items"]
    assert item == {"query": "lighthouse", "kind": "no_clicks", "searches": 5, "visitors": 5, "finds_now": 1}

    assert_ok(tenant.public.post("/api/v1/click", json={"query": "lighthouse", "id": "page-1"}))
    tenant.app.extensions["runtime"].events.flush()
    assert queries(tenant) == []


def test_reading_the_inbox_uses_no_quota_and_is_not_in_analytics(tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 2)
    show(tenant)

    tenant.app.extensions["runtime"].events.flush()
    assert assert_ok(tenant.private.get("/api/analytics"))["total_searches"] == 0
    assert assert_ok(tenant.search.get("/v1/search?q=x"))["remaining_quota"]["used_today"] == 1


def test_ignored_query_is_listed_separately_until_unignored(tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 2)
    missed(tenant, "airship", 1)

    for _ in range(2):
        assert change(tenant, "  ZEPPELIN ", ignored=True) == {"success": True, "query": "zeppelin", "ignored": True}
    assert queries(tenant) == ["airship"]
    assert queries(tenant, ignored="true") == ["zeppelin"]

    for _ in range(2):
        change(tenant, "zeppelin", ignored=False)
    assert queries(tenant) == ["zeppelin", "airship"]
    assert queries(tenant, ignored="true") == []


def test_inbox_is_paginated(tenant: Tenant) -> None:
    for number in range(1, 6):
        missed(tenant, f"query {number}", number)

    answer = show(tenant, limit=2, offset=2)

    assert [item["query"] for item in answer["items"]] == ["query 3", "query 2"]
    assert (answer["total"], answer["limit"], answer["offset"]) == (5, 2, 2)
    assert queries(tenant, offset=5) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "site_id"), ("site_id=x", "site_id"), ("site_id=1&limit=0", "limit"), ("site_id=1&ignored=yes", "ignored")],
)
def test_inbox_with_invalid_parameters_returns_400(tenant: Tenant, query: str, field: str) -> None:
    assert_error(tenant.private.get(f"{PATH}?{query}"), 400, "validation_failed", field=field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "a", "ignored": True}, "site_id"),
        ({"site_id": 1, "ignored": True}, "query"),
        ({"site_id": 1, "query": " ", "ignored": True}, "query"),
        ({"site_id": 1, "query": "a"}, "ignored"),
        ({"site_id": 1, "query": "a", "ignored": "true"}, "ignored"),
        ({"site_id": 1, "query": "a", "ignored": True, "more": 1}, "more"),
    ],
)
def test_inbox_update_with_an_invalid_body_returns_400(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    assert_error(tenant.private.put(PATH, json=body), 400, "validation_failed", field=field)


def test_other_accounts_cannot_read_or_change_the_inbox(tenant: Tenant, stranger: Tenant) -> None:
    missed(tenant, "secret", 3)

    assert_error(stranger.private.get(f"{PATH}?site_id={tenant.site_id}"), 404, "site_not_found")
    body = {"site_id": tenant.site_id, "query": "secret", "ignored": True}
    assert_error(stranger.private.put(PATH, json=body), 404, "site_not_found")
    assert queries(tenant) == ["secret"]


@pytest.mark.parametrize("kind", ["public", "search"])
def test_public_and_search_keys_cannot_read_the_inbox(tenant: Tenant, kind: str) -> None:
    response = tenant.client(kind).get(f"{PATH}?site_id={tenant.site_id}")

    assert_error(response, 403, "insufficient_permission")


def test_paused_sites_inbox_is_readable(tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 2)
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    assert queries(tenant) == ["zeppelin"]
