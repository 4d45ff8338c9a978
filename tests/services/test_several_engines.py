"""Several search engines in one installation: the choice for new sites, moves, and engines that are down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app.config import ConfigurationError
from app.models import Site
from app.operations.diagnosis import diagnose
from app.plans import SHIPPED_PLANS
from app.runtime import Runtime
from app.services.indexing.site_indexes import missing_indexes, renew_indexes
from backends.base import SearchBackend, SearchResult
from backends.errors import BackendUnavailable
from backends.query import SearchQuery
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.metrics.samples import scrape, value
from tests.responses import assert_error

FIRST, SECOND, ELSEWHERE = "tantivy:first", "tantivy:second", "typesense:elsewhere"


def urls(folder: Path) -> str:
    return " ".join(f"tantivy://{folder / name}?name={name}" for name in ("first", "second"))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """An installation with two engines."""
    application = make_app(make_settings(tmp_path, search_url=urls(tmp_path), default_plan="pro"))
    yield application
    close_app(application)


def site_of(part: Runtime, site_id: int) -> Site:
    with part.database.read() as session:
        return session.get_one(Site, site_id)


def engine_of(part: Runtime, site_id: int) -> str:
    return site_of(part, site_id).engine


def add_site(tenant: Tenant, name: str) -> int:
    created = tenant.browser.post("/sites", json={"name": name, "url": "https://example.com"})
    assert created.status_code == 201, created.get_json()
    return int(created.get_json()["site"]["id"])


def stop(monkeypatch: pytest.MonkeyPatch, engine: SearchBackend) -> None:
    """Make an engine fail as if its server were down."""

    def fail(*args: object, **kwargs: object) -> None:
        raise BackendUnavailable("The search engine does not respond.")

    for name in ("check", "search", "find_titles", "upsert", "delete", "count", "create_index", "list_indexes"):
        monkeypatch.setattr(engine, name, fail)


def test_new_sites_go_to_the_engine_with_the_fewest_documents(app: Flask, part: Runtime) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    assert [engine_of(part, tenant.site_id) for tenant in (ann, bob)] == [FIRST, SECOND], "empty sites must alternate"

    bob.index(*[page(number) for number in range(5)])
    assert [engine_of(part, add_site(ann, name)) for name in ("one", "two", "three")] == [FIRST] * 3
    ann.index(*[page(number) for number in range(9)])
    assert engine_of(part, add_site(ann, "four")) == SECOND


def test_new_sites_avoid_engines_that_are_down_or_full(
    app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = register_tenant(app, "ann@example.com")
    ann.index(page(1))
    second = part.engines.get_named("second")
    monkeypatch.setattr(second, "free_share", lambda: 0.05)
    part.health.check()
    assert engine_of(part, add_site(ann, "little room there")) == FIRST

    monkeypatch.setattr(part.engines.get_named("first"), "free_share", lambda: 0.05)
    part.health.check()
    assert engine_of(part, add_site(ann, "little room anywhere")) == SECOND

    monkeypatch.undo()
    with monkeypatch.context() as patch:
        stop(patch, second)
        part.health.check()
        assert engine_of(part, add_site(ann, "down")) == FIRST
    part.health.check()
    assert engine_of(part, add_site(ann, "back")) == SECOND


def test_plan_can_name_the_engine_of_its_new_sites(tmp_path: Path) -> None:
    plans = tmp_path / "plans.toml"
    plans.write_text(SHIPPED_PLANS.read_text().replace("[pro]\n", '[pro]\nengine = "second"\n'))
    app = make_app(make_settings(tmp_path, search_url=urls(tmp_path), default_plan="pro", plans_file=str(plans)))
    ann = register_tenant(app, "ann@example.com")
    ann.index(*[page(number) for number in range(5)])
    assert engine_of(app.extensions["runtime"], add_site(ann, "another")) == SECOND
    close_app(app)

    with pytest.raises(ConfigurationError, match="'second'"):
        make_app(make_settings(tmp_path, plans_file=str(plans)))


def found(tenant: Tenant) -> list[str]:
    answer = tenant.search.get("/v1/search?q=page").get_json()
    return sorted(hit["id"] for hit in answer["results"]["hits"])


def test_engine_that_is_down_stops_only_its_own_sites(
    app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    for tenant in (ann, bob):
        tenant.index(page(1))
    stop(monkeypatch, part.engines.get_named("second"))
    part.health.check()

    ann.index(page(2))
    assert found(ann) == ["page-1", "page-2"]
    assert_error(bob.search.get("/v1/search?q=page"), 503, "search_engine_unavailable")
    assert app.test_client().get("/readyz").status_code == 200
    up = [value(scrape(app), "search_dependency_up", dependency=f"engine:{engine}") for engine in (FIRST, SECOND)]
    assert up == [1, 0]
    troubles = [tenant.browser.get("/dashboard").get_json()["troubles"] for tenant in (ann, bob)]
    assert [[trouble["kind"] for trouble in listed] for listed in troubles] == [[], ["engine"]]

    stop(monkeypatch, part.engines.get_named("first"))
    assert_error(app.test_client().get("/readyz"), 503, "search_engine_unavailable")


def test_lost_index_is_noticed_while_another_engine_is_down(
    app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    for tenant in (ann, bob):
        tenant.index(page(1))
    for name, tenant in (("first", ann), ("second", bob)):
        part.engines.get_named(name).delete_index(site_of(part, tenant.site_id).engine_index)
    assert missing_indexes(part.database, part.engines) == [ann.site_id, bob.site_id]
    stop(monkeypatch, part.engines.get_named("second"))
    assert missing_indexes(part.database, part.engines) == [ann.site_id]
    stop(monkeypatch, part.engines.get_named("first"))
    with pytest.raises(BackendUnavailable):
        missing_indexes(part.database, part.engines)


def test_move_accepts_an_engine_name_and_skips_other_sites(app: Flask, part: Runtime) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    for tenant in (ann, bob):
        tenant.index(page(1))
    run = app.test_cli_runner().invoke

    rejected = run(args=["search", "move", "--to", "third"])
    assert rejected.exit_code == 1
    assert "it has tantivy:first, tantivy:second" in rejected.output
    moved = run(args=["search", "move", "--to", "first", "--site", str(bob.site_id), "--json"])
    assert moved.output == f'{{"moved":[{bob.site_id}]}}\n'
    assert [engine_of(part, tenant.site_id) for tenant in (ann, bob)] == [FIRST, FIRST]
    assert run(args=["search", "move", "--to", "tantivy:first", "--json"]).output == '{"moved":[]}\n'
    assert found(ann) == found(bob) == ["page-1"]


def test_restored_sites_stay_on_their_engine_if_it_is_configured(app: Flask, part: Runtime) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    with part.database.write() as session:
        session.get_one(Site, ann.site_id).engine = "typesense:elsewhere"
    with part.database.write() as session:
        assert renew_indexes(session, part.engines) == 2
    assert [engine_of(part, tenant.site_id) for tenant in (ann, bob)] == [FIRST, SECOND]


def test_browsers_cannot_reach_several_engines_directly(tmp_path: Path) -> None:
    two = "typesense://:key@127.0.0.1:9 typesense://:key@127.0.0.1:10?name=second"
    with pytest.raises(ConfigurationError, match="a single search server"):
        make_app(make_settings(tmp_path, search_url=two, search_public_url="https://engine.example.com"))


@pytest.fixture
def bob_elsewhere(app: Flask, part: Runtime) -> tuple[Tenant, Tenant]:
    """Two tenants; the second one's index is on an engine that SEARCH_URL no longer has."""
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    ann.index(page(1))
    bob.index(page(1), page(2))
    with part.database.write() as session:
        session.get_one(Site, bob.site_id).engine = ELSEWHERE
    return ann, bob


def test_missing_engine_is_reported_wherever_an_operator_looks(
    app: Flask, part: Runtime, bob_elsewhere: tuple[Tenant, Tenant], caplog: pytest.LogCaptureFixture
) -> None:
    ann, bob = bob_elsewhere
    sentence = (
        "SEARCH_URL has no engine typesense:elsewhere, which has 1 site with 2 documents: all their searches fail."
    )
    remedies = ("Add the engine to SEARCH_URL again", "`search move --from typesense:elsewhere --to NAME`")

    part.health.check()
    part.health.check()
    (logged,) = [record.getMessage() for record in caplog.records if "no engine" in record.getMessage()]
    (finding,) = [each for each in diagnose(part.settings, part) if each.level == "problem" and each.topic == "sites"]

    assert_error(bob.search.get("/v1/search?q=page"), 503, "search_engine_unavailable")
    assert finding.message == sentence
    for text in (logged, finding.remedy):
        assert all(remedy in text for remedy in remedies)
    assert logged.startswith(sentence)
    samples = scrape(app)
    names = ("search_engine_configured", "search_engine_sites", "search_engine_documents")
    figures = {engine: [value(samples, name, engine=engine) for name in names] for engine in (FIRST, SECOND, ELSEWHERE)}
    assert figures == {FIRST: [1, 1, 1], SECOND: [1, 0, 0], ELSEWHERE: [0, 1, 2]}
    troubles = [tenant.browser.get("/dashboard").get_json()["troubles"] for tenant in (ann, bob)]
    assert [[trouble["kind"] for trouble in listed] for listed in troubles] == [[], ["engine"]]


def test_service_is_ready_as_long_as_a_site_is_on_a_configured_engine(
    app: Flask, part: Runtime, bob_elsewhere: tuple[Tenant, Tenant]
) -> None:
    ann, _ = bob_elsewhere
    assert app.test_client().get("/readyz").status_code == 200

    with part.database.write() as session:
        session.get_one(Site, ann.site_id).engine = ELSEWHERE
    assert_error(app.test_client().get("/readyz"), 503, "search_engine_unavailable")


def test_sites_of_a_missing_engine_can_be_moved(
    app: Flask, part: Runtime, bob_elsewhere: tuple[Tenant, Tenant]
) -> None:
    ann, bob = bob_elsewhere
    part.health.check()
    run = app.test_cli_runner().invoke

    unknown = run(args=["search", "move", "--from", "nowhere", "--to", "second"])
    assert unknown.exit_code == 1
    assert f"the engines are {FIRST}, {SECOND}, {ELSEWHERE}" in unknown.output
    moved = run(args=["search", "move", "--from", ELSEWHERE, "--to", "second", "--json"])
    assert moved.output == f'{{"moved":[{bob.site_id}]}}\n'
    part.health.check()

    assert found(bob) == ["page-1", "page-2"]
    assert engine_of(part, ann.site_id) == FIRST
    assert bob.browser.get("/dashboard").get_json()["troubles"] == []


def test_sites_of_one_account_can_be_moved(app: Flask, part: Runtime) -> None:
    ann, bob = (register_tenant(app, f"{name}@example.com") for name in ("ann", "bob"))
    second_site = add_site(ann, "another")
    run = app.test_cli_runner().invoke

    assert run(args=["search", "move", "--account", ann.email, "--to", "second", "--json"]).exit_code == 0
    assert [engine_of(part, site) for site in (ann.site_id, second_site)] == [SECOND, SECOND]
    assert run(args=["search", "move", "--account", str(ann.account_id), "--to", "first", "--json"]).exit_code == 0
    assert [engine_of(part, site) for site in (ann.site_id, second_site)] == [FIRST, FIRST]
    assert engine_of(part, bob.site_id) == SECOND

    for arguments in (["--account", "nobody@example.com"], ["--account", ann.email, "--site", str(bob.site_id)]):
        assert run(args=["search", "move", *arguments, "--to", "first"]).exit_code == 1
    assert engine_of(part, bob.site_id) == SECOND


def test_site_list_shows_ids_and_engines(app: Flask, part: Runtime, bob_elsewhere: tuple[Tenant, Tenant]) -> None:
    ann, bob = bob_elsewhere

    def listed(*arguments: str) -> list[int]:
        result = app.test_cli_runner().invoke(args=["site", "list", "--json", *arguments])
        return [site["id"] for site in json.loads(result.output)]

    assert listed() == [ann.site_id, bob.site_id]
    assert listed("--engine", ELSEWHERE) == listed("--account", str(bob.account_id)) == [bob.site_id]
    head, *lines = app.test_cli_runner().invoke(args=["site", "list"]).output.splitlines()
    assert head.split() == ["id", "account", "engine", "documents", "url", "name"]
    assert lines[1].split()[:4] == [str(bob.site_id), str(bob.account_id), ELSEWHERE, "2"]
    empty = app.test_cli_runner().invoke(args=["site", "list", "--engine", "nowhere"])
    assert empty.output == "No sites.\n"


def collection_key(tenant: Tenant, site_ids: list[int]) -> ApiClient:
    """Create a collection of sites, and return a program with its search key."""
    sites = [{"site_id": site_id} for site_id in site_ids]
    made = tenant.browser.post("/api/collections", json={"name": "All", "sites": sites}).get_json()["collection"]
    key = tenant.browser.post(f"/api/collections/{made['id']}/keys", json={"name": "Search"}).get_json()
    return ApiClient(tenant.app, key["api_key"])


def test_collection_has_the_hits_of_engines_that_respond(
    app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = register_tenant(app, "ann@example.com")
    ann.index(page(1))
    second = add_site(ann, "second")
    assert engine_of(part, second) == SECOND
    ann.private.post(f"/api/v1/index/bulk?site_id={second}", json={"documents": [page(2)]})
    client = collection_key(ann, [ann.site_id, second])

    def find() -> dict[str, Any]:
        results: dict[str, Any] = client.get("/v1/search?q=page&facets=site").get_json()["results"]
        return results

    whole = find()
    assert {hit["id"] for hit in whole["hits"]} == {"page-1", "page-2"}
    assert "partial" not in whole

    stop(monkeypatch, part.engines.get_named("second"))
    results = find()
    assert [hit["id"] for hit in results["hits"]] == ["page-1"]
    assert (results["partial"], results["estimatedTotalHits"]) == ([second], 1)
    suggestions = client.get("/v1/suggest?q=pag").get_json()["suggestions"]
    assert [suggestion["text"] for suggestion in suggestions] == [page(1)["title"]]

    stop(monkeypatch, part.engines.get_named("first"))
    assert_error(client.get("/v1/search?q=page"), 503, "search_engine_unavailable")
    assert_error(client.get("/v1/suggest?q=pag"), 503, "search_engine_unavailable")


def test_collection_does_not_wait_for_a_server_that_hangs(
    app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = register_tenant(app, "ann@example.com")
    ann.index(page(1))
    second = add_site(ann, "second")
    ann.private.post(f"/api/v1/index/bulk?site_id={second}", json={"documents": [page(2)]})
    client = collection_key(ann, [ann.site_id, second])
    released = threading.Event()
    engine = part.engines.get_named("second")
    search = engine.search

    def hang(index: str, query: SearchQuery) -> SearchResult:
        released.wait(60)
        return search(index, query)

    monkeypatch.setattr(type(engine), "is_remote", True)
    monkeypatch.setattr(engine, "search", hang)
    monkeypatch.setattr("app.services.search.fanout.MAX_SECONDS", 0.05)
    results = client.get("/v1/search?q=page").get_json()["results"]
    released.set()
    assert [hit["id"] for hit in results["hits"]] in ([], ["page-1"])
    assert second in results["partial"]
