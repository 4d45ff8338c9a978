"""Deleted sites: responses to their keys, their absence from lists and quotas, restoring, and purging."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from sqlalchemy import func, select

from app.application import create_app
from app.crawl.sources.runs import ClaimState, claim_run, renew_claim
from app.models import Site, SourceRun, StoredDocument
from app.operations import sites as site_operations
from app.services.indexing import documents
from app.services.usage.quota import NEW_SITES_LIMIT
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, page
from tests.conftest import close_app
from tests.crawl.sources.rows import add_source
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, tzinfo=UTC)


def add_site(tenant: Tenant, name: str = "Shop") -> dict[str, Any]:
    answer = assert_ok(tenant.browser.post("/sites", json={"name": name, "url": "https://shop.example/"}), 201)
    site: dict[str, Any] = answer["site"]
    return site


def add_key(tenant: Tenant, site_id: int, **fields: Any) -> str:
    answer = assert_ok(tenant.browser.post(f"/api/sites/{site_id}/keys", json={"name": "k", **fields}), 201)
    return str(answer["api_key"])


def delete(tenant: Tenant, site_id: int | None = None, query: str = "") -> None:
    assert_ok(tenant.browser.delete(f"/sites/{tenant.site_id if site_id is None else site_id}{query}"))


def restore(caller: Browser | ApiClient, site_id: int) -> Any:
    return caller.post(f"/sites/{site_id}/restore")


def count(tenant: Tenant, column: Any, *which: Any) -> int:
    with tenant.app.extensions["runtime"].database.read() as session:
        return int(session.scalar(select(func.count(column)).where(*which)))


def test_keys_of_a_deleted_site_get_403_until_it_is_restored(tenant: Tenant) -> None:
    tenant.index(page(1))
    info = assert_ok(tenant.public.get("/v1/client-info"))
    search = f"/engine/indexes/{tenant.site['index']}/search"

    def answers_of_gateway() -> list[int]:
        keys = [ApiClient(tenant.app, info[name]) for name in ("engine_key", "engine_public_key")]
        return [key.post(search, json={"q": "page"}).status_code for key in keys]

    assert answers_of_gateway() == [200, 200]

    delete(tenant)

    for kind, method, path in (
        ("search", "GET", "/v1/search?q=page"),
        ("public", "GET", "/v1/client-info"),
        ("public", "GET", "/v1/suggest?q=pa"),
        ("public", "GET", "/v1/related?id=page-1"),
        ("public", "GET", "/v1/popular"),
        ("public", "POST", "/api/v1/search-log"),
        ("private", "POST", "/api/v1/index/bulk"),
        ("private", "GET", "/sites"),
        ("private", "GET", "/profile/edit"),
        ("private", "POST", f"/sites/{tenant.site_id}/restore"),
        ("public", "GET", f"/customsearch/v1?q=page&key={tenant.tokens['public']}"),
        ("private", "GET", "/dashboard"),
    ):
        answer = tenant.client(kind).call(method, path, **({"json": {}} if method == "POST" else {}))
        assert answer.status_code == 403, (path, answer.get_json())
        if not path.startswith("/customsearch"):  # It has its own error format.
            assert_error(answer, 403, "site_inactive")
    assert answers_of_gateway() == [403, 403]

    assert_ok(restore(tenant.browser, tenant.site_id))

    assert tenant.found_ids("page") == ["page-1"]
    assert_ok(tenant.public.get("/v1/client-info"))
    assert answers_of_gateway() == [200, 403], "public engine keys must be issued again, as after a pause"


def test_deleted_site_is_absent_from_lists_and_quotas(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    site = add_site(tenant)
    add_source(tenant.app, tenant)
    before = assert_ok(tenant.browser.get("/dashboard"))

    delete(tenant)

    listed = assert_ok(tenant.browser.get("/sites"))
    assert ([each["id"] for each in listed["sites"]], listed["total"]) == ([site["id"]], 1)
    after = assert_ok(tenant.browser.get("/dashboard"))
    assert (before["siteCount"], before["apiKeyCount"], before["usage"]["indexed_pages"]) == (2, 3, 2)
    assert (after["siteCount"], after["apiKeyCount"], after["usage"]["indexed_pages"]) == (1, 0, 0)
    key_id = tenant.keys["private"]["id"]
    for method, path in (
        ("GET", f"/sites/{tenant.site_id}"),
        ("PUT", f"/sites/{tenant.site_id}"),
        ("DELETE", f"/sites/{tenant.site_id}"),
        ("GET", f"/api/sites/{tenant.site_id}/keys"),
        ("GET", f"/api/sites/{tenant.site_id}/keys/{key_id}"),
        ("GET", f"/api/sites/{tenant.site_id}/sources"),
        ("GET", f"/sites/{tenant.site_id}/search-settings"),
        ("GET", f"/api/analytics?site_id={tenant.site_id}"),
        ("GET", f"/api/analytics/query?q=x&site_id={tenant.site_id}"),
        ("GET", f"/api/analytics/inbox?site_id={tenant.site_id}"),
    ):
        body = {"json": {"active": True}} if method == "PUT" else {}
        assert_error(tenant.browser.call(method, path, **body), 404, "site_not_found")
    assert_error(tenant.browser.post(f"/api/keys/{key_id}/toggle", json={}), 404, "key_not_found")
    (account,) = json.loads(tenant.app.test_cli_runner().invoke(args=["account", "list", "--json"]).output)
    usage = account["usage"]
    assert (usage["documents"], usage["sites"], usage["keys"]) == (0, 1, 0)


def test_other_keys_cannot_search_or_write_a_deleted_site(tenant: Tenant) -> None:
    site = add_site(tenant)
    private = ApiClient(tenant.app, add_key(tenant, site["id"], type="private"))
    delete(tenant)

    assert_error(private.get(f"/v1/search?q=x&site_id={tenant.site_id}"), 403, "site_inactive")
    sent = {"documents": [page(1)]}
    assert_error(private.post(f"/api/v1/index/bulk?site_id={tenant.site_id}", json=sent), 403, "site_inactive")
    assert_error(private.get(f"/api/v1/documents?site_id={tenant.site_id}"), 404, "site_not_found")


def test_restored_site_keeps_its_settings_and_documents(tenant: Tenant) -> None:
    tenant.index(page(1))
    assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False}))
    before = assert_ok(tenant.browser.get(f"/sites/{tenant.site_id}"))["site"]
    delete(tenant)

    restored = assert_ok(restore(tenant.browser, tenant.site_id))

    assert restored["success"] is True
    assert restored["site"] == {**before, "updated_at": restored["site"]["updated_at"]}
    assert restored["site"]["active"] is False, "the site must be paused"
    assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True}))
    assert tenant.found_ids("page") == ["page-1"]


def test_restoring_twice_has_no_further_effect(tenant: Tenant) -> None:
    delete(tenant)
    first = assert_ok(restore(tenant.browser, tenant.site_id))

    assert assert_ok(restore(tenant.browser, tenant.site_id)) == first


def test_concurrent_restores_by_two_processes_both_succeed(tenant: Tenant) -> None:
    tenant.index(page(1))
    site = add_site(tenant)
    delete(tenant)
    other = create_app(tenant.app.extensions["runtime"].settings, background=False)
    try:
        key = add_key(tenant, site["id"], type="private")
        callers = [ApiClient(tenant.app, key), ApiClient(other, key)]
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda caller: restore(caller, tenant.site_id).status_code, callers))
    finally:
        close_app(other)

    assert answers == [200, 200]
    assert tenant.found_ids("page") == ["page-1"]


def test_strangers_and_other_sites_keys_cannot_restore_or_purge_a_deleted_site(
    tenant: Tenant, stranger: Tenant
) -> None:
    site = add_site(tenant)
    narrow = ApiClient(tenant.app, add_key(tenant, site["id"], type="private", site_only=True))
    delete(tenant)

    for caller in (stranger.browser, stranger.private):
        assert_error(restore(caller, tenant.site_id), 404, "site_not_found")
        assert_error(caller.delete(f"/sites/{tenant.site_id}?purge=true"), 404, "site_not_found")
        erase = f"/api/analytics/visitors?site_id={tenant.site_id}&session_id=a"
        assert_error(caller.delete(erase), 404, "site_not_found")
    assert_error(restore(narrow, tenant.site_id), 403, "insufficient_permission")
    assert_error(narrow.delete(f"/sites/{tenant.site_id}?purge=true"), 403, "insufficient_permission")
    assert_ok(restore(tenant.browser, tenant.site_id))


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**19 - 1])
def test_restoring_an_unknown_site_returns_404(tenant: Tenant, number: int) -> None:
    assert_error(restore(tenant.browser, number), 404, "site_not_found")


def test_deletion_with_wrong_name_or_invalid_parameters_changes_nothing(tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}"
    for query in ("?name=pages", "?name=", "?name=Pages%202", "?name=pages&purge=true"):
        assert_error(tenant.browser.delete(path + query), 400, "validation_failed", field="name")
    assert_error(tenant.browser.delete(path + "?purge=yes"), 400, "validation_failed", field="purge")
    for query, body, field in (
        ("", {"name": "Other"}, "name"),
        ("?name=Pages", {"name": "Other"}, "name"),
        ("?purge=false", {"purge": True}, "purge"),
        ("", {"nam": "Other"}, "nam"),
        ("", {"purge": "yes"}, "purge"),
    ):
        assert_error(tenant.browser.delete(path + query, json=body), 400, "validation_failed", field=field)
    assert_ok(tenant.browser.get(path))

    assert assert_ok(tenant.browser.delete(path + "?name=%20Pages", json={"name": "Pages"})) == {"success": True}


def test_restore_is_rejected_if_it_would_exceed_the_plan(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    delete(tenant)
    other = add_site(tenant)

    for limits, code in (
        ({"sites": 1}, "site_limit_reached"),
        ({"keys": 2}, "key_limit_reached"),
        ({"documents": 1}, "document_limit_reached"),
    ):
        tenant.set_plan("pro", **limits)
        assert_error(restore(tenant.browser, tenant.site_id), 403, code)
        assert assert_ok(tenant.browser.get("/sites"))["total"] == 1

    tenant.set_plan("pro", sites=2, keys=3, documents=2)
    assert_ok(restore(tenant.browser, tenant.site_id))
    assert [site["id"] for site in assert_ok(tenant.browser.get("/sites"))["sites"]] == [tenant.site_id, other["id"]]


def test_restored_site_coexists_with_a_new_site_of_the_same_name_and_url(tenant: Tenant) -> None:
    tenant.index(page(1))
    delete(tenant)
    fields = {name: tenant.site[name] for name in ("name", "url")}
    again = assert_ok(tenant.browser.post("/sites", json=fields), 201)["site"]

    assert_ok(restore(tenant.browser, tenant.site_id))

    assert again["id"] != tenant.site_id
    assert tenant.found_ids("page") == ["page-1"]
    assert assert_ok(tenant.browser.get(f"/sites/{again['id']}"))["site"]["indexed_pages"] == 0


def test_key_cached_by_another_process_follows_deletion_and_restore_at_once(tenant: Tenant) -> None:
    tenant.index(page(1))
    other = create_app(tenant.app.extensions["runtime"].settings, background=False)
    try:
        search = ApiClient(other, tenant.tokens["search"])
        assert_ok(search.get("/v1/search?q=page"))
        assert_ok(search.get("/v1/search?q=page"))

        delete(tenant)
        assert_error(search.get("/v1/search?q=page"), 403, "site_inactive")

        assert_ok(restore(tenant.browser, tenant.site_id))
        assert [hit["id"] for hit in assert_ok(search.get("/v1/search?q=page"))["results"]["hits"]] == ["page-1"]
    finally:
        close_app(other)


def test_bulk_request_overtaken_by_deletion_stores_nothing(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is valid when checked, but the site is deleted before the transaction begins."""
    prepared = documents.DocumentWriter.put

    def deleted_in_between(self: Any, *args: Any, **kwargs: Any) -> Any:
        delete(tenant)
        return prepared(self, *args, **kwargs)

    monkeypatch.setattr(documents.DocumentWriter, "put", deleted_in_between)

    answer = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(1)]})

    assert_error(answer, 403, "site_inactive")
    assert count(tenant, StoredDocument.id) == 0


def test_deleting_a_site_cancels_its_run_and_schedules_no_further_runs(tenant: Tenant) -> None:
    database = tenant.app.extensions["runtime"].database
    source = add_source(tenant.app, tenant, schedule="hourly", next_run_at=NOON)
    assert_ok(tenant.private.post(f"/api/sites/{tenant.site_id}/sources/{source.id}/run", json={}))
    with database.write() as session:
        claim = claim_run(session)
    assert claim is not None

    delete(tenant)

    with database.write() as session:
        assert renew_claim(session, claim) is ClaimState.CANCELED
    with time_machine.travel(NOON + timedelta(days=1)):
        tenant.app.extensions["jobs"].run_all()
    assert count(tenant, SourceRun.id, SourceRun.status == "queued") == 0


def test_hook_of_a_deleted_sites_source_gets_403_until_restored(tenant: Tenant) -> None:
    source = add_source(tenant.app, tenant)
    shown = assert_ok(tenant.private.get(f"/api/sites/{tenant.site_id}/sources/{source.id}"))["source"]
    hook = urlsplit(shown["hook_url"]).path
    delete(tenant)

    assert_error(ApiClient(tenant.app).post(hook), 403, "site_inactive")
    assert_ok(restore(tenant.browser, tenant.site_id))
    assert_ok(ApiClient(tenant.app).post(hook))


def test_deleted_site_can_be_restored_for_30_days_and_is_then_purged(tenant: Tenant) -> None:
    private = ApiClient(tenant.app, add_key(tenant, add_site(tenant)["id"], type="private"))
    with time_machine.travel(NOON, tick=False) as clock:
        tenant.index(page(1))
        assert_ok(private.delete(f"/sites/{tenant.site_id}"))
        clock.shift(timedelta(days=30) - timedelta(seconds=1))
        tenant.app.extensions["jobs"].run_all()
        assert_ok(restore(private, tenant.site_id))
        assert_ok(private.delete(f"/sites/{tenant.site_id}"))

        clock.shift(timedelta(days=30))
        assert_error(restore(private, tenant.site_id), 404, "site_not_found")
        assert count(tenant, Site.id) == 2
        tenant.app.extensions["jobs"].run_all()

    assert (count(tenant, Site.id), count(tenant, StoredDocument.id)) == (1, 0)
    assert_error(tenant.search.get("/v1/search?q=x"), 401, "invalid_api_key")


@pytest.mark.parametrize("in_trash", [False, True])
def test_purge_removes_the_site_at_once_even_during_a_run(tenant: Tenant, in_trash: bool) -> None:
    database = tenant.app.extensions["runtime"].database
    tenant.index(page(1))
    source = add_source(tenant.app, tenant)
    assert_ok(tenant.private.post(f"/api/sites/{tenant.site_id}/sources/{source.id}/run", json={}))
    with database.write() as session:
        claim = claim_run(session)
    assert claim is not None
    if in_trash:
        delete(tenant)

    delete(tenant, query="?purge=true")

    with database.write() as session:
        assert renew_claim(session, claim) is ClaimState.LOST
    tenant.app.extensions["jobs"].run_all()
    assert (count(tenant, Site.id), count(tenant, StoredDocument.id)) == (0, 0)
    assert_error(restore(tenant.browser, tenant.site_id), 404, "site_not_found")


def test_interrupted_purge_is_completed_and_cannot_be_undone(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(site_operations, "_purge", lambda *_: None)
        delete(tenant, query="?purge=true")

    assert_error(restore(tenant.browser, tenant.site_id), 404, "site_not_found")
    tenant.app.extensions["jobs"].run_all()
    assert count(tenant, Site.id) == 0


def test_deleting_the_account_purges_its_deleted_sites(tenant: Tenant) -> None:
    tenant.index(page(1))
    delete(tenant)

    assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))
    tenant.app.extensions["jobs"].run_all()

    assert (count(tenant, Site.id), count(tenant, StoredDocument.id)) == (0, 0)


def test_audit_log_records_deletion_restore_and_purge(tenant: Tenant) -> None:
    delete(tenant)
    assert_ok(restore(tenant.browser, tenant.site_id))
    delete(tenant, query="?purge=true")

    entries = assert_ok(tenant.browser.get("/api/audit-log?kind=site"))["entries"]

    assert [entry["action"] for entry in entries] == ["purged", "deleted", "restored", "deleted", "created"]
    assert {entry["object"]["name"] for entry in entries} == {"Pages"}
    assert {entry["actor"]["name"] for entry in entries} == {tenant.email}


def test_trash_is_limited_to_the_plans_sites_and_documents(tenant: Tenant) -> None:
    tenant.set_plan("pro", sites=2, documents=4, keys=20)

    def fill_and_delete(documents: int) -> int:
        site = add_site(tenant)
        key = ApiClient(tenant.app, add_key(tenant, site["id"], type="private"))
        sent = {"documents": [page(number) for number in range(documents)]}
        if documents:
            assert_ok(key.post("/api/v1/index/bulk", json=sent))
        delete(tenant, site["id"])
        return int(site["id"])

    def kept() -> list[int]:
        with tenant.app.extensions["runtime"].database.read() as session:
            return list(session.scalars(select(Site.id).where(Site.deleted_at.is_not(None)).order_by(Site.id)))

    first, second, third = (fill_and_delete(2) for _ in range(3))
    assert kept() == [second, third]
    assert_error(restore(tenant.browser, first), 404, "site_not_found")
    assert count(tenant, StoredDocument.id) == 4

    full = fill_and_delete(4)
    assert kept() == [full]
    assert count(tenant, StoredDocument.id) == 4
    empty = fill_and_delete(0)
    assert kept() == [full, empty]


def test_last_deleted_site_can_be_restored_after_a_downgrade_and_upgrade(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    site = add_site(tenant)
    tenant.set_plan("pro", sites=1, documents=1)

    delete(tenant, site["id"])
    delete(tenant)

    assert_error(restore(tenant.browser, site["id"]), 404, "site_not_found")
    tenant.set_plan("pro")
    assert_ok(restore(tenant.browser, tenant.site_id))


def test_full_trash_does_not_affect_other_accounts(tenant: Tenant, stranger: Tenant) -> None:
    stranger.index(page(1))
    delete(stranger)
    tenant.set_plan("pro", sites=2, documents=1)
    for _ in range(3):
        delete(tenant, add_site(tenant)["id"])

    assert_ok(restore(stranger.browser, stranger.site_id))


def test_account_creates_a_limited_number_of_sites_per_day(tenant: Tenant) -> None:
    tenant.set_plan("pro", sites=2)
    new_site = {"name": "Shop", "url": "https://shop.example/"}
    with time_machine.travel(NOON, tick=False) as clock:
        for _ in range(2 + NEW_SITES_LIMIT):
            created = assert_ok(tenant.private.post("/sites", json=new_site), 201)["site"]
            assert_ok(tenant.private.delete(f"/sites/{created['id']}?purge=true"))
        rejected = tenant.private.post("/sites", json=new_site)
        assert_error(rejected, 429, "rate_limit_exceeded")
        assert rejected.headers["Retry-After"] == str(12 * 3600)

        clock.shift(timedelta(hours=12))
        assert_ok(tenant.private.post("/sites", json=new_site), 201)


def test_a_site_rejected_by_the_plan_does_not_count_as_created(tenant: Tenant) -> None:
    tenant.set_plan("pro", sites=1)
    for _ in range(1 + NEW_SITES_LIMIT + 1):
        answer = tenant.browser.post("/sites", json={"name": "Shop", "url": "https://shop.example/"})
        assert_error(answer, 403, "site_limit_reached")
