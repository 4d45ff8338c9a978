"""What a write has acknowledged is on disk: a power failure drops whatever was not flushed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.generations import META_FILE
from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS
from backends.embedded.maintenance import vacuum
from backends.query import FieldKind
from tests.backends.embedded.on_disk import NAME, backend_fixture, generation_of, store_of, url_fixture

__all__ = ["backend_fixture", "url_fixture"]


class Disk:
    """A disk that keeps the names in a folder as of the folder's last flush."""

    def __init__(self) -> None:
        self._names: dict[int, dict[str, int]] = {}

    def flush(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = _names_in(descriptor)

    def has_all_of(self, folder: Path, *names: str) -> bool:
        """Whether each name in the folder is flushed, and refers to its current file."""
        kept = self._names.get(folder.stat().st_ino, {})
        return all(kept.get(name) == (folder / name).stat().st_ino for name in names)


def _names_in(descriptor: int) -> dict[str, int]:
    with os.scandir(descriptor) as entries:
        return {entry.name: entry.inode() for entry in entries}


@pytest.fixture(name="disk")
def disk_fixture(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.flush)
    return disk


def document(number: int, *names: str) -> Document:
    fields = {"id": f"{number}", "title": "Page", "content": "", "url": "/", **dict.fromkeys(names, "x")}
    return Document(f"{number}", fields, number)


def add_one(backend: TantivyBackend) -> None:
    backend.upsert(NAME, [document(1)], {})


def remove_one(backend: TantivyBackend) -> None:
    add_one(backend)
    backend.delete(NAME, ["1"])


def add_more_fields_than_columns(backend: TantivyBackend) -> None:
    names = [f"f{number}" for number in range(FIRST_DYNAMIC_COLUMNS + 1)]
    backend.upsert(NAME, [document(1, *names)], dict.fromkeys(names, frozenset({FieldKind.STRING})))


def merge(backend: TantivyBackend) -> None:
    add_one(backend)
    assert vacuum(store_of(backend), NAME)


@pytest.mark.parametrize("change", [add_one, remove_one, add_more_fields_than_columns, merge])
def test_power_failure_after_a_change_keeps_the_commit_and_the_generation(
    change: Callable[[TantivyBackend], None], disk: Disk, backend: TantivyBackend
) -> None:
    """Otherwise SQL says that the document is indexed, and no search ever finds it."""
    change(backend)

    generation = generation_of(backend)
    assert disk.has_all_of(generation, META_FILE, *(path.name for path in generation.glob("*.store")))
    assert disk.has_all_of(generation.parent, "current.json", generation.name)
