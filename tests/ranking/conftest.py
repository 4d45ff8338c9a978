"""The shelves, indexed once, and a frozen clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
import time_machine

from tests.ranking.documents import SHELVES
from tests.ranking.engine import Shelf

TODAY = datetime(2024, 6, 1, tzinfo=UTC)
"""The time of all searches: some pages are dated on this day."""


@pytest.fixture(scope="session")
def shelves() -> Iterator[Mapping[str, Shelf]]:
    shelves = {name: Shelf(documents) for name, documents in SHELVES.items()}
    yield shelves
    for shelf in shelves.values():
        shelf.close()


@pytest.fixture(autouse=True)
def _today() -> Iterator[None]:
    with time_machine.travel(TODAY, tick=False):
        yield
