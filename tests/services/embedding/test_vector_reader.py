"""Searches do not wait for a database that hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, cast

import pytest

from app.services.embedding import stored_vectors as vector_reader
from app.services.embedding.stored_vectors import VectorReader
from app.storage.database import Database


class HangingDatabase:
    """A database whose reads block until released."""

    def __init__(self) -> None:
        self.goes_on = Event()
        self.asked = 0

    @contextmanager
    def read(self) -> Iterator[Any]:
        self.asked += 1
        self.goes_on.wait()
        raise RuntimeError("it went on")
        yield


def test_hanging_database_is_not_queried_again_during_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_reader, "PAUSE_SECONDS", 1000.0)
    database = HangingDatabase()
    reader = VectorReader(cast(Database, database), "stub")
    try:
        assert reader.read(1, ["a"], 4) is None
        assert reader.read(1, ["a"], 4) is None
        assert database.asked == 1
    finally:
        database.goes_on.set()
