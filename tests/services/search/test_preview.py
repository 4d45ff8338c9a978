"""Results with other search settings, on every engine: the preview equals the results after saving."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.clock import now
from app.models import Site
from app.services.search.preview import (
    MAX_QUERIES,
    MAX_QUERY_BYTES,
    QueryPreview,
    frequent_queries,
    preview_settings,
)
from app.services.sites import get_site
from backends.query import SearchQuery, SearchSettings
from backends.registry import create_backend
from schemas.search_settings import SearchSettingsSchema
from schemas.settings_previews import MAX_PREVIEWED_BYTES, MAX_PREVIEWED_QUERIES
from tests import shared_servers
from tests.backends.fakes.meilisearch import FakeMeilisearch
from tests.backends.fakes.typesense import FakeTypesense
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings

PAGES = [
    page(1, title="Car repair", content="We repair every car."),
    page(2, title="Automobile club", content="For drivers."),
    page(3, title="Vehicle tax", content="What a vehicle costs."),
    page(4, title="Car park", content="Where to leave the car."),
    page(5, title="Bread", content="From the bakery."),
    page(6, title="Rolls", content="From the bakery, too."),
]
FAKES = {"typesense": FakeTypesense, "meilisearch": FakeMeilisearch}


@pytest.fixture(params=["memory", *FAKES])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tenant]:
    """A tenant with pages on each engine, or on the engine at TEST_SEARCH_URL."""
    with ExitStack() as stack:
        url = shared_servers.search_url()
        if url and request.param != "memory":
            pytest.skip("one real engine")
        if request.param != "memory":
            url = stack.enter_context(FAKES[request.param]().running()).url
        app = make_app(make_settings(tmp_path, **({"search_url": url} if url else {})))
        stack.callback(close_app, app)
        tenant = register_tenant(app, "ann@example.com")
        for document in PAGES:
            tenant.index(document)
        yield tenant


def load(tenant: Tenant) -> Site:
    with tenant.app.extensions["runtime"].database.read() as session:
        return get_site(session, tenant.account_id, tenant.site_id)


def preview(tenant: Tenant, queries: list[str], **settings: Any) -> dict[str, QueryPreview]:
    part = tenant.app.extensions["runtime"]
    site = load(tenant)
    engine = part.engines.get_engine(site.engine)
    found = preview_settings(engine, part.searcher, site, SearchSettingsSchema().load(settings), queries)
    return {each.query: each for each in found}


def save(tenant: Tenant, **settings: Any) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert response.status_code == 200, response.get_json()
    tenant.settle()


QUERIES = ["car", "automobile", "car club", "vehicle tax", "bakery", "the bakery", '"car" park', "bread -rolls", "*"]
STEPS: list[dict[str, Any]] = [
    {"pinned": [{"query": "car", "ids": ["page-5"]}], "hidden": [{"query": "bakery", "ids": ["page-6"]}]},
    {"synonyms": [["car", "automobile"]], "hidden": [{"query": "car", "ids": ["page-4"]}]},
    {"synonyms": [["car", "automobile"], ["automobile", "vehicle"]], "weights": {"title": 3}},
    {"synonyms": [["vehicle", "car park"], ["bread", "rolls"]], "stop_words": ["the"]},
    {"synonyms": [["bread", "rolls"]], "pinned": [{"query": "bread", "ids": ["page-1", "gone", "page-6"]}]},
    {},
]


def test_preview_matches_search_results_before_and_after_saving(shop: Tenant) -> None:
    for settings in STEPS:
        found = preview(shop, QUERIES, **settings)
        for query in QUERIES:
            assert [each.id for each in found[query].before] == shop.found_ids(query, limit=10), (query, settings)
        save(shop, **settings)
        for query in QUERIES:
            assert found[query].changed == (found[query].before != found[query].after)
            if found[query].is_exact:
                after = found[query].after
                assert [each.id for each in after] == shop.found_ids(query, limit=10), (query, settings)
                assert [each.title for each in after] == [hit["title"] for hit in shop.find(query, limit=10)["hits"]]


def test_preview_is_inexact_only_for_synonyms_stored_in_the_engine(shop: Tenant) -> None:
    keeps_synonyms = shop.app.extensions["runtime"].engines.default.keeps_synonyms
    synonyms = [["car", "automobile"]]
    found = preview(shop, QUERIES, synonyms=synonyms, hidden=[{"query": "car", "ids": ["page-4"]}])

    concerned = {"car", "automobile", "car club", '"car" park'}
    assert {query for query in QUERIES if not found[query].is_exact} == (concerned if keeps_synonyms else set())
    assert ("page-2" in [each.id for each in found["car"].after]) is not keeps_synonyms
    assert "page-4" not in [each.id for each in found["car"].after], (
        "other changed settings must be visible immediately"
    )


def test_preview_changes_neither_settings_results_nor_indexes(shop: Tenant) -> None:
    part = shop.app.extensions["runtime"]
    save(shop, synonyms=[["bread", "rolls"]])
    before = {query: shop.found_ids(query) for query in QUERIES}
    indexes = sorted(part.engines.default.list_indexes())

    settings = {"synonyms": [["car", "automobile"]], "hidden": [{"query": "car", "ids": ["page-4"]}]}
    assert preview(shop, ["car"], **settings)["car"].changed

    assert load(shop).search_settings["synonyms"] == [["bread", "rolls"]]
    assert {query: shop.found_ids(query) for query in QUERIES} == before
    assert sorted(part.engines.default.list_indexes()) == indexes


def test_synonyms_saved_during_a_preview_apply_in_every_process(shop: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    part = shop.app.extensions["runtime"]
    site = load(shop)
    query = SearchQuery("bread", settings=SearchSettings(synonyms=(("bread", "rolls"),)))
    other = create_backend(part.settings.search_url) if part.engines.default.persistent else part.engines.default
    run = part.searcher.run

    def save_meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(part.searcher, "run", run)
        save(shop, synonyms=[["bread", "rolls"]])
        return run(*given)

    monkeypatch.setattr(part.searcher, "run", save_meanwhile)
    preview(shop, ["car", "bakery"], synonyms=[["car", "automobile"]])

    shop.settle()
    assert sorted(hit.id for hit in other.search(site.engine_index, query).hits) == ["page-5", "page-6"]
    assert sorted(shop.found_ids("bread")) == ["page-5", "page-6"]


def test_frequent_queries_are_those_of_the_last_week_sorted_by_count(app: Flask, tenant: Tenant) -> None:
    part = app.extensions["runtime"]
    tenant.index(page(1))
    with time_machine.travel(now() - timedelta(days=8), tick=False):
        tenant.find("long ago")
        part.events.flush()
    for query, times in (("rare", 1), ("Common ", 3), ("some", 2)):
        for _ in range(times):
            tenant.find(query)
    part.events.flush()

    with part.database.read() as session:
        assert frequent_queries(session, tenant.site_id) == ["common", "some", "rare"]
        assert frequent_queries(session, tenant.site_id + 1) == []
    assert (MAX_QUERIES, MAX_QUERY_BYTES) == (MAX_PREVIEWED_QUERIES, MAX_PREVIEWED_BYTES)
