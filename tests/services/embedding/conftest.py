"""An application with an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

import app.runtime
from app.services.embedding import stored_vectors
from tests.callers import Tenant
from tests.conftest import close_app, make_app, make_settings, register_tenant
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_ok
from tests.services.embedding.stub_embedder import StubEmbedder


@pytest.fixture
def embedder() -> StubEmbedder:
    return StubEmbedder()


@pytest.fixture
def semantic_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: StubEmbedder) -> Iterator[Flask]:
    monkeypatch.setattr(app.runtime, "create_embedder", lambda settings: embedder)
    # On a busy machine, reading vectors takes longer than a search waits.
    monkeypatch.setattr(stored_vectors, "READ_SECONDS", PATIENCE_SECONDS)
    application = make_app(make_settings(tmp_path))
    yield application
    close_app(application)


@pytest.fixture
def site(semantic_app: Flask) -> Tenant:
    """A site with semantic search."""
    tenant = register_tenant(semantic_app, "ann@example.com")
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"semantic": True}))
    return tenant
