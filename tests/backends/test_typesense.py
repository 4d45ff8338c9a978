"""Typesense over a fake server: the contract, and what is Typesense's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.registry import create_backend
from backends.typesense import TypesenseBackend
from tests.backends.contract import SHOP, BackendContract, Case, case_fixture  # noqa: F401
from tests.backends.fakes.typesense import FakeTypesense


@pytest.fixture
def server() -> Iterator[FakeTypesense]:
    with FakeTypesense().running() as fake:
        yield fake


@pytest.fixture
def backend(server: FakeTypesense) -> Iterator[TypesenseBackend]:
    backend = create_backend(server.url)
    assert isinstance(backend, TypesenseBackend)
    yield backend
    backend.close()


class TestTypesenseOverAFake(BackendContract):
    pass
