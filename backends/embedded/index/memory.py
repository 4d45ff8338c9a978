"""Indexes in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import tantivy

from backends.base import Document
from backends.embedded.index.documents import copy_documents, dynamic_columns_for, live_columns
from backends.embedded.index.locks import ThreadLease
from backends.embedded.index.schema import (
    FIRST_DYNAMIC_COLUMNS,
    build_schema,
    enough_dynamic_columns,
    register_tokenizers,
)
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.index.state import State
from backends.embedded.index.store import LARGE_HEAP, Conversion, OpenWriter, Store, WriteTransaction
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import FieldKinds


class _MemoryIndex:
    def __init__(self) -> None:
        self.state = State()
        self.index = _new_index(self.state.capacity)
        self.lock = threading.Lock()
        self.snapshot = Snapshot(self.index, self.state.dynamic_columns, 0)


class MemoryStore(Store):
    """Indexes that exist until the process exits."""

    def __init__(self, timeout_seconds: float):
        super().__init__()
        self._timeout_seconds = timeout_seconds
        self._indexes: dict[str, _MemoryIndex] = {}

    def names(self) -> list[str]:
        return list(self._indexes)

    def outdated_names(self) -> list[str]:
        return []

    def create(self, name: str) -> None:
        if name not in self._indexes:
            self._indexes.setdefault(name, _MemoryIndex())

    def drop(self, name: str) -> None:
        self._indexes.pop(name, None)

    def snapshot(self, name: str) -> Snapshot:
        return self._get(name).snapshot

    @contextmanager
    def writing(self, name: str, kinds: FieldKinds, documents: Sequence[Document] = ()) -> Iterator[WriteTransaction]:
        entry = self._get(name)
        if not entry.lock.acquire(timeout=self._timeout_seconds):
            raise BackendUnavailable("Another thread is writing to the index.", retry_after=2)
        lease = ThreadLease(entry.lock)
        try:
            dynamic_columns = dynamic_columns_for(kinds, entry.state.dynamic_columns)
            if len(dynamic_columns) > entry.state.capacity:
                dynamic_columns = self._grow(entry, kinds)
            entry.state = replace(entry.state, dynamic_columns=dynamic_columns)
        except BaseException:
            lease.release()
            raise
        with self._written(name, OpenWriter(lease, entry.index), dynamic_columns, Conversion(documents)) as writing:
            yield writing
        entry.index.reload()
        entry.snapshot = Snapshot(entry.index, dynamic_columns, 0)

    def index_bytes(self) -> int | None:
        return None  # tantivy does not report its memory use.

    def check(self) -> None:
        return

    def close(self) -> None:
        self.settle()

    def after_fork(self) -> None:
        super().after_fork()
        for entry in self._indexes.values():
            entry.lock = threading.Lock()

    def _get(self, name: str) -> _MemoryIndex:
        entry = self._indexes.get(name)
        if entry is None:
            raise IndexNotFound(name)
        return entry

    def _grow(self, entry: _MemoryIndex, kinds: FieldKinds) -> dict[str, int]:
        searcher = entry.index.searcher()
        dynamic_columns = live_columns(searcher, kinds, entry.state.dynamic_columns)
        capacity = enough_dynamic_columns(FIRST_DYNAMIC_COLUMNS, len(dynamic_columns))
        index = _new_index(capacity)
        writer = index.writer(LARGE_HEAP, 1)
        copy_documents(searcher, writer, dynamic_columns)
        writer.commit()
        writer.wait_merging_threads()
        entry.index = index
        entry.state = replace(entry.state, capacity=capacity)
        return dynamic_columns


def _new_index(capacity: int) -> tantivy.Index:
    index = tantivy.Index(build_schema(capacity))
    register_tokenizers(index)
    index.config_reader("manual")
    index.reload()
    return index
