"""Segments are merged into one without losing documents, while the index is in use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.base import Document
from backends.embedded import maintenance
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.generations import STORED_BLOCK_BYTES, Segment, read_segments
from backends.errors import BackendUnavailable
from backends.query import SearchQuery
from backends.registry import create_backend
from tests.backends.embedded.on_disk import NAME, backend_fixture, generation_of, store_of, url_fixture  # noqa: F401
from tests.patience import PATIENCE_SECONDS


def document(id: int, title: str = "word", **fields: object) -> Document:
    return Document(str(id), {"id": str(id), "title": title, "content": "", "url": "/", **fields}, 7 * id)


def segments(backend: TantivyBackend) -> list[Segment]:
    return read_segments(generation_of(backend))


def put(backend: TantivyBackend, numbers: Sequence[int], title: str = "word") -> None:
    backend.upsert(NAME, [document(number, title) for number in numbers], {})


def age(backend: TantivyBackend, seconds: float) -> None:
    """Move the time of the last write this many seconds into the past."""
    moment = time.time() - seconds
    os.utime(generation_of(backend) / "meta.json", (moment, moment))


def run_maintenance(backend: TantivyBackend) -> None:
    backend.run_maintenance()
    backend.store.settle()


def scatter(backend: TantivyBackend) -> None:
    for start in range(0, 100, 20):
        put(backend, range(start, start + 20))
    backend.store.settle()
    assert len(segments(backend)) == 5


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let segments of a few documents count as large."""
    monkeypatch.setattr(maintenance, "LARGE_SEGMENT", 5)
    monkeypatch.setattr(maintenance, "LARGE_SEGMENT", 5)


@pytest.mark.slow
def test_large_segments_are_merged_into_one(backend: TantivyBackend) -> None:
    size = 10_050
    for start in (0, size, 2 * size):
        put(backend, range(start, start + size))
    put(backend, [0, 1, size], "changed")
    backend.delete(NAME, [str(3 * size - 1)])
    backend.store.settle()
    assert sum(segment.live >= 10_000 for segment in segments(backend)) == 3
    before = generation_of(backend)
    assert maintenance.vacuum(store_of(backend), NAME)
    (only,) = segments(backend)
    assert (only.documents, only.deleted) == (3 * size - 1, 0)
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


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 30])
def test_indexes_of_any_size_can_be_merged(backend: TantivyBackend, count: int) -> None:
    for number in range(count):
        put(backend, [number, 1000 + number])
    backend.delete(NAME, ["1000"])
    backend.store.settle()
    assert maintenance.vacuum(store_of(backend), NAME)
    assert sum(segment.deleted for segment in segments(backend)) == 0
    assert backend.count(NAME) == 2 * count - 1
    assert set(backend.document_ids(NAME)) == {str(n) for n in range(count)} | {str(1000 + n) for n in range(1, count)}


def test_files_of_merged_segments_are_not_kept_open(backend: TantivyBackend) -> None:
    put(backend, range(10))
    before = str(generation_of(backend))
    assert backend.search(NAME, SearchQuery("word")).total == 10
    assert before in Path("/proc/self/maps").read_text()

    assert maintenance.vacuum(store_of(backend), NAME)

    assert before not in Path("/proc/self/maps").read_text()


def test_merging_keeps_the_small_document_store_blocks(backend: TantivyBackend) -> None:
    def block_bytes() -> int:
        meta = orjson.loads((generation_of(backend) / "meta.json").read_bytes())
        return int(meta["index_settings"]["docstore_blocksize"])

    assert block_bytes() == STORED_BLOCK_BYTES
    put(backend, range(10))
    put(backend, [1], "changed")
    assert maintenance.vacuum(store_of(backend), NAME)
    assert block_bytes() == STORED_BLOCK_BYTES


def test_empty_index_can_be_merged(backend: TantivyBackend) -> None:
    assert maintenance.vacuum(store_of(backend), NAME)
    put(backend, [1])
    backend.delete(NAME, ["1"])
    backend.store.settle()
    assert maintenance.vacuum(store_of(backend), NAME)
    assert backend.count(NAME) == 0
    put(backend, [2])
    assert list(backend.document_ids(NAME)) == ["2"]


def test_merging_keeps_custom_fields_and_change_times(backend: TantivyBackend) -> None:
    from tests.backends.contract import Case, page

    case = Case(backend, NAME)
    for number in range(4):
        case.add(page(f"p{number}", "word", price=number, colour=f"c{number}"))
    backend.store.settle()
    before = backend.search(NAME, SearchQuery("*")).hits
    assert maintenance.vacuum(store_of(backend), NAME)
    assert backend.search(NAME, SearchQuery("*")).hits == before
    assert case.ids("word", "price >= 2 AND colour = c3") == ["p3"]


@pytest.mark.usefixtures("small")
def test_idle_index_with_many_large_segments_is_merged_once(backend: TantivyBackend) -> None:
    scatter(backend)
    run_maintenance(backend)
    assert len(segments(backend)) == 5
    age(backend, maintenance.QUIET_SECONDS + 1)
    run_maintenance(backend)
    assert len(segments(backend)) == 1
    assert set(backend.document_ids(NAME)) == {str(number) for number in range(100)}
    merged = generation_of(backend)
    age(backend, maintenance.QUIET_SECONDS + 1)
    run_maintenance(backend)
    assert generation_of(backend) == merged


@pytest.mark.usefixtures("small")
def test_index_written_by_a_closed_backend_is_merged_by_another(backend: TantivyBackend, url: str) -> None:
    scatter(backend)
    backend.close()
    age(backend, maintenance.QUIET_SECONDS + 1)
    other = cast(TantivyBackend, create_backend(url))
    run_maintenance(other)
    assert len(segments(backend)) == 1
    assert backend.search(NAME, SearchQuery("word")).total == 100
    other.close()


@pytest.mark.usefixtures("small")
def test_only_one_of_two_backends_merges_an_index(
    backend: TantivyBackend, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scatter(backend)
    age(backend, maintenance.QUIET_SECONDS + 1)
    other = cast(TantivyBackend, create_backend(url))
    under_way, others_turn = threading.Event(), threading.Event()
    merge = maintenance.merge_all

    def merge_slowly(*arguments: object) -> None:
        under_way.set()
        assert others_turn.wait(PATIENCE_SECONDS)
        merge(*arguments)

    monkeypatch.setattr(maintenance, "merge_all", merge_slowly)
    backend.run_maintenance()
    assert under_way.wait(PATIENCE_SECONDS)
    run_maintenance(other)
    assert len(segments(backend)) == 5
    others_turn.set()
    backend.store.settle()
    merged = generation_of(backend)
    assert len(segments(backend)) == 1
    monkeypatch.setattr(maintenance, "merge_all", merge)
    # A process that counted many segments earlier finds that they are already merged.
    assert not maintenance.vacuum(store_of(other), NAME, maintenance.needs_merging)
    assert generation_of(backend) == merged
    other.close()


@pytest.mark.usefixtures("small")
def test_index_is_merged_eventually_despite_continuous_writes(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    scatter(backend)
    run_maintenance(backend)
    put(backend, [5], "word again")
    run_maintenance(backend)
    assert len(segments(backend)) == 6
    monkeypatch.setattr(maintenance, "MAX_WAIT_SECONDS", 0.0)
    run_maintenance(backend)
    assert len(segments(backend)) == 1
    assert backend.count(NAME) == 100


def test_maintenance_merges_away_leftover_deleted_documents(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    scatter(backend)
    backend.delete(NAME, [str(number) for number in range(0, 100, 2)])
    backend.store.settle()
    monkeypatch.setattr(maintenance, "MIN_DELETED", 50)
    run_maintenance(backend)
    assert [(segment.documents, segment.deleted) for segment in segments(backend)] == [(50, 0)]


@pytest.mark.usefixtures("small")
def test_every_index_is_checked_eventually(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "INDEXES_PER_CHECK", 2)
    for number in range(6):
        backend.create_index(f"other_{number}")
    scatter(backend)
    age(backend, maintenance.QUIET_SECONDS + 1)
    for _ in range(4):
        run_maintenance(backend)
    assert len(segments(backend)) == 1


@pytest.mark.usefixtures("small")
def test_closing_store_starts_no_merge(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    scatter(backend)
    age(backend, maintenance.QUIET_SECONDS + 1)
    monkeypatch.setattr(store_of(backend), "is_closing", True)
    run_maintenance(backend)
    assert len(segments(backend)) == 5


@pytest.mark.usefixtures("small")
def test_index_deleted_during_a_merge_is_dropped_silently(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scatter(backend)
    age(backend, maintenance.QUIET_SECONDS + 1)
    merge = maintenance.merge_all

    def merge_too_late(*arguments: object) -> None:
        merge(*arguments)
        backend.delete_index(NAME)

    monkeypatch.setattr(maintenance, "merge_all", merge_too_late)
    run_maintenance(backend)
    assert not caplog.records
    assert backend.list_indexes() == []


@pytest.mark.usefixtures("small")
def test_merge_is_retried_later_if_no_thread_can_start(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    scatter(backend)
    monkeypatch.setattr(maintenance, "MIN_DELETED", 1)
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", refuse)
        backend.delete(NAME, [str(number) for number in range(90)])
        backend.run_maintenance()
        assert sum(segment.deleted for segment in segments(backend)) > 0
    run_maintenance(backend)
    assert [(segment.documents, segment.deleted) for segment in segments(backend)] == [(10, 0)]


@pytest.mark.parametrize(("sizes", "scattered"), [
    ([20, 20, 20], False), ([20, 20, 20, 20], True), ([20, 20, 20, 4, 4, 4], False), ([1000, 20, 20, 20], False),
    ([1000, 100, 100, 100], True),
])  # fmt: skip
@pytest.mark.usefixtures("small")
def test_fragmentation_depends_on_number_and_size_of_segments(sizes: list[int], scattered: bool) -> None:
    assert maintenance.is_fragmented([Segment("s", size + 3, 3, None) for size in sizes]) is scattered


def test_failed_merge_leaves_the_index_unchanged(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_SEGMENTS_IN_MERGE", 4)
    for number in range(3):
        put(backend, [number, number + 10])
    backend.store.settle()
    first = generation_of(backend)
    with pytest.raises(BackendUnavailable, match="were not merged: 4 are left"):
        maintenance.vacuum(store_of(backend), NAME)
    assert generation_of(backend) == first
    assert [path for path in first.parent.iterdir() if path.is_dir()] == [first]
    assert backend.count(NAME) == 6
    put(backend, [50])
    assert backend.count(NAME) == 7


def test_files_are_copied_if_they_cannot_be_linked(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(maintenance.os, "link", refuse)
    put(backend, [1, 2])
    backend.delete(NAME, ["1"])
    backend.store.settle()
    assert maintenance.vacuum(store_of(backend), NAME)
    assert list(backend.document_ids(NAME)) == ["2"]
    assert sum(segment.documents for segment in segments(backend)) == 1


_STEPS = st.tuples(st.sampled_from(["put", "put", "remove", "merge"]), st.sets(st.integers(0, 30), max_size=12))


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(_STEPS, max_size=14))
def test_merging_preserves_documents_after_any_sequence_of_writes(
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
            assert maintenance.vacuum(store_of(backend), NAME)
            assert sum(segment.documents for segment in segments(backend)) == len(expected)
    backend.store.settle()
    hits = backend.search(NAME, SearchQuery("*", limit=100)).hits
    assert {hit.id: hit.document["title"] for hit in hits} == expected
