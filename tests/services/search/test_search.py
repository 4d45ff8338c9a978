"""Searches of sites without an index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask

from app.services.indexing import indexer
from backends.base import SearchBackend
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.responses import assert_error


@pytest.fixture
def engine(app: Flask) -> SearchBackend:
    found: SearchBackend = app.extensions["runtime"].engines.default
    return found


@contextmanager
def others_at_its_index(app: Flask, tenant: Tenant) -> Iterator[None]:
    """Hold the lock of the tenant's index as another process does."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with app.extensions["runtime"].indexer.site_lock(tenant.site_id):
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    yield
    done.set()
    thread.join()


def test_new_site_returns_no_hits_while_another_process_creates_its_index(app: Flask, tenant: Tenant) -> None:
    with others_at_its_index(app, tenant):
        results = tenant.find("page", facets="author,*")
        everything = tenant.find("*")
        suggested = tenant.search.get("/v1/suggest?q=page")

    assert suggested.get_json() == {"suggestions": []}
    assert (results["hits"], results["estimatedTotalHits"], results["matched"]) == ([], 0, "some")
    assert (everything["hits"], everything["matched"]) == ([], "all")
    same = tenant.find("page", facets="author,*")
    assert {**same, "processingTimeMs": 0, "query_id": ""} == {**results, "processingTimeMs": 0, "query_id": ""}


@pytest.mark.parametrize(
    ("parameters", "code"), [("sort=nothing", "invalid_sort"), ("facets=nothing", "invalid_facet")]
)
def test_invalid_parameters_are_rejected_without_an_index(
    app: Flask, tenant: Tenant, parameters: str, code: str
) -> None:
    with others_at_its_index(app, tenant):
        assert_error(tenant.search.get(f"/v1/search?q=x&{parameters}"), 400, code)


def test_new_site_returns_no_hits_while_its_engine_is_too_slow_to_create_the_index(
    tenant: Tenant, engine: SearchBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(*_: Any) -> None:
        raise BackendUnavailable("The search engine has not finished in time; it may finish later.")

    monkeypatch.setattr(engine, "create_index", too_slow)

    for _ in range(2):
        assert tenant.find("page")["hits"] == []


def test_new_site_returns_503_while_its_engine_is_unavailable(
    tenant: Tenant, engine: SearchBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise BackendUnavailable

    for method in ("search", "count", "create_index", "check"):
        monkeypatch.setattr(engine, method, away)

    assert_error(tenant.search.get("/v1/search?q=x"), 503, "search_engine_unavailable")


def test_site_with_documents_returns_503_while_its_index_is_missing(
    app: Flask, tenant: Tenant, engine: SearchBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1))
    (index,) = engine.list_indexes()
    engine.delete_index(index)
    monkeypatch.setattr(indexer, "RESTORE_WAIT_SECONDS", 0.0)

    with others_at_its_index(app, tenant):
        assert_error(tenant.search.get("/v1/search?q=page"), 503, "search_engine_unavailable")

    assert tenant.found_ids("page") == ["page-1"]
