"""Concurrent batches of one site are stored under one revision, each within its own plan limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flask import Flask
from sqlalchemy import select, update

from app.errors import ApiError, ErrorCode
from app.models import Site, StoredDocument
from app.plans import PlanLimits
from app.services.indexing import documents as documents_module
from app.services.indexing.documents import _Batch, _put, _Stored
from schemas.validation.documents import ValidDocument, read_document
from tests.callers import Tenant, page
from tests.responses import assert_error, assert_ok

MAX_SITE_FIELDS = 3


def documents(*numbers: int, title: str = "A page") -> list[ValidDocument]:
    return [read_document(page(number, title=title)) for number in numbers]


@pytest.fixture
def limits(app: Flask) -> PlanLimits:
    return replace(app.extensions["runtime"].plans["business"], documents=3)


def put(app: Flask, tenant: Tenant, limits: PlanLimits, *batches: list[ValidDocument]) -> list[object]:
    with app.extensions["runtime"].database.write() as session:
        shared = [_Batch(limits, batch) for batch in batches]
        written = _put(tenant.account_id, tenant.site_id, MAX_SITE_FIELDS, session, shared)
    return list(written.result)


def created(outcomes: list[object]) -> list[int | str]:
    return [outcome.created if isinstance(outcome, _Stored) else outcome.code for outcome in outcomes]


def stored_sources(app: Flask) -> dict[str, bytes]:
    with app.extensions["runtime"].database.read() as session:
        rows = session.execute(select(StoredDocument.id, StoredDocument.body))
        return {row.id: row.body for row in rows}


def test_id_in_two_batches_is_created_by_the_first_and_has_the_content_of_the_last(
    app: Flask, tenant: Tenant, limits: PlanLimits
) -> None:
    outcomes = put(app, tenant, limits, documents(1, 2), documents(2, 3, title="Another"))

    assert created(outcomes) == [2, 1]
    assert {outcome.revision for outcome in outcomes} == {1}
    assert [document.id for document in outcomes[0].written] == ["page-1", "page-2", "page-3"]
    sources = stored_sources(app)
    assert len(sources) == 3
    assert b"Another" in sources["page-2"]
    assert b"Another" not in sources["page-1"]


def test_batch_beyond_the_plan_limit_is_rejected_alone(app: Flask, tenant: Tenant, limits: PlanLimits) -> None:
    outcomes = put(app, tenant, limits, documents(1, 2), documents(3, 4), documents(1, 3))

    assert created(outcomes) == [2, ErrorCode.DOCUMENT_LIMIT_REACHED, 1]
    assert isinstance(outcomes[1], ApiError)
    assert sorted(stored_sources(app)) == ["page-1", "page-2", "page-3"]
    with app.extensions["runtime"].database.read() as session:
        site = session.get_one(Site, tenant.site_id)
        assert (site.document_count, site.revision) == (3, 1)


def test_nothing_is_written_when_every_batch_is_rejected(app: Flask, tenant: Tenant, limits: PlanLimits) -> None:
    assert created(put(app, tenant, limits, documents(1, 2, 3, 4))) == [ErrorCode.DOCUMENT_LIMIT_REACHED]

    assert stored_sources(app) == {}
    with app.extensions["runtime"].database.read() as session:
        assert session.get_one(Site, tenant.site_id).revision == 0


def having(number: int, *fields: str) -> list[ValidDocument]:
    return [read_document(page(number, **dict.fromkeys(fields, "x")))]


def fields_of(app: Flask, tenant: Tenant) -> set[str]:
    with app.extensions["runtime"].database.read() as session:
        return set(session.get_one(Site, tenant.site_id).field_kinds)


def test_batch_beyond_the_field_limit_is_rejected_alone(app: Flask, tenant: Tenant, limits: PlanLimits) -> None:
    outcomes = put(
        app, tenant, limits, having(1, "a", "b"), having(2, "c", "d"), having(2, "b", "c"), having(3, "a", "e")
    )

    assert created(outcomes) == [1, ErrorCode.VALIDATION_FAILED, 1, ErrorCode.VALIDATION_FAILED]
    assert sorted(stored_sources(app)) == ["page-1", "page-2"]
    assert fields_of(app, tenant) == {"a", "b", "c"}


def test_field_counts_even_if_its_document_is_replaced_in_the_same_transaction(
    app: Flask, tenant: Tenant, limits: PlanLimits
) -> None:
    outcomes = put(app, tenant, limits, having(1, "a", "b"), having(1, "c"), having(1, "d"))

    assert created(outcomes) == [1, 0, ErrorCode.VALIDATION_FAILED]
    assert fields_of(app, tenant) == {"a", "b", "c"}


def test_batch_rejected_by_the_plan_adds_no_fields(app: Flask, tenant: Tenant, limits: PlanLimits) -> None:
    rejected = [*having(1, "a"), *documents(2, 3, 4)]

    assert created(put(app, tenant, limits, rejected, having(5, "b", "c", "d"))) == [
        ErrorCode.DOCUMENT_LIMIT_REACHED, 1,
    ]  # fmt: skip
    assert fields_of(app, tenant) == {"b", "c", "d"}


def test_deletion_marks_of_a_rebuilding_site_are_limited(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_module, "MIN_MARKS", 2)
    tenant.set_plan("pro", documents=2)
    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Site).values(rebuilding=True))

    def send_and_remove(number: int) -> None:
        tenant.index(page(number), page(number + 1))
        assert_ok(tenant.private.post("/api/v1/documents/delete", json={"all": True}))

    send_and_remove(1)
    send_and_remove(3)
    rejected = tenant.private.post("/api/v1/index/bulk", json={"documents": [page(5)]})
    assert_error(rejected, 503, "search_engine_unavailable")
    assert len(stored_sources(app)) == 4

    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Site).values(rebuilding=False))
    send_and_remove(5)
    assert stored_sources(app) == {}
