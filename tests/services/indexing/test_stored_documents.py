"""Stored documents are read few at a time, however large they are."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event

from app.services.indexing import stored_documents
from app.services.indexing.stored_documents import read_stored
from tests.callers import Tenant, page


def test_stored_documents_are_read_in_the_requested_order_without_missing_ones(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1), page(2), page(3))
    assert tenant.private.delete("/api/v1/index/destroy?id=page-2").status_code == 200

    with app.extensions["runtime"].database.read() as session:
        found = list(read_stored(session, tenant.site_id, ["page-3", "page-2", "nothing", "page-1"]))

    assert [document.id for document in found] == ["page-3", "page-1"]
    assert b"The content of page 3." in found[0].body


def test_large_document_bodies_are_read_in_small_steps(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_documents, "BODIES_STEP_BYTES", 1_000)
    sizes = [100, 900, 100, 2_000, 50, 50]
    tenant.index(*(page(number, content="x" * size) for number, size in enumerate(sizes)))
    database = app.extensions["runtime"].database
    read: list[int] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "documents.body," in statement:
            read.append(len(parameters) - 1)

    event.listen(database.engine, "before_cursor_execute", note)
    with database.read() as session:
        found = list(read_stored(session, tenant.site_id, [f"page-{number}" for number in range(len(sizes))]))

    assert [len(document.body) > 1_000 for document in found] == [size > 900 for size in sizes[:3]] + [True] + 2 * [
        False
    ]
    assert sum(read) == len(sizes)
    assert read[-1] == 2
    assert max(read) == 2
