"""Data that moves: copied folders, restored databases, and engines at another location."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from prometheus_client import REGISTRY
from sqlalchemy import text

from app.config import ConfigurationError
from app.services.engines import EngineLocks, Engines
from app.services.indexing import indexer, site_indexes
from app.services.indexing.site_indexes import missing_indexes, outdated_indexes
from app.storage.database import StorageUnavailable
from app.storage.machine_process import FileLocks, Locks
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import disk, state
from backends.embedded.index.schema import SCHEMA_VERSION
from backends.errors import BackendUnavailable, EngineNotAsked, IndexNotFound
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.shared_servers import database_url

KEPT = ("service.db", "service.db-wal", "service.db-shm")

pytestmark = pytest.mark.skipif(database_url(Path("x")) != "", reason="what is copied here is a SQLite file")


def start(folder: Path, **settings: Any) -> Flask:
    """Start an installation on the embedded engine on disk, with the data in ``folder``."""
    had_data = (folder / "service.db").exists()
    values = {"search_url": "", **settings}
    if not had_data:
        return make_app(make_settings(folder, **values))
    kept = (folder / "service.db").read_bytes()
    app = make_app(make_settings(folder, **values))
    (folder / "service.db").write_bytes(kept)
    return app


@pytest.fixture
def original(tmp_path: Path) -> Iterator[Tenant]:
    """A tenant with two pages, on disk."""
    app = start(tmp_path / "original")
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1), page(2))
    yield tenant
    close_app(app)


def copy(tenant: Tenant, folder: Path, *, indexes: bool) -> None:
    """Copy a stopped service's DATA_DIR as an operator does."""
    part = tenant.app.extensions["runtime"]
    with part.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    folder.mkdir()
    for name in ("service.db", "counters.db", "counters.db-wal"):
        if (part.settings.data_path / name).exists():
            shutil.copy(part.settings.data_path / name, folder / name)
    if indexes:
        shutil.copytree(part.settings.data_path / "indexes", folder / "indexes")


def found(tenant: Tenant, app: Flask) -> list[str]:
    """Return the IDs of the pages that the tenant's key finds on another installation."""
    answer = ApiClient(app, tenant.tokens["search"]).get("/v1/search?q=page")
    assert answer.status_code == 200, answer.get_json()
    return sorted(hit["id"] for hit in answer.get_json()["results"]["hits"])


@pytest.mark.parametrize("indexes", [True, False])
def test_copied_data_folder_is_searchable_at_once_and_independent(
    original: Tenant, tmp_path: Path, indexes: bool
) -> None:
    copy(original, tmp_path / "copy", indexes=indexes)
    moved = start(tmp_path / "copy")

    assert found(original, moved) == ["page-1", "page-2"]

    ApiClient(moved, original.tokens["private"]).post("/api/v1/index/bulk", json={"documents": [page(3)]})
    assert found(original, moved) == ["page-1", "page-2", "page-3"]
    assert found(original, original.app) == ["page-1", "page-2"], "the copy wrote to the original"
    close_app(moved)


def test_missing_indexes_are_detected_and_restored_without_a_search(original: Tenant, tmp_path: Path) -> None:
    register_tenant(original.app, "without@example.com")
    copy(original, tmp_path / "copy", indexes=False)
    moved = start(tmp_path / "copy")
    runtime = moved.extensions["runtime"]

    assert missing_indexes(runtime.database, runtime.engines) == [original.site_id]
    runtime.indexer.restore(original.site_id)

    assert missing_indexes(runtime.database, runtime.engines) == []
    assert len(moved.extensions["runtime"].engines.default.list_indexes()) == 1
    close_app(moved)


def test_outdated_indexes_are_searched_until_they_are_rebuilt_after_an_upgrade(
    original: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = ApiClient(original.app, original.tokens["public"]).get("/v1/client-info").get_json()
    for module in (disk, state):
        monkeypatch.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    part = original.app.extensions["runtime"]
    part.engines.default.close()
    seen: list[list[str]] = []

    def begin(*arguments: Any) -> str:
        seen.append(found(original, original.app))
        ApiClient(original.app, original.tokens["private"]).post("/api/v1/index/bulk", json={"documents": [page(3)]})
        seen.append(found(original, original.app))
        return indexer.begin_index(*arguments)

    monkeypatch.setattr(site_indexes, "begin_index", begin)
    assert outdated_indexes(part.database, part.engines) == [original.site_id]

    original.app.extensions["jobs"].restore_indexes()

    assert seen == [["page-1", "page-2"], ["page-1", "page-2", "page-3"]]
    assert outdated_indexes(part.database, part.engines) == []
    assert found(original, original.app) == ["page-1", "page-2", "page-3"]
    gateway = ApiClient(original.app, public["engine_public_key"])
    answer = gateway.post(f"/engine/indexes/{public['index']}/search", json={"q": "page"})
    assert answer.get_json()["estimatedTotalHits"] == 3, "a key that pages use was revoked"


def test_interrupted_rebuild_is_not_searched_and_is_restarted_later(
    original: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = original.app.extensions["runtime"]
    engine = part.engines.default
    engine.delete_index(engine.list_indexes()[0])
    upsert = engine.upsert
    monkeypatch.setattr(indexer, "STEP", 1)

    def upsert_once(*arguments: Any) -> None:
        upsert(*arguments)
        monkeypatch.setattr(engine, "upsert", fail)

    def fail(*_: Any) -> None:
        raise BackendUnavailable("killed")

    monkeypatch.setattr(engine, "upsert", upsert_once)
    assert original.search.get("/v1/search?q=page").status_code == 503
    assert original.search.get("/v1/search?q=page").status_code == 503

    monkeypatch.setattr(engine, "upsert", upsert)
    assert original.search.get("/v1/search?q=page").status_code == 503, "a search must not restart it"
    part.indexer._failures._latest.clear()  # End the pause.
    assert sorted(original.found_ids("page")) == ["page-1", "page-2"]
    original.app.extensions["jobs"].run_all()
    assert len(engine.list_indexes()) == 1


def test_search_returns_503_with_retry_after_while_its_index_is_being_built(
    original: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = original.app.extensions["runtime"]
    part.engines.default.delete_index(part.engines.default.list_indexes()[0])
    monkeypatch.setattr(indexer, "RESTORE_WAIT_SECONDS", 0.0)

    with part.indexer.site_lock(original.site_id):
        answer = original.search.get("/v1/search?q=page")

    assert (answer.status_code, answer.get_json()["error"]) == (503, "search_engine_unavailable")
    assert answer.headers["Retry-After"] == "5"
    assert len(original.found_ids("page")) == 2


def test_new_installation_ignores_indexes_left_in_a_shared_engine(original: Tenant, tmp_path: Path) -> None:
    shared = original.app.extensions["runtime"].settings.search_url
    other = start(tmp_path / "other", search_url=shared)
    newcomer = register_tenant(other, "eve@example.com")
    assert newcomer.site_id == original.site_id

    assert newcomer.found_ids("*") == []
    newcomer.index(page("own"))
    assert newcomer.found_ids("page") == ["page-own"]
    assert sorted(original.found_ids("page")) == ["page-1", "page-2"]
    close_app(other)


def test_reindex_moves_sites_of_a_removed_engine_to_the_current_one(original: Tenant, tmp_path: Path) -> None:
    copy(original, tmp_path / "copy", indexes=False)
    moved = start(tmp_path / "copy", search_url=f"tantivy://{tmp_path / 'new'}?name=new")
    assert ApiClient(moved, original.tokens["search"]).get("/v1/search?q=page").status_code == 503

    result = moved.test_cli_runner().invoke(args=["search", "reindex"])

    assert result.exit_code == 0, result.output
    assert found(original, moved) == ["page-1", "page-2"]
    close_app(moved)


def test_reindex_shows_operators_the_words_of_an_engine_that_fails(original: Tenant) -> None:
    runtime = original.app.extensions["runtime"]

    def fail(*args: Any, **kwargs: Any) -> None:
        raise BackendUnavailable("The search engine did not accept the change.") from OSError("disk is full")

    runtime.engines.default.create_index = fail
    result = original.app.test_cli_runner().invoke(args=["search", "reindex"])

    assert result.exit_code == 1
    assert "did not accept the change. (disk is full) The old index stays in use" in " ".join(result.output.split())


def test_two_engines_of_one_kind_require_different_names(tmp_path: Path) -> None:
    first, second = (f"tantivy://{tmp_path / name}" for name in ("first", "second"))

    with pytest.raises(ConfigurationError, match="name=second"):
        make_app(make_settings(tmp_path, search_url=f"{first} {second}"))
    close_app(make_app(make_settings(tmp_path, search_url=f"{first} {second}?name=second")))


def test_files_in_the_data_folder_are_accessible_only_to_the_owner(original: Tenant) -> None:
    folder = original.app.extensions["runtime"].settings.data_path
    modes = {
        str(path.relative_to(folder)): stat.filemode(path.stat().st_mode)
        for path in folder.rglob("*")
        if path.stat().st_mode & 0o077
    }
    assert (folder / "indexes" / original_index(original) / "current.json").exists()
    assert modes == {}


def test_world_readable_index_folder_is_restricted_at_startup(tmp_path: Path) -> None:
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes").chmod(0o755)
    app = start(tmp_path)
    register_tenant(app, "ann@example.com").index(page(1))

    assert stat.S_IMODE((tmp_path / "indexes").stat().st_mode) == 0o700
    close_app(app)


def original_index(tenant: Tenant) -> str:
    part = tenant.app.extensions["runtime"]
    with part.database.read() as session:
        return str(session.scalar(text("SELECT engine_index FROM sites")))


class UnavailableLocks(Locks):
    """Locks on a full disk."""

    def hold(self, name: str) -> AbstractContextManager[None]:
        raise StorageUnavailable("full")

    def try_hold(self, name: str) -> AbstractContextManager[bool]:
        raise StorageUnavailable("full")


def test_unavailable_locks_fail_changes_of_an_engine_but_no_search() -> None:
    locks = EngineLocks(UnavailableLocks())
    with locks.try_hold("synonyms_site_1") as is_held:
        assert not is_held
    with pytest.raises(BackendUnavailable), locks.hold("synonyms_site_1"):
        pass


def test_engines_and_other_processes_share_locks(tmp_path: Path) -> None:
    locks, other = EngineLocks(FileLocks(tmp_path)), FileLocks(tmp_path)
    with other.hold("synonyms_site_1"), locks.try_hold("synonyms_site_1") as is_held:
        assert not is_held
    with locks.hold("synonyms_site_1"), other.try_hold("synonyms_site_1") as is_held:
        assert not is_held


def test_operations_that_did_not_reach_an_engine_are_counted(tmp_path: Path) -> None:
    class Silent(TantivyBackend):
        def count(self, index: str) -> int:
            raise EngineNotAsked

    engine = Engines(Silent.from_url(f"tantivy://{tmp_path}?name=silent")).default
    labels = {"engine": engine.identity}
    with pytest.raises(EngineNotAsked):
        engine.count("a")
    assert REGISTRY.get_sample_value("search_engine_not_asked_total", labels) == 1
    with pytest.raises(IndexNotFound):
        engine.delete("a", ["1"])
    assert REGISTRY.get_sample_value("search_engine_not_asked_total", labels) == 1
