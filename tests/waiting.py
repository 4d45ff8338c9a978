"""A thread pool that records when the current thread only waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backends.servers import waiting


class RecordedPool:
    """Records whether the thread waits now.

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
def recorded_pool() -> Iterator[RecordedPool]:
    """Let the current thread work in a recorded pool for as long as the block lasts."""
    pool = RecordedPool()
    waiting.set_worker_pool(pool)
    try:
        yield pool
    finally:
        del waiting._thread.pool


def recorded_calls(monkeypatch: pytest.MonkeyPatch, target: object, name: str, pool: RecordedPool) -> list[bool]:
    """Return a list to which every call of ``target.name`` adds whether the thread waits, before the call."""
    was_waiting: list[bool] = []
    call = getattr(target, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        was_waiting.append(pool.is_waiting)
        return call(*args, **kwargs)

    monkeypatch.setattr(target, name, noted)
    return was_waiting
