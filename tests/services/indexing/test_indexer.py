"""Documents on their way from SQL to the index."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.services.indexing import indexer
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page


def fail(*_: Any) -> Any:
    raise AssertionError("read back from SQL")


def test_what_is_written_alone_is_not_read_back(app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant.index(page(1))
    monkeypatch.setattr(indexer, "_changes", fail)
    monkeypatch.setattr(indexer, "STEP", 2)

    tenant.index(page(2), page(3), page(4), {**page(1), "title": "Changed page", "rank": 5, "note": None})

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3", "page-4"]
    assert tenant.found_ids("changed") == ["page-1"]
    assert tenant.found_ids("page", filters=tenant.equals("rank", "5")) == ["page-1"]


def test_what_is_found_is_what_is_stored(app: Flask, tenant: Tenant) -> None:
    part = app.extensions["runtime"]
    odd = {
        **page(1),
        "id": 7.0,
        "ratio": 1.5e-300,
        "minus": -0.0,
        "big": 2**63 - 1,
        "none": None,
        "tags": ["ä", "\u2028"],
    }
    tenant.index(page(2))
    tenant.index(odd)
    engine, index = part.engines.current, part.engines.current.list_indexes()[0]
    alone = hits(tenant)

    part.rebuilder.rebuild(tenant.site_id)

    assert hits(tenant) == alone
    assert engine.list_indexes() != [index]


def hits(tenant: Tenant) -> list[dict[str, Any]]:
    answer = tenant.search.get("/v1/search?q=*").get_json()
    return [{name: value for name, value in hit.items() if name != "formatted"} for hit in answer["results"]["hits"]]


def test_what_others_left_is_applied_with_it_in_its_order(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = app.extensions["runtime"]
    tenant.index(page(1), page(2))

    def unavailable(*_: Any) -> None:
        raise BackendUnavailable("away", retry_after=1)

    with monkeypatch.context() as away:
        away.setattr(part.engines.current, "upsert", unavailable)
        left = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(3), {**page(1), "title": "Older"}]})
        assert left.status_code == 503
    monkeypatch.setattr(indexer, "FAILURE_PAUSE_SECONDS", 0.0)
    part.indexer._failures.clear()

    tenant.index({**page(1), "title": "Newer"})

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]
    assert tenant.found_ids("newer") == ["page-1"]
    assert tenant.found_ids("older") == []


def test_a_lost_index_gets_more_than_what_is_being_written(app: Flask, tenant: Tenant) -> None:
    engine = app.extensions["runtime"].engines.current
    tenant.index(page(1), page(2))
    engine.delete_index(engine.list_indexes()[0])

    tenant.index(page(3))

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]
