"""Restoring earlier search settings from the audit log, and synonyms of engines that store them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.errors import ApiError
from app.models import AuditEntry
from app.operations.search_settings import edit_together, restore_settings
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.audit_log import recording
from app.services.audit_log.entries import SettingsStates, settings_states
from app.services.search_settings import settings_tag, settings_with_defaults
from tests.backends.fakes.meilisearch import FakeMeilisearch
from tests.backends.fakes.typesense import FakeTypesense
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error

Server = FakeTypesense | FakeMeilisearch


def put(tenant: Tenant, **settings: Any) -> None:
    assert tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings).status_code == 200


def entries(tenant: Tenant) -> list[int]:
    """Return changes of settings, oldest first."""
    listed = tenant.private.get("/api/audit-log?kind=search_settings").get_json()["entries"]
    return [entry["id"] for entry in reversed(listed)]


def states(tenant: Tenant, entry_id: int) -> SettingsStates | None:
    with runtime_of(tenant).database.read() as session:
        return settings_states(session, tenant.account_id, entry_id)


def runtime_of(tenant: Tenant) -> Runtime:
    runtime: Runtime = tenant.app.extensions["runtime"]
    return runtime


def caller_of(tenant: Tenant) -> Caller:
    """Return an owner as a caller of operations."""
    with tenant.app.test_request_context("/sites", headers={"Authorization": f"Bearer {tenant.tokens['private']}"}):
        tenant.app.preprocess_request()
        from app.web.callers import current_caller

        return current_caller()


def test_restoring_settings_can_itself_be_undone(tenant: Tenant) -> None:
    put(tenant, distinct="first", rules=[{"id": "a", "do": {"replace": "b"}}], synonyms=[["car", "auto"]])
    put(tenant, distinct="second", boosts=[{"path": "/a/*", "rank": 1}])
    put(tenant, rank_field="third")
    _, second, _ = entries(tenant)

    found = states(tenant, second)
    assert found is not None
    assert settings_with_defaults(found.before)["distinct"] == "first"
    assert settings_with_defaults(found.after)["distinct"] == "second"
    site, unknown = restore_settings(runtime_of(tenant), caller_of(tenant), second)

    settings = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    assert settings == settings_with_defaults(found.before) == settings_with_defaults(site.search_settings)
    assert unknown == []
    assert settings["rules"][0]["id"] == "a"
    undone = states(tenant, entries(tenant)[-1])
    assert undone is not None
    assert undone.before["rank_field"] == "third"
    assert undone.after["distinct"] == "first"


def test_settings_changed_since_are_not_overwritten_by_a_restore(tenant: Tenant) -> None:
    put(tenant, distinct="first")
    put(tenant, distinct="second")

    with pytest.raises(ApiError) as rejected:
        restore_settings(runtime_of(tenant), caller_of(tenant), entries(tenant)[-1], {settings_tag({})})
    assert rejected.value.status == 412


def test_foreign_unrelated_and_unknown_audit_entries_cannot_be_restored(tenant: Tenant) -> None:
    put(tenant, distinct="first")
    stranger = register_tenant(tenant.app, "stranger@example.com")
    site = tenant.private.get("/api/audit-log?kind=site").get_json()["entries"][0]["id"]

    for caller, entry in ((stranger, entries(tenant)[0]), (tenant, site), (tenant, 10**9)):
        with pytest.raises(ApiError) as rejected:
            restore_settings(runtime_of(tenant), caller_of(caller), entry)
        assert rejected.value.status == 404


def test_only_the_newest_settings_states_of_a_site_are_kept(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_STATES", 2)
    for name in ("a", "b", "c", "d"):
        put(tenant, distinct=name)

    assert [states(tenant, entry) is not None for entry in entries(tenant)] == [False, False, True, True]
    with pytest.raises(ApiError) as rejected:
        restore_settings(runtime_of(tenant), caller_of(tenant), entries(tenant)[0])
    assert rejected.value.status == 404


def test_settings_states_above_the_size_limit_are_not_stored(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_STATE_BYTES", 500)
    put(tenant, stop_words=["word" * 20] * 20)
    put(tenant, distinct="a")

    with runtime_of(tenant).database.read() as session:
        kept = list(session.scalars(select(AuditEntry.state).where(AuditEntry.kind == "search_settings")))
    assert [state is None for state in kept] == [False, True]
    assert states(tenant, entries(tenant)[1]) is None
    assert states(tenant, entries(tenant)[0]) is None


def test_purging_a_site_removes_its_settings_states(tenant: Tenant, stranger: Tenant) -> None:
    for caller in (tenant, stranger):
        put(caller, distinct="a")
    assert tenant.private.delete(f"/sites/{tenant.site_id}?purge=true").status_code == 200

    with runtime_of(tenant).database.read() as session:
        found = session.execute(
            select(AuditEntry.site_id, AuditEntry.state).where(AuditEntry.kind == "search_settings")
        ).all()
    assert {row.site_id: row.state is None for row in found} == {tenant.site_id: True, stranger.site_id: False}


def test_settings_of_a_deleted_site_cannot_be_restored(tenant: Tenant) -> None:
    put(tenant, distinct="a")
    (entry,) = entries(tenant)
    assert_error(tenant.private.get("/sites/999/search-settings"), 404, "site_not_found")
    assert tenant.private.delete(f"/sites/{tenant.site_id}").status_code == 200

    assert states(tenant, entry) is None


@pytest.fixture(params=[FakeTypesense, FakeMeilisearch])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param().running() as server:
        yield server


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    """A customer with pages on an engine that stores synonyms."""
    app = make_app(make_settings(tmp_path, search_url=server.url))
    shop = register_tenant(app, "ann@example.com")
    shop.index(page(1, title="Car"), page(2, title="Automobile"))
    yield shop
    close_app(app)


def sent_synonyms(server: Server) -> int:
    """Return how often synonyms were sent to the engine."""
    return sum("synonyms" in str(request.url) and request.method != "GET" for request in server.requests)


def finds_both(shop: Tenant) -> bool:
    shop.settle()
    return sorted(shop.found_ids("car")) == ["page-1", "page-2"]


def test_saving_settings_sends_only_changed_synonyms_to_the_engine(shop: Tenant, server: Server) -> None:
    put(shop, synonyms=[["car", "automobile"]])
    assert sent_synonyms(server) == 1
    put(shop, synonyms=[["car", "automobile"]], distinct="other")
    assert finds_both(shop)
    assert sent_synonyms(server) == 1

    edit_together(runtime_of(shop), caller_of(shop), shop.site_id, lambda settings: settings["synonyms"].clear())
    assert sent_synonyms(server) == 2
    assert not finds_both(shop)

    restore_settings(runtime_of(shop), caller_of(shop), entries(shop)[-1])
    assert sent_synonyms(server) == 3
    assert finds_both(shop)


def test_synonyms_saved_during_an_engine_outage_are_sent_by_a_later_search(shop: Tenant, server: Server) -> None:
    server.fault = lambda request: (500, {}, b"") if request.method != "GET" else None
    put(shop, synonyms=[["car", "automobile"]])
    server.fault = None
    shop.found_ids("car")
    assert finds_both(shop)


def test_rebuilt_index_has_synonyms_before_its_first_search(shop: Tenant, server: Server) -> None:
    put(shop, synonyms=[["car", "automobile"]])
    runtime_of(shop).rebuilder.rebuild(shop.site_id)
    sent = sent_synonyms(server)
    assert finds_both(shop)
    assert sent_synonyms(server) == sent
