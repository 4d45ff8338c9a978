"""Concurrent processes, crashes, and damaged files never lose an acknowledged write to an index on disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import orjson
import pytest

from backends.base import Document, SearchBackend
from backends.embedded import maintenance
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import disk, generations
from backends.embedded.index.disk import DiskStore
from backends.embedded.index.locks import FileLease, try_lock_file
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import FieldKind, FieldKinds, SearchQuery
from backends.registry import create_backend
from tests.backends.embedded.on_disk import NAME, backend_fixture, generation_of, url_fixture  # noqa: F401
from tests.patience import eventually

ROOT = Path(__file__).parents[4]

WRITER = """
import sys
from backends.base import Document
from backends.registry import create_backend
backend = create_backend(sys.argv[1])
number = int(sys.argv[2])
while True:
    batch = []
    for at in range(number * 30, number * 30 + 30):
        fields = {"id": str(at % 60), "title": f"round{number}", "content": "x " * 50, "url": "/"}
        batch.append(Document(fields["id"], fields, at))
    backend.upsert("site_1", batch, {})
    print(number, flush=True)
    number += 1
"""

WRITE_FIVE = """
import sys
from backends.base import Document
from backends.registry import create_backend
backend = create_backend(sys.argv[1])
for step in range(5):
    id = f"{sys.argv[2]}-{step}"
    backend.upsert("site_1", [Document(id, {"id": id, "title": "word", "content": "", "url": "/"}, 1)], {})
backend.close()
"""


def document(id: str, title: str = "word", moment: int = 1) -> Document:
    return Document(id, {"id": id, "title": title, "content": "", "url": "/"}, moment)


def in_child(work: Callable[[], object]) -> int:
    """Run in a forked child and return its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def threads_and_files() -> tuple[int, int]:
    """Return the numbers of threads and open files of this process."""
    tasks, files = Path("/proc/self/task"), Path("/proc/self/fd")
    return sum(1 for _ in tasks.iterdir()), sum(1 for _ in files.iterdir())


def found(backend: SearchBackend, text: str) -> list[str]:
    return sorted(hit.id for hit in backend.search(NAME, SearchQuery(text, limit=100)).hits)


@pytest.mark.slow
def test_killed_writers_lose_no_acknowledged_write_and_block_no_other_writer(backend: TantivyBackend, url: str) -> None:
    chance = random.Random(5)
    number = 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, url, str(number)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as writer:
            assert writer.stdout is not None
            answered = int(writer.stdout.readline())
            deadline = time.monotonic() + chance.uniform(0, 0.15)
            while time.monotonic() < deadline:
                answered = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                answered = int(line)
        # Only whole rounds: the last acknowledged round, or the round that was killed before its acknowledgment.
        rounds = {hit.document["title"] for hit in backend.search(NAME, SearchQuery("*", limit=100)).hits}
        latest = max(int(title.removeprefix("round")) for title in rounds)
        assert latest in (answered, answered + 1)
        assert len(found(backend, f"round{latest}")) == 30
        number = latest + 1
        backend.upsert(NAME, [document("mark", f"round{number}", 10**6 + number)], {})
        assert "mark" in found(backend, f"round{number}")
        backend.delete(NAME, ["mark"])


def test_orphaned_deletion_file_does_not_block_the_next_writer(backend: TantivyBackend) -> None:
    backend.upsert(NAME, [document(str(number)) for number in range(10)], {})
    backend.delete(NAME, ["1"])
    backend.close()
    folder = generation_of(backend)
    deletions = next(folder.glob("*.del"))
    segment, moment, _ = deletions.name.split(".")
    managed = orjson.loads((folder / ".managed.json").read_bytes())
    for ahead in range(1, 30):
        orphan = f"{segment}.{int(moment) + ahead}.del"
        (folder / orphan).write_bytes(deletions.read_bytes())
        managed.append(orphan)
    (folder / ".managed.json").write_bytes(orjson.dumps(managed))
    backend.delete(NAME, ["2"])
    backend.upsert(NAME, [document("3", "changed")], {})
    assert backend.count(NAME) == 8
    assert found(backend, "changed") == ["3"]


def test_forked_child_reads_and_writes_and_the_parent_sees_its_writes(backend: TantivyBackend) -> None:
    backend.upsert(NAME, [document("parent")], {})
    assert found(backend, "word") == ["parent"]
    backend.store.settle()

    def work() -> None:
        assert found(backend, "word") == ["parent"]
        backend.upsert(NAME, [document("child")], {})
        assert found(backend, "word") == ["child", "parent"]
        backend.close()

    assert in_child(work) == 0
    assert found(backend, "word") == ["child", "parent"]


def test_forked_child_does_not_hold_the_locks_of_its_parent(backend: TantivyBackend) -> None:
    assert isinstance(backend.store, DiskStore)
    lease = backend.store.lease(NAME)
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        lease.release()
        backend.upsert(NAME, [document("a")], {})
        assert found(backend, "word") == ["a"]
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)
        for descriptor in (*ready, *done):
            os.close(descriptor)


@pytest.mark.slow
def test_concurrent_writers_in_several_processes_lose_no_document(backend: TantivyBackend, url: str) -> None:
    # New processes, not forks: a fork of a process with several threads may copy a lock that nobody releases.
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_FIVE, url, str(number)], cwd=ROOT) for number in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert backend.count(NAME) == 15


def test_writer_that_waits_too_long_for_the_lock_raises_unavailable(backend: TantivyBackend, url: str) -> None:
    hurried = cast(TantivyBackend, create_backend(f"{url}?timeout=0.05"))
    assert isinstance(backend.store, DiskStore)
    lease = backend.store.lease(NAME)
    try:
        with pytest.raises(BackendUnavailable):
            hurried.upsert(NAME, [document("a")], {})
        assert hurried.count(NAME) == 0
    finally:
        lease.release()
    hurried.upsert(NAME, [document("a")], {})
    assert hurried.count(NAME) == 1
    hurried.close()


def _waiting(backend: TantivyBackend, documents: list[Document], kinds: FieldKinds) -> threading.Thread:
    """Start a write that waits for the index's lock, and return when it has converted its documents."""
    store = cast(DiskStore, backend.store)
    converted = threading.Event()

    def lease(name: str, meanwhile: Iterable[object] = ()) -> FileLease:
        def steps() -> Iterator[object]:
            yield from meanwhile
            converted.set()

        return DiskStore.lease(store, name, steps())

    store.lease = lease  # type: ignore[method-assign]
    thread = threading.Thread(target=backend.upsert, args=(NAME, documents, kinds))
    thread.start()
    assert converted.wait(10), "the documents were not converted while the write waited"
    return thread


def test_waiting_write_converts_its_documents_in_advance(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = cast(DiskStore, backend.store).lease(NAME)
    waiting = _waiting(backend, [document("a"), document("b")], {})
    # Nothing is left to convert under the lock.
    monkeypatch.delattr("backends.embedded.index.store.to_tantivy")
    lease.release()
    waiting.join()
    assert found(backend, "word") == ["a", "b"]


def test_fields_added_by_a_concurrent_write_are_not_mixed_up(backend: TantivyBackend, url: str) -> None:
    kinds = frozenset({FieldKind.NUMBER})
    other = cast(TantivyBackend, create_backend(url))

    def numbered(id: str, field: str, number: int) -> Document:
        return Document(id, {**document(id).fields, field: number}, 1)

    with other.store.writing(NAME, {"price": kinds}, [numbered("a", "price", 5)]) as writing:
        waiting = _waiting(backend, [numbered("b", "weight", 7), numbered("c", "weight", 8)], {"weight": kinds})
        writing.put()
    waiting.join()
    other.close()
    both = {"price": kinds, "weight": kinds}
    heavy = backend.search(NAME, SearchQuery("word", native_filter="weight > 7", kinds=both))
    assert [hit.id for hit in heavy.hits] == ["c"]
    priced = backend.search(NAME, SearchQuery("word", native_filter="price > 4", kinds=both))
    assert [hit.id for hit in priced.hits] == ["a"]


def test_write_that_fails_while_it_waits_does_not_keep_the_lock(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("engine words")

    lease = cast(DiskStore, backend.store).lease(NAME)
    with monkeypatch.context() as broken:
        broken.setattr("backends.embedded.index.store.to_tantivy", fail)
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, [document("a"), document("c")], {})
    lease.release()
    backend.upsert(NAME, [document("b")], {})
    assert found(backend, "word") == ["b"]


def _cut_meta(folder: Path) -> None:
    (folder / "meta.json").write_bytes(b'{"segm')


def _lose_meta(folder: Path) -> None:
    (folder / "meta.json").unlink()


def _lose_segment(folder: Path) -> None:
    for path in folder.glob("*.store"):
        path.unlink()


def _cut_segment(folder: Path) -> None:
    for path in folder.glob("*.term"):
        path.write_bytes(path.read_bytes()[:10])


def _other_version(folder: Path) -> None:
    state = orjson.loads((folder.parent / "current.json").read_bytes())
    (folder.parent / "current.json").write_bytes(orjson.dumps({**state, "version": 0}))


def _cut_state(folder: Path) -> None:
    (folder.parent / "current.json").write_bytes(b"{")


def _lose_generation(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("damage", [
    _cut_meta, _lose_meta, _lose_segment, _cut_segment, _other_version, _cut_state, _lose_generation,
])  # fmt: skip
def test_unreadable_index_raises_index_not_found_and_can_be_recreated(
    backend: TantivyBackend, url: str, damage: Callable[[Path], None]
) -> None:
    backend.upsert(NAME, [document("a"), document("b")], {})
    backend.close()
    damage(generation_of(backend))
    fresh = create_backend(url)
    for call in (
        lambda: fresh.search(NAME, SearchQuery("word")),
        lambda: fresh.find_titles(NAME, "word", 8),
        lambda: fresh.count(NAME),
        lambda: fresh.upsert(NAME, [document("c")], {}),
        lambda: fresh.delete(NAME, ["a"]),
        lambda: list(fresh.document_ids(NAME)),
    ):
        with pytest.raises(IndexNotFound):
            call()
    assert fresh.list_indexes() == [NAME]
    fresh.create_index(NAME)
    assert fresh.count(NAME) == 0
    fresh.upsert(NAME, [document("a")], {})
    assert found(fresh, "word") == ["a"]
    fresh.close()


def test_index_deleted_by_another_process_is_not_found(backend: TantivyBackend, url: str) -> None:
    backend.upsert(NAME, [document("a")], {})
    other = create_backend(url)
    other.delete_index(NAME)
    with pytest.raises(IndexNotFound):
        backend.search(NAME, SearchQuery("word"))
    other.create_index(NAME)
    assert backend.count(NAME) == 0
    other.close()


def test_engine_panic_raises_backend_unavailable_without_its_message(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = type("PanicException", (BaseException,), {})

    def break_down(*_: object, **__: object) -> None:
        raise panic("secret of the engine")

    monkeypatch.setattr("backends.embedded.backend.run_search", break_down)
    with pytest.raises(BackendUnavailable) as caught:
        backend.search(NAME, SearchQuery("word"))
    assert "secret" not in str(caught.value)
    assert isinstance(caught.value.__cause__, panic)


def test_failed_write_changes_nothing_and_the_next_write_works(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.upsert(NAME, [document("a")], {})
    with monkeypatch.context() as broken:
        broken.setattr(
            "backends.embedded.index.store.to_tantivy", lambda *_: (_ for _ in ()).throw(ValueError("engine words"))
        )
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, [document("a", "other")], {})
    assert found(backend, "word") == ["a"]
    backend.upsert(NAME, [document("b")], {})
    assert found(backend, "word") == ["a", "b"]


@pytest.mark.slow
def test_many_small_writes_leave_few_segments(backend: TantivyBackend) -> None:
    for number in range(40):
        backend.upsert(NAME, [document(str(number))], {})
    backend.close()
    meta = orjson.loads((generation_of(backend) / "meta.json").read_bytes())
    assert len(meta["segments"]) <= 12
    assert backend.count(NAME) == 40
    alive = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
    assert {path.name.split(".")[0] for path in generation_of(backend).glob("*.store")} <= alive


def test_deleted_documents_do_not_make_the_index_grow_forever(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MIN_DELETED", 100)
    for step in range(12):
        batch = [document(str(number), f"step{step}", 1000 * step + number) for number in range(60)]
        backend.upsert(NAME, batch, {})
        backend.delete(NAME, [str(step)])
    backend.close()
    meta = orjson.loads((generation_of(backend) / "meta.json").read_bytes())
    dead = sum((segment["deletes"] or {}).get("num_deleted_docs", 0) for segment in meta["segments"])
    assert dead < 200
    assert backend.count(NAME) == 59
    assert len(found(backend, "step11")) == 59
    generations = [path for path in generation_of(backend).parent.iterdir() if path.is_dir()]
    assert generations == [generation_of(backend)]


def test_writes_during_a_vacuum_are_kept(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.upsert(NAME, [document(str(number), "first", number) for number in range(50)], {})
    backend.store.settle()
    assert isinstance(backend.store, DiskStore)
    merge = maintenance.merge_all

    def merge_slowly(*arguments: object) -> None:
        merge(*arguments)
        backend.upsert(NAME, [document("1", "second", 100), document("new", "second", 101)], {})
        backend.delete(NAME, ["2"])

    monkeypatch.setattr(maintenance, "merge_all", merge_slowly)
    before = generation_of(backend)
    assert maintenance.vacuum(backend.store, NAME)
    assert generation_of(backend) != before
    assert not before.exists()
    assert found(backend, "second") == ["1", "new"]
    assert backend.count(NAME) == 50
    assert "2" not in set(backend.document_ids(NAME))


def test_leftover_of_an_interrupted_vacuum_is_removed_and_the_index_stays_intact(backend: TantivyBackend) -> None:
    backend.upsert(NAME, [document("a")], {})
    backend.store.settle()
    assert isinstance(backend.store, DiskStore)
    store = backend.store
    (generation_of(backend).parent / "gdeadbeef").mkdir()
    assert found(backend, "word") == ["a"]
    assert maintenance.vacuum(store, NAME)
    assert [path for path in generation_of(backend).parent.iterdir() if path.is_dir()] == [generation_of(backend)]
    assert found(backend, "word") == ["a"]


def test_index_accepts_more_fields_than_its_initial_capacity(backend: TantivyBackend) -> None:
    from tests.backends.contract import Case, page

    case = Case(backend, NAME)
    case.add(page("a", "word", **{f"field{number}": number for number in range(30)}))
    case.add(page("b", "word", excerpt="", **{f"other{number}": number for number in range(70)}))
    assert case.ids("word", "field29 > 28") == ["a"]
    assert case.ids("word", "other69 >= 69") == ["b"]
    assert case.ids("word", "excerpt EXISTS") == ["b"]
    assert case.backend.count(NAME) == 2


def test_number_of_open_indexes_is_limited(tmp_path: Path) -> None:
    backend = create_backend(f"tantivy://{tmp_path}/indexes?indexes=3")
    names = [f"site_{number}" for number in range(12)]
    for name in names:
        backend.create_index(name)
        backend.upsert(name, [document(name)], {})
    backend.close()
    threads, files = threads_and_files()
    for name in names * 2:
        assert backend.search(name, SearchQuery("word")).total == 1
    most = threads + 4, files + 4
    eventually(
        lambda: all(now <= bound for now, bound in zip(threads_and_files(), most, strict=True)),
        "threads or files of the other indexes stay",
    )
    backend.close()


def test_write_that_fails_to_start_releases_its_lock(backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_descriptors(folder: Path) -> None:
        raise OSError(24, "Too many open files")

    backend.create_index(NAME)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "sweep_drafts", no_descriptors)
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, [document("a")], {})
    held = try_lock_file(cast(DiskStore, backend.store).root / ".locks" / NAME)
    assert held is not None, "the lock was never released"
    held.release()

    backend.upsert(NAME, [document("a")], {})
    assert backend.count(NAME) == 1


class TestIndexBytes:
    """Disk usage of indexes, computed without scanning unchanged folders."""

    @pytest.fixture
    def looks(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Record the scanned folders."""
        seen: list[str] = []
        scan = generations.os.scandir

        def noted(path: str | Path) -> object:
            if Path(path).parent.name.startswith("site_"):
                seen.append(str(path))
            return scan(path)

        monkeypatch.setattr(generations.os, "scandir", noted)
        monkeypatch.setattr(generations, "_SETTLED_NS", -1)
        return seen

    @pytest.fixture
    def store(self, url: str) -> Iterator[TantivyBackend]:
        backend = cast(TantivyBackend, create_backend(url))
        for name in ("site_1", "site_2"):
            backend.create_index(name)
            backend.upsert(name, [document("a")], {})
        backend.store.settle()
        yield backend
        backend.close()

    def test_index_bytes_is_the_sum_of_all_document_files(self, store: TantivyBackend) -> None:
        root = cast(DiskStore, store.store).root
        files = [path for path in root.glob("site_*/*/*") if path.is_file()]

        assert store.index_bytes() == sum(path.stat().st_size for path in files) > 0

    def test_only_changed_folders_are_scanned_again(self, store: TantivyBackend, looks: list[str]) -> None:
        first = store.index_bytes()
        assert len(looks) == 2
        looks.clear()
        assert store.index_bytes() == first
        assert looks == []

        store.upsert("site_2", [document(str(number), f"word{number} " * 50) for number in range(50)], {})
        store.store.settle()
        looks.clear()
        second = store.index_bytes()

        assert first is not None
        assert second is not None
        assert second > first
        assert [Path(path).parent.name for path in looks] == ["site_2"]

    def test_deleted_index_uses_no_disk_space(self, store: TantivyBackend) -> None:
        both = store.index_bytes()
        store.delete_index("site_2")
        one = store.index_bytes()
        store.delete_index("site_1")

        assert both is not None
        assert one is not None
        assert 0 < one < both
        assert store.index_bytes() == 0

    def test_recently_changed_folder_is_scanned_again(self, store: TantivyBackend) -> None:
        cast(DiskStore, store.store).index_bytes()
        (folder,) = [path for path in (cast(DiskStore, store.store).root / "site_1").iterdir() if path.is_dir()]
        before = store.index_bytes()
        with next(folder.glob("*.store")).open("ab") as file:
            file.write(b"x" * 1000)

        assert before is not None
        assert store.index_bytes() == before + 1000
