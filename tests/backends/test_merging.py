"""Segments are merged into one, without losing anything and while the index is in use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.base import Document, SearchQuery
from backends.embedded import compaction, disk, merging
from backends.embedded.disk import DiskStore
from backends.embedded.merging import Segment, read_segments
from backends.errors import BackendUnavailable
from backends.registry import create_backend
from backends.tantivy import TantivyBackend

NAME = "site_1"


def document(id: int, title: str = "word", **fields: object) -> Document:
    return Document(str(id), {"id": str(id), "title": title, "content": "", "url": "/", **fields}, 7 * id)  # type: ignore[dict-item]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"tantivy://{tmp_path}/indexes"


@pytest.fixture
def backend(url: str) -> Iterator[TantivyBackend]:
    backend = cast(TantivyBackend, create_backend(url))
    backend.create_index(NAME)
    yield backend
    backend.close()


def store_of(backend: TantivyBackend) -> DiskStore:
    assert isinstance(backend.store, DiskStore)
    return backend.store


def generation_of(backend: TantivyBackend) -> Path:
    folder = store_of(backend).folder(NAME)
    return folder / str(orjson.loads((folder / "current.json").read_bytes())["generation"])


def segments(backend: TantivyBackend) -> list[Segment]:
    return read_segments(generation_of(backend))


def put(backend: TantivyBackend, numbers: Sequence[int], title: str = "word") -> None:
    backend.upsert(NAME, [document(number, title) for number in numbers], {})


def number_of_waiting() -> int:
    return [thread.name for thread in threading.enumerate()].count("index-merge")


def wait_until_merged(backend: TantivyBackend, within_seconds: float = 20) -> None:
    deadline = time.monotonic() + within_seconds
    while len(segments(backend)) > 1 and time.monotonic() < deadline:
        assert backend.search(NAME, SearchQuery("word")).total
        time.sleep(0.02)
    assert len(segments(backend)) == 1


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large, and how long nobody must write, is made small."""
    monkeypatch.setattr(compaction, "LARGE_SEGMENT", 5)
    monkeypatch.setattr(disk, "QUIET_SECONDS", 0.3)


def test_large_segments_become_one(backend: TantivyBackend) -> None:
    size = 10_050
    for start in (0, size, 2 * size):
        put(backend, range(start, start + size))
    put(backend, [0, 1, size], "changed")
    backend.delete(NAME, [str(3 * size - 1)])
    backend.store.settle()
    assert sum(segment.alive >= 10_000 for segment in segments(backend)) == 3
    before = generation_of(backend)
    assert compaction.compact(store_of(backend), NAME)
    (only,) = segments(backend)
    assert (only.documents, only.dead) == (3 * size - 1, 0)
    assert not before.exists()
    assert {path.name.partition(".")[0] for path in generation_of(backend).glob("*.*") if path.name[0] != "."} == {
        only.name, "meta",
    }  # fmt: skip
    assert set(backend.document_ids(NAME)) == {str(number) for number in range(3 * size - 1)}
    assert {hit.id for hit in backend.search(NAME, SearchQuery("changed")).hits} == {"0", "1", str(size)}
    newest = backend.search(NAME, SearchQuery("*", limit=2)).hits
    assert [hit.id for hit in newest] == [str(3 * size - 2), str(3 * size - 3)]
    put(backend, [4], "changed")
    assert backend.search(NAME, SearchQuery("changed")).total == 4


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 30])
def test_indexes_of_any_size_are_merged(backend: TantivyBackend, count: int) -> None:
    for number in range(count):
        put(backend, [number, 1000 + number])
    backend.delete(NAME, ["1000"])
    backend.store.settle()
    assert compaction.compact(store_of(backend), NAME)
    assert sum(segment.dead for segment in segments(backend)) == 0
    assert backend.count(NAME) == 2 * count - 1
    assert set(backend.document_ids(NAME)) == {str(n) for n in range(count)} | {str(1000 + n) for n in range(1, count)}


def test_an_index_without_documents_is_merged(backend: TantivyBackend) -> None:
    assert compaction.compact(store_of(backend), NAME)
    put(backend, [1])
    backend.delete(NAME, ["1"])
    backend.store.settle()
    assert compaction.compact(store_of(backend), NAME)
    assert backend.count(NAME) == 0
    put(backend, [2])
    assert list(backend.document_ids(NAME)) == ["2"]


def test_fields_of_their_own_and_times_of_change_stay(backend: TantivyBackend) -> None:
    from tests.backends.contract import Case, page

    case = Case(backend, NAME)
    for number in range(4):
        case.add(page(f"p{number}", "word", price=number, colour=f"c{number}"))
    backend.store.settle()
    before = backend.search(NAME, SearchQuery("*")).hits
    assert compaction.compact(store_of(backend), NAME)
    assert backend.search(NAME, SearchQuery("*")).hits == before
    assert case.ids("word", "price >= 2 AND colour = c3") == ["p3"]


@pytest.mark.usefixtures("hurried")
def test_an_index_in_many_large_segments_is_merged_when_it_is_left_alone(backend: TantivyBackend) -> None:
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    assert len(segments(backend)) == 5
    wait_until_merged(backend)
    assert backend.count(NAME) == 100
    assert set(backend.document_ids(NAME)) == {str(number) for number in range(100)}


@pytest.mark.usefixtures("hurried")
def test_it_is_not_merged_while_others_write(backend: TantivyBackend, url: str) -> None:
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    other = create_backend(url)
    first = generation_of(backend)
    for _ in range(12):
        other.upsert(NAME, [document(5, "word again")], {})
        time.sleep(0.1)
        assert generation_of(backend) == first
    wait_until_merged(backend)
    assert backend.count(NAME) == 100
    other.close()


@pytest.mark.usefixtures("hurried")
def test_it_is_merged_at_last_although_others_write(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LONGEST_WAIT_SECONDS", 0.5)
    monkeypatch.setattr(compaction, "MOST_LARGE_SEGMENTS", 0)
    monkeypatch.setattr(compaction, "SCATTERED_SHARE", 0)
    first = generation_of(backend)
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    deadline = time.monotonic() + 20
    number = 100
    while generation_of(backend) == first and time.monotonic() < deadline:
        put(backend, [number])
        number += 1
        time.sleep(0.1)
    assert generation_of(backend) != first
    backend.store.settle()
    assert set(backend.document_ids(NAME)) == {str(each) for each in range(number)}


@pytest.mark.usefixtures("hurried")
def test_whoever_stops_does_not_wait_for_it(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "QUIET_SECONDS", 60.0)
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    deadline = time.monotonic() + 10
    while number_of_waiting() > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert number_of_waiting() == 1
    started = time.monotonic()
    backend.close()
    assert time.monotonic() - started < 5
    assert len(segments(backend)) == 5


@pytest.mark.usefixtures("hurried")
def test_an_index_that_is_removed_meanwhile_is_let_go(
    backend: TantivyBackend, caplog: pytest.LogCaptureFixture
) -> None:
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    backend.delete_index(NAME)
    backend.store.settle()
    assert not caplog.records
    assert backend.list_indexes() == []


@pytest.mark.parametrize(("sizes", "scattered"), [
    ([20, 20, 20], False), ([20, 20, 20, 20], True), ([20, 20, 20, 4, 4, 4], False), ([1000, 20, 20, 20], False),
    ([1000, 100, 100, 100], True),
])  # fmt: skip
@pytest.mark.usefixtures("hurried")
def test_what_counts_as_scattered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], scattered: bool
) -> None:
    monkeypatch.setattr(compaction, "_segments_of", lambda folder: [Segment("s", size + 3, 3, None) for size in sizes])
    assert compaction.is_scattered(tmp_path) is scattered


def test_if_the_engine_does_not_merge_the_index_stays_as_it_was(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_SEGMENTS_IN_MERGE", 4)
    for number in range(3):
        put(backend, [number, number + 10])
    backend.store.settle()
    first = generation_of(backend)
    with pytest.raises(BackendUnavailable, match="were not merged: 4 are left"):
        compaction.compact(store_of(backend), NAME)
    assert generation_of(backend) == first
    assert [path for path in first.parent.iterdir() if path.is_dir()] == [first]
    assert backend.count(NAME) == 6
    put(backend, [50])
    assert backend.count(NAME) == 7


def test_files_are_copied_where_they_cannot_be_linked(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(merging.os, "link", refuse)
    put(backend, [1, 2])
    backend.delete(NAME, ["1"])
    backend.store.settle()
    assert compaction.compact(store_of(backend), NAME)
    assert list(backend.document_ids(NAME)) == ["2"]
    assert sum(segment.documents for segment in segments(backend)) == 1


_STEPS = st.tuples(st.sampled_from(["put", "put", "remove", "merge"]), st.sets(st.integers(0, 30), max_size=12))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_STEPS, max_size=14))
def test_whatever_was_written_before_the_same_documents_are_there_after(
    backend: TantivyBackend, steps: list[tuple[str, set[int]]]
) -> None:
    backend.delete_index(NAME)
    backend.create_index(NAME)
    expected: dict[str, str] = {}
    for step, (what, numbers) in enumerate(steps):
        if what == "put":
            put(backend, sorted(numbers), f"word{step}")
            expected |= {str(number): f"word{step}" for number in numbers}
        elif what == "remove":
            backend.delete(NAME, [str(number) for number in numbers])
            expected = {id: title for id, title in expected.items() if int(id) not in numbers}
        else:
            backend.store.settle()
            assert compaction.compact(store_of(backend), NAME)
            assert sum(segment.documents for segment in segments(backend)) == len(expected)
    backend.store.settle()
    hits = backend.search(NAME, SearchQuery("*", limit=100)).hits
    assert {hit.id: hit.document["title"] for hit in hits} == expected
