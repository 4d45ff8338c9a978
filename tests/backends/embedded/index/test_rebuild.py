"""An index that needs more fields is rewritten, and a failure leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index import disk
from backends.embedded.index.locks import try_lock_file
from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS, MAX_DYNAMIC_COLUMNS
from backends.errors import BackendUnavailable
from backends.query import FieldKind, FieldKinds, SearchQuery, SortKey
from backends.registry import create_backend
from tests.backends.embedded.on_disk import NAME, backend_fixture, generation_of, store_of, url_fixture

__all__ = ["backend_fixture", "url_fixture"]


def having(number: int, *names: str, value: Any = "x") -> Document:
    fields = {"id": f"{number}", "title": "Page", "content": "words", "url": "/", **dict.fromkeys(names, value)}
    return Document(f"{number}", fields, number)


def names(first: int, count: int) -> list[str]:
    return [f"f{number}" for number in range(first, first + count)]


def texts(*fields: str) -> FieldKinds:
    return dict.fromkeys(fields, frozenset({FieldKind.STRING}))


def found(backend: TantivyBackend, by: str) -> list[str]:
    query = SearchQuery("page", sort=(SortKey(by, descending=True),), kinds=texts(by))
    return [hit.id for hit in backend.search(NAME, query).hits]


def folders(backend: TantivyBackend) -> list[str]:
    return sorted(path.name for path in store_of(backend).folder(NAME).iterdir() if path.is_dir())


def put(backend: TantivyBackend, *documents: Document, kinds: FieldKinds) -> None:
    backend.upsert(NAME, list(documents), kinds)
    backend.store.settle()


@pytest.fixture(name="either", params=["disk", "memory"])
def either_fixture(request: pytest.FixtureRequest) -> Iterator[TantivyBackend]:
    if request.param == "disk":
        yield request.getfixturevalue("backend")
        return
    backend = TantivyBackend.from_url("memory://")
    backend.create_index(NAME)
    yield backend
    backend.close()


def test_grown_index_sorts_all_documents_by_old_and_new_fields(either: TantivyBackend) -> None:
    many = names(0, FIRST_DYNAMIC_COLUMNS + 1)
    put(either, having(1, "f0", value="a"), having(2, "f0", value="b"), kinds=texts("f0"))

    put(either, having(3, *many, value="c"), kinds=texts(*many))

    assert found(either, "f0") == ["3", "2", "1"]
    assert found(either, many[-1])[0] == "3"


@pytest.mark.slow
def test_growing_drops_fields_that_no_document_has(backend: TantivyBackend) -> None:
    for round in range(20):
        fresh = names(100 * round, FIRST_DYNAMIC_COLUMNS)
        put(backend, having(1, *fresh), having(2), kinds=texts(*fresh))

        assert found(backend, fresh[0]) == ["1", "2"]

    assert store_of(backend).open_indexes.get(NAME).state.capacity <= 4 * FIRST_DYNAMIC_COLUMNS


def test_growing_keeps_fields_that_only_stored_documents_have(either: TantivyBackend) -> None:
    """The given kinds may omit fields of documents that are about to be removed from the index."""
    put(either, having(1, "old", value="b"), having(2, "old", value="a"), kinds=texts("old"))
    put(either, having(3, "narrow", value=5), kinds={"narrow": frozenset({FieldKind.NUMBER})})
    fresh = names(0, FIRST_DYNAMIC_COLUMNS + 1)
    narrower: FieldKinds = {**texts(*fresh), "narrow": frozenset({FieldKind.STRING_LIST})}

    put(either, having(4, *fresh), kinds=narrower)

    assert found(either, "old")[:2] == ["1", "2"]
    assert either.count(NAME) == 4


@pytest.mark.parametrize("step", ["make_generation", "copy_documents", "write_state"])
@pytest.mark.parametrize("raised", [OSError("No space left on device"), KeyboardInterrupt()])
def test_failed_growth_leaves_no_files_and_can_be_repeated(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch, step: str, raised: BaseException
) -> None:
    put(backend, having(1, "f0"), kinds=texts("f0"))
    many = names(0, FIRST_DYNAMIC_COLUMNS + 1)
    real = getattr(disk, step)

    def fail(*args: Any) -> Any:
        if step == "make_generation":
            real(*args)
        raise raised

    with monkeypatch.context() as broken:
        broken.setattr(disk, step, fail)
        with pytest.raises((BackendUnavailable, KeyboardInterrupt)):
            backend.upsert(NAME, [having(2, *many)], texts(*many))

    assert folders(backend) == [generation_of(backend).name]
    put(backend, having(2, *many), kinds=texts(*many))
    assert found(backend, many[-1]) == ["2", "1"]


def test_growth_that_fails_after_the_pointer_moved_keeps_the_new_index(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(backend, having(1, "f0"), kinds=texts("f0"))
    many = names(0, FIRST_DYNAMIC_COLUMNS + 1)
    real = disk.write_state

    def fail_late(*args: Any) -> None:
        real(*args)
        raise OSError("Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(disk, "write_state", fail_late)
        with pytest.raises(BackendUnavailable):
            backend.upsert(NAME, [having(2, *many)], texts(*many))

    assert found(backend, "f0") == ["1"]


def test_next_growth_removes_leftovers_of_killed_growths(backend: TantivyBackend) -> None:
    put(backend, having(1, "f0"), kinds=texts("f0"))
    (store_of(backend).folder(NAME) / "gkilled").mkdir()
    many = names(0, FIRST_DYNAMIC_COLUMNS + 1)

    put(backend, having(2, *many), kinds=texts(*many))

    assert folders(backend) == [generation_of(backend).name]


def test_growth_keeps_files_that_another_process_is_vacuuming(backend: TantivyBackend) -> None:
    put(backend, having(1, "f0"), kinds=texts("f0"))
    (store_of(backend).folder(NAME) / "gvacuumed").mkdir()
    many = names(0, FIRST_DYNAMIC_COLUMNS + 1)
    guard = try_lock_file(store_of(backend).root / ".locks" / f"{NAME}.compaction")
    assert guard is not None

    put(backend, having(2, *many), kinds=texts(*many))
    guard.release()

    assert "gvacuumed" in folders(backend)


def test_too_many_fields_are_rejected_before_anything_is_written(
    backend: TantivyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(backend, having(1, "f0"), kinds=texts("f0"))
    many = names(0, MAX_DYNAMIC_COLUMNS + 1)
    made: list[Any] = []
    monkeypatch.setattr(disk, "make_generation", lambda *args: made.append(args))

    with pytest.raises(BackendUnavailable, match="fields"):
        backend.upsert(NAME, [having(2, *many[-100:])], texts(*many))

    assert made == []
    assert found(backend, "f0") == ["1"]


@pytest.mark.slow
def test_index_can_hold_the_maximum_number_of_fields(url: str) -> None:
    backend = create_backend(url)
    backend.create_index(NAME)
    many = names(0, MAX_DYNAMIC_COLUMNS)

    backend.upsert(NAME, [having(1, *many[-100:])], texts(*many))

    assert backend.search(NAME, SearchQuery("page", sort=(SortKey(many[-1]),), kinds=texts(*many))).total == 1
    backend.close()
