"""Documents on their way from SQL to the index."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.clock import Backoff, Pauses
from app.models import Site
from app.services.indexing import failures, indexer
from app.services.indexing.site_indexes import find_lagging
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.responses import assert_error
from tests.waiting import recorded_calls, recorded_pool


def fail(*_: Any) -> Any:
    raise AssertionError("read back from SQL")


def test_single_write_is_indexed_without_reading_it_back_from_sql(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1))
    monkeypatch.setattr(indexer, "_changes", fail)
    monkeypatch.setattr(indexer, "STEP", 2)

    tenant.index(page(2), page(3), page(4), {**page(1), "title": "Changed page", "rank": 5, "note": None})

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3", "page-4"]
    assert tenant.found_ids("changed") == ["page-1"]
    assert tenant.found_ids("page", filters=tenant.equals("rank", "5")) == ["page-1"]


def test_indexed_documents_equal_those_after_a_rebuild_from_sql(app: Flask, tenant: Tenant) -> None:
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
    engine, index = part.engines.default, part.engines.default.list_indexes()[0]
    alone = hits(tenant)

    part.rebuilder.rebuild(tenant.site_id)

    assert hits(tenant) == alone
    assert engine.list_indexes() != [index]


def hits(tenant: Tenant) -> list[dict[str, Any]]:
    answer = tenant.search.get("/v1/search?q=*").get_json()
    return [{name: value for name, value in hit.items() if name != "formatted"} for hit in answer["results"]["hits"]]


def test_changes_left_by_failed_writes_are_applied_in_order_with_the_next_write(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = app.extensions["runtime"]
    tenant.index(page(1), page(2))

    def unavailable(*_: Any) -> None:
        raise BackendUnavailable("away", retry_after=1)

    with monkeypatch.context() as away:
        away.setattr(part.engines.default, "upsert", unavailable)
        left = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(3), {**page(1), "title": "Older"}]})
        assert left.status_code == 503
    monkeypatch.setattr(failures, "FAILURE_PAUSE_SECONDS", 0.0)
    part.indexer._failures._latest.clear()

    tenant.index({**page(1), "title": "Newer"})

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]
    assert tenant.found_ids("newer") == ["page-1"]
    assert tenant.found_ids("older") == []


def test_lost_index_is_fully_rebuilt_by_the_next_write(app: Flask, tenant: Tenant) -> None:
    engine = app.extensions["runtime"].engines.default
    tenant.index(page(1), page(2))
    engine.delete_index(engine.list_indexes()[0])

    tenant.index(page(3))

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]


def refuse(*_: Any) -> None:
    raise BackendUnavailable("It has not finished in time.")


def bulk(tenant: Tenant, number: int) -> TestResponse:
    return tenant.private.post("/api/v1/index/bulk", json={"documents": [page(number)]})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(indexer.time, "monotonic", made)
    return made


class Clock:
    """A monotonic clock that only tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sent_at(tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: int) -> list[int]:
    """Write a document each second while the engine rejects every write. Return the seconds of the attempts."""
    sent: list[int] = []

    def note(*_: Any) -> None:
        sent.append(round(clock.now - 1000))
        refuse()

    monkeypatch.setattr(tenant.app.extensions["runtime"].engines.default, "upsert", note)
    for second in range(seconds):
        clock.now = 1000.0 + second
        answer = bulk(tenant, second)
        assert answer.status_code == 503
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    return sent


def test_changes_rejected_by_an_engine_are_retried_at_growing_intervals(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    tenant.index(page("first"))
    whole = Backoff(pauses=Pauses(2.0, 300.0, chance=lambda: 1.0))
    monkeypatch.setattr(tenant.app.extensions["runtime"].indexer._failures, "_backoff", whole)

    assert sent_at(tenant, monkeypatch, clock, 40) == [0, 2, 6, 14, 30]


def test_unavailable_engine_is_retried_every_two_seconds(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    tenant.index(page("first"))
    monkeypatch.setattr(tenant.app.extensions["runtime"].engines.default, "check", refuse)

    assert sent_at(tenant, monkeypatch, clock, 10) == [0, 2, 4, 6, 8]


def test_indexing_error_is_stored_until_the_index_is_complete(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    part = tenant.app.extensions["runtime"]
    tenant.index(page(1))
    with monkeypatch.context() as slow:
        slow.setattr(part.engines.default, "upsert", refuse)
        assert bulk(tenant, 2).status_code == 503
    with part.database.read() as session:
        (lagging,) = find_lagging(session)
    assert lagging.id == tenant.site_id
    assert lagging.error == "It has not finished in time."
    assert lagging.failed_at is not None
    assert lagging.since is not None
    assert lagging.since <= lagging.failed_at

    clock.now += 2
    tenant.index(page(3))

    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]
    with part.database.read() as session:
        assert find_lagging(session) == []
        site = session.get_one(Site, tenant.site_id)
        assert (site.indexing_error, site.indexing_failed_at) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("step_bytes", [1, 1_000, 2_500, 100_000])
def test_large_documents_are_indexed_in_batches_limited_by_bytes(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, step_bytes: int
) -> None:
    part = tenant.app.extensions["runtime"]
    tenant.index(*(page(number, content="word " * 180) for number in range(20)))
    tenant.index(*(page(number, content="other " * 180) for number in range(10, 25)))
    assert tenant.private.delete("/api/v1/index/destroy?id=page-3").status_code == 200
    monkeypatch.setattr(indexer, "STEP_BYTES", step_bytes)
    handed: list[int] = []
    upsert = part.engines.default.upsert

    def note(index: str, documents: Any, kinds: Any) -> None:
        handed.append(sum(len(orjson.dumps(each.fields)) for each in documents))
        upsert(index, documents, kinds)

    monkeypatch.setattr(part.engines.default, "upsert", note)
    part.rebuilder.rebuild(tenant.site_id)

    largest = 1_500
    assert max(handed) <= max(step_bytes, largest)
    found = {id for q in ("word", "other") for id in tenant.found_ids(q, limit=100)}
    assert found == {f"page-{number}" for number in range(25) if number != 3}


def test_disk_without_room_for_a_lock_returns_503_and_the_document_is_indexed_later(app: Flask, tenant: Tenant) -> None:
    part = app.extensions["runtime"]
    if not part.database.is_sqlite:
        pytest.skip("locks are rows of the server")
    locks = part.settings.data_path / "locks"
    locks.write_text("a file where a folder should be")

    rejected = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(1)]})
    assert_error(rejected, 503, "database_unavailable")

    locks.unlink()
    app.extensions["jobs"].run_all()
    assert tenant.found_ids("page") == ["page-1"]


def test_waiting_for_other_writers_lets_other_requests_work(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tenant.app.extensions["runtime"]
    with recorded_pool() as worker_pool:
        written = recorded_calls(monkeypatch, part.engines.default, "upsert", worker_pool)
        tenant.index(page(1))
    assert worker_pool.waits == 3, "a writer waits for two turns and the site's lock"
    assert set(written) == {False}
