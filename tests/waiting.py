"""Places of a thread pool that note when the current thread only waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backends.servers import waiting


class NotedPlaces:
    """Notes whether the thread waits now.

    Attributes:
        is_waiting: Whether the thread waits now.
        waits: Number of waits that have begun.
    """

    def __init__(self) -> None:
        self.is_waiting = False
        self.waits = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.is_waiting = True
        self.waits += 1
        try:
            yield
        finally:
            self.is_waiting = False


@contextmanager
def noted_places() -> Iterator[NotedPlaces]:
    """Let the current thread work in noted places for as long as the block lasts."""
    places = NotedPlaces()
    waiting.set_worker_pool(places)
    try:
        yield places
    finally:
        del waiting._thread.pool


def noted_calls(monkeypatch: pytest.MonkeyPatch, target: object, name: str, places: NotedPlaces) -> list[bool]:
    """Return a list to which every call of ``target.name`` adds whether the thread waits, before the call."""
    was_waiting: list[bool] = []
    call = getattr(target, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        was_waiting.append(places.is_waiting)
        return call(*args, **kwargs)

    monkeypatch.setattr(target, name, noted)
    return was_waiting
