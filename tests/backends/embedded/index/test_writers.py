"""While the merges after a large write run, the next write of the process takes over its writer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import cast

import pytest
import tantivy

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import disk
from backends.embedded.index.documents import to_tantivy
from backends.embedded.index.generations import MergeWatch, read_meta, read_segments, write_meta
from backends.embedded.index.locks import try_lock_file
from backends.embedded.index.store import MAX_UNCHECKED_DELETES
from backends.errors import BackendUnavailable
from backends.query import FieldKind, SearchQuery
from backends.registry import create_backend
from tests.backends.embedded.on_disk import NAME, generation_of, store_of, url_fixture  # noqa: F401
from tests.patience import eventually

BATCH = MAX_UNCHECKED_DELETES + 1


def batch(round: int, size: int = BATCH, **fields: float) -> list[Document]:
    """Return documents with the same IDs in every round."""
    return [
        Document(str(number), {"id": str(number), "title": f"round{round}", "content": "", "url": "/", **fields}, round)
        for number in range(size)
    ]


def titles(backend: TantivyBackend) -> list[str]:
    return sorted(hit.document["title"] for hit in backend.search(NAME, SearchQuery("*", limit=100)).hits)


def is_locked(backend: TantivyBackend) -> bool:
    lease = try_lock_file(store_of(backend).root / ".locks" / NAME)
    if lease is not None:
        lease.release()
    return lease is None


def assert_no_leftovers(generation: Path) -> None:
    listed = {segment.name for segment in read_segments(generation)}
    assert {path.name.split(".")[0] for path in generation.glob("*.store")} == listed


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Merges run from now on until the event is set."""
    ended = threading.Event()
    monkeypatch.setattr(MergeWatch, "_is_merging", lambda _: not ended.is_set())
    yield ended
    ended.set()


@pytest.fixture
def backend(url: str, merging: threading.Event) -> Iterator[TantivyBackend]:
    # A write that waited for the merges would fail after a second.
    backend = cast(TantivyBackend, create_backend(f"{url}?timeout=1"))
    store_of(backend).watched_seconds = 60
    backend.create_index(NAME)
    backend.upsert(NAME, batch(0), {})
    yield backend
    merging.set()
    backend.close()


def test_writes_do_not_wait_for_merges_in_their_process(backend: TantivyBackend, merging: threading.Event) -> None:
    assert is_locked(backend)
    for round in range(1, 4):
        backend.upsert(NAME, batch(round), {})
        assert titles(backend) == [f"round{round}"] * BATCH
    backend.delete(NAME, ["0"])
    backend.upsert(NAME, batch(4, size=1), {})
    assert titles(backend) == ["round3"] * (BATCH - 1) + ["round4"]
    merging.set()
    backend.store.settle()
    assert not is_locked(backend)


@pytest.mark.parametrize(("timeout", "maximum"), [(3, 10), (20, 0.2)])
def test_other_process_gets_its_turn_while_a_process_writes_continuously(
    merging: threading.Event, url: str, timeout: int, maximum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MAX_WATCHED_SECONDS", maximum)
    backend, other = (cast(TantivyBackend, create_backend(f"{url}?timeout={timeout}")) for _ in range(2))
    backend.create_index(NAME)
    is_done = threading.Event()
    rounds = count(1)

    def write() -> None:
        while not is_done.is_set():
            backend.upsert(NAME, batch(next(rounds)), {})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        eventually(lambda: next(rounds) > 5, "nothing is written")
        other.upsert(NAME, [Document("other", {"id": "other", "title": "", "content": "", "url": "/"}, 1)], {})
    finally:
        is_done.set()
        writer.join()
        merging.set()
        backend.close()
        other.close()
    assert "other" in set(backend.document_ids(NAME))


def test_writer_is_not_offered_after_its_time(backend: TantivyBackend, merging: threading.Event) -> None:
    merging.set()
    backend.store.settle()
    merging.clear()
    store_of(backend).watched_seconds = 0
    writers: list[object] = [None]
    for round in range(1, 20):
        with store_of(backend).writing(NAME, {}, batch(round)) as writing:
            writing.put()
            assert writing.writer is not writers[-1]
            writers.append(writing.writer)


def test_failed_write_with_a_taken_writer_changes_nothing_and_frees_the_lock(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_for_the_last(document: Document, columns: Mapping[str, int]) -> object:
        if document.id == str(BATCH - 1):
            raise ValueError("engine words")
        return to_tantivy(document, columns)

    # A rollback would not wait for the merges of earlier writes, which would then go on without the lock.
    monkeypatch.delattr("backends.embedded.index.store._roll_back")
    with monkeypatch.context() as broken:
        broken.setattr("backends.embedded.index.store.to_tantivy", fail_for_the_last)
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, batch(1), {})
    backend.store.settle()
    assert not is_locked(backend)
    assert titles(backend) == ["round0"] * BATCH
    backend.upsert(NAME, batch(2), {})
    assert titles(backend) == ["round2"] * BATCH


def test_write_that_fails_to_start_with_a_taken_writer_frees_the_lock(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptors(*_: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as broken:
        broken.setattr("backends.embedded.index.disk.write_state", no_descriptors)
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, batch(1, price=1.0), {"price": frozenset({FieldKind.NUMBER})})
    backend.store.settle()
    assert not is_locked(backend)
    assert titles(backend) == ["round0"] * BATCH


def test_write_waits_until_a_killed_process_has_closed_all_its_files(
    backend: TantivyBackend, merging: threading.Event
) -> None:
    merging.set()
    backend.store.settle()
    # The kernel frees the lock of the index before tantivy's own lock.
    held = [tantivy.Index.open(str(generation_of(backend))).writer()]
    freeing = threading.Timer(0.2, held.clear)
    freeing.start()
    backend.upsert(NAME, batch(1), {})
    assert titles(backend) == ["round1"] * BATCH


def test_index_grows_for_new_fields_of_a_write_with_a_taken_writer(backend: TantivyBackend) -> None:
    names = [f"field{number}" for number in range(70)]
    before = generation_of(backend)
    backend.upsert(NAME, batch(1, **dict.fromkeys(names, 1.0)), dict.fromkeys(names, frozenset({FieldKind.NUMBER})))
    assert generation_of(backend) != before
    assert titles(backend) == ["round1"] * BATCH
    backend.upsert(NAME, batch(2), {})
    assert titles(backend) == ["round2"] * BATCH


def test_forked_child_can_search_and_exit_while_a_writer_is_offered(backend: TantivyBackend) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert titles(backend) == ["round0"] * BATCH
            backend.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    backend.upsert(NAME, batch(1), {})
    assert titles(backend) == ["round1"] * BATCH


def test_closing_waits_for_the_merges(backend: TantivyBackend, merging: threading.Event) -> None:
    closing = threading.Thread(target=backend.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    merging.set()
    closing.join()
    assert not is_locked(backend)


def test_writers_of_two_processes_lose_nothing_and_leave_few_segments(url: str) -> None:
    # Each backend opens the lock file itself, as a process of its own would.
    backends = [cast(TantivyBackend, create_backend(url)) for _ in range(2)]
    backends[0].create_index(NAME)

    def write(at: int) -> None:
        for step in range(40):
            documents = [
                Document(
                    f"{at}-{number}", {"id": f"{at}-{number}", "title": f"{at}-{step}", "content": "", "url": "/"}, 1
                )
                for number in range(BATCH)
            ]
            backends[at].upsert(NAME, documents, {})

    writers = [threading.Thread(target=write, args=(at,)) for at in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for each in backends:
        each.close()
    assert titles(backends[0]) == ["0-39"] * BATCH + ["1-39"] * BATCH
    assert len(read_meta(generation_of(backends[0]))["segments"]) < 12
    assert_no_leftovers(generation_of(backends[0]))


def test_files_of_merged_segments_are_removed_regardless_of_the_process_that_wrote_them(url: str) -> None:
    backends = [cast(TantivyBackend, create_backend(url)) for _ in range(2)]
    backends[0].create_index(NAME)
    for step in range(9):
        for at, backend in enumerate(backends):
            id = f"{at}-{step}"
            backend.upsert(NAME, [Document(id, {"id": id, "title": "", "content": "", "url": "/"}, 1)], {})
            backend.store.settle()
        backends[1].close()  # As an idle process does.
    for backend in backends:
        backend.close()
    assert backends[0].count(NAME) == 18
    assert_no_leftovers(generation_of(backends[0]))


class TestMergeWatch:
    """A merge is recognized by the files of a segment that is not listed yet."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        self.list_segments(tmp_path, "a" * 32)
        (tmp_path / f"{'e' * 32}.idx").touch()
        return tmp_path

    @staticmethod
    def list_segments(folder: Path, *names: str) -> None:
        meta = {"segments": [{"segment_id": f"{name[:8]}-{name[8:]}", "max_doc": 1, "deletes": None} for name in names]}
        write_meta(folder, meta)
        for name in names:
            (folder / f"{name}.idx").touch()

    def test_nothing_is_merged_after_a_commit(self, folder: Path) -> None:
        watch = MergeWatch(folder, 60)
        self.list_segments(folder, "a" * 32, "b" * 32)
        watch.wait_for_merges(lambda: False)

    @pytest.mark.parametrize("ends_with", ["listed", "removed"])
    def test_waits_until_the_merged_segment_is_listed_or_removed(self, folder: Path, ends_with: str) -> None:
        watch = MergeWatch(folder, 60)
        self.list_segments(folder, "a" * 32, "b" * 32)
        (folder / f"{'c' * 32}.store").touch()
        waiting = threading.Thread(target=watch.wait_for_merges, args=(lambda: False,))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        if ends_with == "listed":
            # The files of the segments that were merged are removed later.
            self.list_segments(folder, "c" * 32)
        else:
            (folder / f"{'c' * 32}.store").unlink()
        waiting.join(10)
        assert not waiting.is_alive()

    def test_waiting_ends_after_the_time_limit(self, folder: Path) -> None:
        watch = MergeWatch(folder, 0.05)
        (folder / f"{'c' * 32}.store").touch()
        watch.wait_for_merges(lambda: False)
