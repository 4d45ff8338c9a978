"""The engine on disk keeps every promise of the contract, and those of files and processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.base import SearchBackend
from backends.registry import create_backend
from tests.backends.contract import BackendContract, MatchingContract, case_fixture  # noqa: F401


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SearchBackend]:
    backend = create_backend(f"tantivy://{tmp_path}/indexes?indexes=50")
    yield backend
    backend.close()


class TestTantivy(BackendContract, MatchingContract):
    pass
