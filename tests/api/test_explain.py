"""The `explain` parameter of searches."""

from __future__ import annotations

from tests.callers import Tenant, page
from tests.responses import assert_error, assert_ok


def test_private_key_gets_ranking_explanations_on_request(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tea"))

    found = assert_ok(tenant.private.get("/v1/search?q=tea&explain=true&fields=title"))["results"]["hits"]
    sent = assert_ok(tenant.private.post("/v1/search", json={"q": "tea", "explain": True}))["results"]["hits"]

    assert set(found[0]) == {"id", "title", "_explain"}
    assert set(found[0]["_explain"]) == set(sent[0]["_explain"])
    assert found[0]["_explain"]["pinned"] is False
    assert "_explain" not in assert_ok(tenant.private.get("/v1/search?q=tea"))["results"]["hits"][0]


def test_public_and_search_keys_cannot_request_explanations(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tea"))

    assert_error(tenant.search.get("/v1/search?q=tea&explain=true"), 403, "insufficient_permission")
    assert_error(tenant.search.post("/v1/search", json={"q": "tea", "explain": True}), 403, "insufficient_permission")
    assert_error(tenant.public.get("/v1/search?q=tea&explain=true"), 403, "insufficient_permission")
    assert tenant.search.get("/v1/search?q=tea&explain=false").status_code == 200
