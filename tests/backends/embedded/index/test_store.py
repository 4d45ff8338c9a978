"""Many indexes in one process: open indexes are limited, and idle indexes use no resources."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import open_indexes
from backends.embedded.index.disk import DiskStore
from backends.embedded.index.open_indexes import IDLE_SECONDS
from backends.embedded.query import variants
from backends.query import SearchQuery

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")

ENGINE_THREAD = "thread-tantivy"
"""Name prefix of tantivy's watcher threads, as truncated by the kernel."""


class Clock:
    """A monotonic clock that moves only when a test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(open_indexes, "monotonic", clock)
    return clock


def make_backend(root: Path, capacity: int = 100) -> TantivyBackend:
    return TantivyBackend(DiskStore(root, capacity, 30.0), name="tantivy", identity="t", persistent=True)


_EARLIER: set[str] = set()


@pytest.fixture(autouse=True)
def _threads_of_other_tests() -> None:
    _EARLIER.clear()
    _EARLIER.update(_threads_of_engine())


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[TantivyBackend]:
    backend = make_backend(tmp_path / "indexes")
    yield backend
    backend.close()


def fill(backend: TantivyBackend, count: int) -> list[str]:
    """Create closed indexes with one document each."""
    names = [f"site_{number}" for number in range(count)]
    for name in names:
        backend.create_index(name)
        add(backend, name, name)
    backend.close()
    eventually(lambda: engine_threads() == 0)
    return names


def add(backend: TantivyBackend, name: str, id: str) -> None:
    backend.upsert(name, [Document(id, {"id": id, "title": "word", "content": "", "url": "/"}, 1)], {})


def total(backend: TantivyBackend, name: str, text: str = "word") -> int:
    return backend.search(name, SearchQuery(text)).total


def store_of(backend: TantivyBackend) -> DiskStore:
    assert isinstance(backend.store, DiskStore)
    return backend.store


def engine_threads() -> int:
    """Count the engine threads of this test, without threads of indexes that other tests left open."""
    return len(_threads_of_engine() - _EARLIER)


def _threads_of_engine() -> set[str]:
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # The thread has ended.
            if (task / "comm").read_text().startswith(ENGINE_THREAD):
                found.add(task.name)
    return found


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def mapped(root: Path) -> int:
    return Path("/proc/self/maps").read_text().count(str(root))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for engine threads, which check twice a second whether they are still needed."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        gc.collect()  # Reference cycles of other tests also hold indexes; collecting them is slow.
        time.sleep(0.25)


@pytest.mark.slow
def test_open_index_uses_one_thread_and_no_file_descriptor(backend: TantivyBackend) -> None:
    names = fill(backend, 12)
    files, before = descriptors(), threading.active_count()
    for name in names * 3:
        assert total(backend, name) == 1
    assert descriptors() == files
    assert engine_threads() <= len(names)
    assert threading.active_count() <= before + 1


@pytest.mark.slow
def test_idle_index_is_closed_and_reopened_on_demand(backend: TantivyBackend, clock: Clock, tmp_path: Path) -> None:
    names = fill(backend, 6)
    for name in names:
        total(backend, name)
    assert mapped(tmp_path) > 0
    clock.now += IDLE_SECONDS - 1
    total(backend, names[0])
    clock.now += 1
    assert store_of(backend).open_indexes.close_idle() == IDLE_SECONDS - 1
    eventually(lambda: engine_threads() == 1)
    clock.now += IDLE_SECONDS
    assert store_of(backend).open_indexes.close_idle() is None
    eventually(lambda: engine_threads() == 0)
    assert mapped(tmp_path) == 0
    assert [total(backend, name) for name in names] == [1] * 6


@pytest.mark.slow
def test_idle_indexes_are_closed_without_another_search(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = fill(backend, 6)
    before = set(threading.enumerate())
    monkeypatch.setattr(open_indexes, "IDLE_SECONDS", 0.05)
    for _ in range(2):
        for name in names:
            total(backend, name)
        eventually(lambda: engine_threads() == 0)
        assert mapped(tmp_path) == 0
        eventually(lambda: set(threading.enumerate()) <= before)


@pytest.mark.slow
def test_closed_store_releases_all_resources_and_can_be_used_again(backend: TantivyBackend, tmp_path: Path) -> None:
    names = fill(backend, 3)
    before = set(threading.enumerate())
    for _ in range(2):
        assert total(backend, names[0]) == 1
        backend.close()
        assert mapped(tmp_path) == 0
        eventually(lambda: engine_threads() == 0)
        eventually(lambda: set(threading.enumerate()) <= before)


def test_writes_made_while_an_index_was_closed_are_noticed(backend: TantivyBackend, clock: Clock) -> None:
    (name,) = fill(backend, 1)
    assert total(backend, name) == 1
    clock.now += IDLE_SECONDS
    store_of(backend).open_indexes.close_idle()
    other = make_backend(store_of(backend).root)
    add(other, name, "another")
    assert total(backend, name) == 2
    other.close()


@pytest.mark.slow
def test_commits_of_other_backends_do_not_add_threads(backend: TantivyBackend) -> None:
    (name,) = fill(backend, 1)
    other = make_backend(store_of(backend).root)
    for number in range(8):
        assert total(backend, name) == number + 1
        add(other, name, f"more{number}")
    other.close()
    assert total(backend, name) == 9
    eventually(lambda: engine_threads() == 1)


@pytest.mark.slow
def test_snapshot_stays_usable_after_its_index_is_evicted(tmp_path: Path) -> None:
    backend = make_backend(tmp_path / "indexes", capacity=2)
    names = fill(backend, 6)
    held = backend.store.snapshot(names[0])
    for name in names[1:]:
        total(backend, name)
    assert held.frequency("title", "word") == 1
    assert held.total == 1
    del held
    gc.collect()
    eventually(lambda: engine_threads() == 2)
    backend.close()


def test_cached_word_variants_survive_reopening_until_the_next_commit(
    backend: TantivyBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fill(backend, 2)
    expanded: list[Any] = []
    expand = variants._expand

    def count_expansions(*arguments: Any) -> Any:
        expanded.append(arguments)
        return expand(*arguments)

    monkeypatch.setattr(variants, "_expand", count_expansions)
    for name in names * 2:
        assert total(backend, name) == 1
        clock.now += IDLE_SECONDS
        store_of(backend).open_indexes.close_idle()
    assert len(expanded) == len(names)
    add(backend, names[0], "another")
    assert [total(backend, name) for name in names] == [2, 1]
    assert len(expanded) == len(names) + 1


def test_word_cache_is_limited_across_all_indexes(tmp_path: Path) -> None:
    backend = make_backend(tmp_path / "indexes", capacity=2)
    names = fill(backend, 4)
    for number in range(open_indexes.CACHED_WORDS_PER_INDEX):
        for name in names:
            total(backend, name, f"word{number}")
    assert len(store_of(backend).open_indexes.snapshot_cache) == 2 * open_indexes.CACHED_WORDS_PER_INDEX
    backend.close()
