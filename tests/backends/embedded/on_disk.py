"""The on-disk index used by tests of crashes and merging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import orjson
import pytest

from backends.embedded.backend import TantivyBackend
from backends.embedded.index.disk import DiskStore
from backends.registry import create_backend

NAME = "site_1"


@pytest.fixture(name="url")
def url_fixture(tmp_path: Path) -> str:
    return f"tantivy://{tmp_path}/indexes"


@pytest.fixture(name="backend")
def backend_fixture(url: str) -> Iterator[TantivyBackend]:
    backend = cast(TantivyBackend, create_backend(url))
    backend.create_index(NAME)
    yield backend
    backend.close()


def store_of(backend: TantivyBackend) -> DiskStore:
    assert isinstance(backend.store, DiskStore)
    return backend.store


def generation_of(backend: TantivyBackend) -> Path:
    """Return the directory of the index's documents, from the pointer file."""
    folder = store_of(backend).folder(NAME)
    return folder / str(orjson.loads((folder / "current.json").read_bytes())["generation"])
