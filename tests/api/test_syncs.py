"""Syncs over HTTP: finishing one removes the source's documents that were not sent again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask

from tests.callers import Tenant, page, register_tenant

BEGIN = "/api/v1/sync"


def begin(tenant: Tenant, source: str = "wordpress", **fields: Any) -> str:
    response = tenant.private.post(BEGIN, json={"source": source, **fields})
    assert response.status_code == 201, response.get_json()
    identifier: str = response.get_json()["sync"]["id"]
    return identifier


def send(tenant: Tenant, sync_id: str, *numbers: int) -> None:
    documents = [page(number) for number in numbers]
    response = tenant.private.post(f"/api/v1/index/bulk?sync={sync_id}", json={"documents": documents})
    assert response.status_code == 200, response.get_json()


def ids(tenant: Tenant) -> list[str]:
    answer = tenant.private.get("/api/v1/documents?limit=1000").get_json()
    return sorted(document["id"] for document in answer["documents"])


def test_sync_removes_documents_that_were_not_sent_again(tenant: Tenant) -> None:
    response = tenant.private.post(BEGIN, json={"source": "wordpress"})
    assert response.status_code == 201
    answer = response.get_json()
    sync = answer["sync"]
    assert answer["success"] is True
    assert re.fullmatch("sync_[A-Z2-7]{16}", sync["id"])
    assert response.headers["Location"] == f"{BEGIN}/{sync['id']}"
    assert (sync["source"], sync["seen"], sync["status"], sync["removed"], sync["ended_at"]) == (
        "wordpress", 0, "running", None, None,
    )  # fmt: skip
    send(tenant, sync["id"], 1, 2, 3)
    assert tenant.private.get(f"{BEGIN}/{sync['id']}").get_json()["sync"]["seen"] == 3
    assert tenant.private.post(f"{BEGIN}/{sync['id']}/finish").get_json() == {"success": True, "removed": 0}

    second = begin(tenant)
    send(tenant, second, 2)
    finished = tenant.private.post(f"{BEGIN}/{second}/finish", json={"max_removed_percent": 50})

    assert finished.get_json() == {"success": True, "removed": 2}
    assert ids(tenant) == tenant.found_ids("content") == ["page-2"]
    shown = tenant.private.get(f"{BEGIN}/{second}").get_json()["sync"]
    assert (shown["status"], shown["seen"], shown["removed"]) == ("finished", 1, 2)
    assert shown["ended_at"] >= shown["started_at"]


def test_sync_removing_too_much_needs_a_higher_allowed_percentage(tenant: Tenant) -> None:
    first = begin(tenant)
    send(tenant, first, *range(20))
    assert tenant.private.post(f"{BEGIN}/{first}/finish").status_code == 200
    second = begin(tenant)
    send(tenant, second, 0)

    rejected = tenant.private.post(f"{BEGIN}/{second}/finish")
    assert rejected.status_code == 400
    assert rejected.get_json()["error"] == "sync_removes_too_much"
    assert "19 of the source's 20 documents" in rejected.get_json()["message"]
    assert len(ids(tenant)) == 20

    allowed = tenant.private.post(f"{BEGIN}/{second}/finish", json={"max_removed_percent": 95})
    assert allowed.get_json() == {"success": True, "removed": 19}


@pytest.mark.parametrize("source", ["api", "src_museum", "", "Word", "a b", "a" * 65, "ä", "a\n", 5, None])
def test_invalid_or_reserved_source_names_are_rejected(tenant: Tenant, source: Any) -> None:
    response = tenant.private.post(BEGIN, json={"source": source})

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == "source"


@pytest.mark.parametrize("percent", [-1, 101, "20", True, 1.5])
def test_invalid_max_removed_percent_is_rejected(tenant: Tenant, percent: Any) -> None:
    response = tenant.private.post(f"{BEGIN}/{begin(tenant)}/finish", json={"max_removed_percent": percent})

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == "max_removed_percent"


def test_second_sync_of_a_source_requires_replacing_the_first(tenant: Tenant) -> None:
    first = begin(tenant)
    rejected = tenant.private.post(BEGIN, json={"source": "wordpress"})
    assert (rejected.status_code, rejected.get_json()["error"]) == (400, "sync_running")
    assert first in rejected.get_json()["message"]

    second = begin(tenant, replace=True)

    assert tenant.private.get(f"{BEGIN}/{first}").get_json()["sync"]["status"] == "abandoned"
    assert tenant.private.delete(f"{BEGIN}/{second}").get_json() == {"success": True}
    for method, path in (
        ("DELETE", f"{BEGIN}/{second}"),
        ("POST", f"{BEGIN}/{second}/finish"),
        ("POST", f"/api/v1/index/bulk?sync={second}"),
    ):
        body = {"json": {"documents": [page(1)]}} if "bulk" in path else {}
        response = tenant.private.call(method, path, **body)
        assert (response.status_code, response.get_json()["error"]) == (404, "sync_not_found"), path
    assert ids(tenant) == []


def test_syncs_of_other_accounts_and_sites_return_404(app: Flask, tenant: Tenant, stranger: Tenant) -> None:
    mine = begin(tenant)
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]
    for caller, site in ((stranger.private, ""), (tenant.private, f"site_id={other['id']}")):
        for method, path in (
            ("GET", f"{BEGIN}/{mine}?{site}"),
            ("DELETE", f"{BEGIN}/{mine}?{site}"),
            ("POST", f"{BEGIN}/{mine}/finish?{site}"),
            ("POST", f"/api/v1/index/bulk?sync={mine}&{site}"),
        ):
            body = {"json": {"documents": [page(1)]}} if "bulk" in path else {}
            response = caller.call(method, path, **body)
            assert (response.status_code, response.get_json()["error"]) == (404, "sync_not_found"), path
    foreign = stranger.private.get(f"{BEGIN}/{mine}?site_id={tenant.site_id}")
    assert (foreign.status_code, foreign.get_json()["error"]) == (404, "site_not_found")
    assert tenant.private.get(f"{BEGIN}/{mine}").get_json()["sync"]["status"] == "running"
    assert tenant.private.get(f"{BEGIN}/sync_nothing").status_code == 404
    assert tenant.private.get(f"{BEGIN}/%00").status_code == 404


def test_browser_session_syncs_with_site_id_and_csrf_token(tenant: Tenant) -> None:
    missing = tenant.browser.post(BEGIN, json={"source": "wordpress"})
    assert missing.status_code == 400
    assert missing.get_json()["details"][0] == {
        "field": "site_id", "code": "required", "message": "site_id is required",
    }  # fmt: skip
    begun = tenant.browser.post(f"{BEGIN}?site_id={tenant.site_id}", json={"source": "wordpress"})
    assert begun.status_code == 201
    sync_id = begun.get_json()["sync"]["id"]
    assert tenant.browser.get(f"{BEGIN}/{sync_id}?site_id={tenant.site_id}").status_code == 200
    finish = f"{BEGIN}/{sync_id}/finish?site_id={tenant.site_id}"
    forged = tenant.browser.client.post(finish)
    assert (forged.status_code, forged.get_json()["error"]) == (403, "csrf_failed")
    assert tenant.browser.post(finish).status_code == 200


@pytest.mark.parametrize("kind", ["public", "search"])
def test_public_and_search_keys_cannot_sync(tenant: Tenant, kind: str) -> None:
    assert tenant.client(kind).post(BEGIN, json={"source": "wordpress"}).status_code == 403
    assert tenant.client(kind).get(f"{BEGIN}/{begin(tenant)}").status_code == 403


def test_paused_site_rejects_starting_and_finishing_syncs(app: Flask) -> None:
    tenant = register_tenant(app, "ann@example.com")
    sync_id = begin(tenant)
    assert tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False}).status_code == 200

    for path, body in ((BEGIN, {"source": "shop"}), (f"{BEGIN}/{sync_id}/finish", {})):
        response = tenant.private.post(path, json=body)
        assert (response.status_code, response.get_json()["error"]) == (403, "site_inactive")
    assert tenant.private.get(f"{BEGIN}/{sync_id}").status_code == 200
