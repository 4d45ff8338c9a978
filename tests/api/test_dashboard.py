"""GET /dashboard as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from flask import Flask

from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok


def test_dashboard_returns_counts_usage_and_limits(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    tenant.find("page")

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert answer == {
        "siteCount": 1,
        "apiKeyCount": 3,
        "plan": "pro",
        "usage": {
            "searches_this_month": 1,
            "indexed_pages": 2,
            "indexing_operations_this_month": 2,
            "refused_searches_this_month": 0,
            "most_indexed_pages_this_month": 2,
            "pages_crawled_this_month": 0,
            "asks_today": 0,
        },
        "limits": {
            "max_sites": 10,
            "max_api_keys": 10,
            "searches_per_month": 300_000,
            "asks_per_day": 200,
            "unlimited": False,
        },
        "failed_sources": [],
        "troubles": [],
        "exposed_keys": [],
    }


def operations(tenant: Tenant) -> int:
    return int(assert_ok(tenant.private.get("/dashboard"))["usage"]["indexing_operations_this_month"])


class TestIndexingOperations:
    """Documents written and removed through the API, and operations that clients report."""

    def test_each_distinct_document_id_and_each_removal_counts_once(self, tenant: Tenant) -> None:
        tenant.index(page(1), page(2), page(2))
        tenant.index(page(1))
        assert_ok(tenant.private.delete("/api/v1/index/destroy", json={"id": "page-1"}))
        report = {"operation": "indexing", "count": 10, "index": tenant.site["index"]}
        assert_ok(tenant.private.post("/v1/report-usage", json=report))

        assert operations(tenant) == 2 + 1 + 1 + 10

    def test_rejected_operations_are_not_counted(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", documents=2)
        tenant.index(page(1))

        for documents, code in (([page(2), page(3)], "document_limit_reached"), ([page(2), {}], "validation_failed")):
            rejected = tenant.private.post("/api/v1/index/bulk", json={"documents": documents})
            assert rejected.get_json()["error"] == code
        missing = tenant.private.delete("/api/v1/index/destroy", json={"id": "page-2"})
        assert_error(missing, 404, "document_not_found")

        assert operations(tenant) == 1

    def test_operations_failed_by_an_engine_outage_count_only_when_retried(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        indexer = tenant.app.extensions["runtime"].indexer

        def refuse(*args: object) -> None:
            raise BackendUnavailable("away")

        def send() -> list[int]:
            bulk = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(1), page(2)]})
            return [bulk.status_code, tenant.private.delete("/api/v1/index/destroy?id=page-2").status_code]

        with monkeypatch.context() as patch:
            patch.setattr(indexer, "apply", refuse)
            assert send() == [503, 503]
        assert operations(tenant) == 0

        assert send() == [200, 200]
        assert operations(tenant) == 3

    def test_operations_count_per_account_in_the_month_they_arrive(self, app: Flask) -> None:
        with time_machine.travel(datetime(2031, 5, 31, 23, 59, tzinfo=UTC), tick=False) as clock:
            ann, eve = (register_tenant(app, f"{name}@example.com") for name in ("ann", "eve"))
            ann.index(page(1), page(2))
            assert (operations(ann), operations(eve)) == (2, 0)
            clock.shift(60)
            assert operations(ann) == 0
            ann.index(page(3))
            assert operations(ann) == 1

    def test_losing_the_counter_store_does_not_lose_operations(self, tenant: Tenant) -> None:
        part = tenant.app.extensions["runtime"]
        tenant.index(page(1))
        part.usage_copies.finish()
        tenant.index(page(2))

        part.counters.clear()
        part.usage_copies.finish()

        assert operations(tenant) == 2

    def test_documents_imported_by_the_operator_count_as_operations(self, tenant: Tenant, tmp_path: Path) -> None:
        file = tmp_path / "pages.jsonl"
        file.write_text("\n".join(json.dumps(page(number)) for number in range(3)))

        done = tenant.app.test_cli_runner().invoke(
            args=["documents", "import", "--site", str(tenant.site_id), str(file)]
        )

        assert done.exit_code == 0, done.output
        assert operations(tenant) == 3


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "application/*", "text/html;q=0.5, application/json"]
)
def test_dashboard_returns_json_by_default(tenant: Tenant, accept: str | None) -> None:
    headers = {} if accept is None else {"Accept": accept}

    for client in (tenant.private, tenant.browser):
        response = client.get("/dashboard", headers=headers)
        assert_ok(response)
        assert response.mimetype == "application/json"


def test_disabled_keys_count_and_deleted_keys_do_not(tenant: Tenant) -> None:
    tenant.browser.post(f"/api/keys/{tenant.keys['public']['id']}/toggle")
    tenant.browser.delete(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}")

    assert assert_ok(tenant.browser.get("/dashboard"))["apiKeyCount"] == 2


def test_dashboard_totals_include_all_sites_of_the_account(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}).get_json()["site"]["id"]
    tenant.index(page(1))
    tenant.private.post(f"/api/v1/index/bulk?site_id={other}", json={"documents": [page(1), page(2)]})

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert (answer["siteCount"], answer["usage"]["indexed_pages"]) == (2, 3)


def test_dashboard_excludes_other_accounts(tenant: Tenant, stranger: Tenant) -> None:
    stranger.index(page(1))
    stranger.find("page")

    answer = assert_ok(tenant.private.get("/dashboard"))

    assert (answer["siteCount"], answer["apiKeyCount"]) == (1, 3)
    assert set(answer["usage"].values()) == {0}
