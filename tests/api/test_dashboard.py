"""GET /dashboard as JSON."""

from __future__ import annotations

import pytest

from tests.answers import assert_ok
from tests.callers import Tenant, page


def test_counts_usage_and_limits(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    tenant.find("page")

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert answer == {
        "siteCount": 1,
        "apiKeyCount": 3,
        "plan": "pro",
        "usage": {"searches_this_month": 1, "indexed_pages": 2, "indexing_operations_this_month": 0},
        "limits": {"max_sites": 10, "max_api_keys": 10, "searches_per_month": 300_000, "unlimited": False},
    }


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "application/*", "text/html;q=0.5, application/json"]
)
def test_json_is_the_default(tenant: Tenant, accept: str | None) -> None:
    headers = {} if accept is None else {"Accept": accept}

    for client in (tenant.private, tenant.browser):
        response = client.get("/dashboard", headers=headers)
        assert_ok(response)
        assert response.mimetype == "application/json"


def test_disabled_keys_count_and_deleted_ones_do_not(tenant: Tenant) -> None:
    tenant.browser.post(f"/api/keys/{tenant.keys['public']['id']}/toggle")
    tenant.browser.delete(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}")

    assert assert_ok(tenant.browser.get("/dashboard"))["apiKeyCount"] == 2


def test_all_sites_together(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}).get_json()["site"]["id"]
    tenant.index(page(1))
    tenant.private.post(f"/api/v1/index/bulk?site_id={other}", json={"documents": [page(1), page(2)]})

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert (answer["siteCount"], answer["usage"]["indexed_pages"]) == (2, 3)


def test_a_strangers_things_are_not_counted(tenant: Tenant, stranger: Tenant) -> None:
    stranger.index(page(1))
    stranger.find("page")

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert (answer["siteCount"], answer["apiKeyCount"]) == (1, 3)
    assert set(answer["usage"].values()) == {0}
