"""The engine in memory keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.base import SearchBackend
from backends.registry import create_backend
from tests.backends.contract import BackendContract, MatchingContract, case_fixture  # noqa: F401


@pytest.fixture
def backend() -> Iterator[SearchBackend]:
    backend = create_backend("memory://")
    yield backend
    backend.close()


class TestMemory(BackendContract, MatchingContract):
    pass
