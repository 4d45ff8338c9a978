"""Indexes on disk, seen by every process of the machine.

``<root>/<index>/current.json`` names the generation that holds the documents, ``<root>/<index>/<generation>/`` is
tantivy's directory. Lock files are kept apart and never removed.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import tantivy

from backends.base import FieldKinds
from backends.embedded.documents import slots_for
from backends.embedded.engine_errors import engine_errors, is_engine_error, is_passing
from backends.embedded.locks import FileLease, lock_file
from backends.embedded.rebuild import copy_documents
from backends.embedded.schema import build_schema, register_tokenizers
from backends.embedded.snapshots import Snapshot
from backends.embedded.store import LARGE_HEAP, State, Store, Writing
from backends.errors import BackendUnavailable, IndexNotFound

_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")
_STATE_FILE = "current.json"
_LOCKS = ".locks"
_TRASH = ".trash"
_ATTEMPTS = 3

Signature = tuple[int, int, int]


class _OpenIndex:
    """An index this process has open."""

    def __init__(self, folder: Path, state: State, pointer: Signature):
        self.state = state
        self.pointer = pointer
        self.folder = folder / state.generation
        self.meta_path = self.folder / "meta.json"
        self.lock = threading.Lock()
        meta = _signature(self.meta_path)
        self.index = _open_index(self.folder)
        self.snapshot = Snapshot(self.index, state.slots, meta)

    def current(self) -> Snapshot:
        """The snapshot of the last commit; files are read again only when there was one since."""
        meta = _signature(self.meta_path)
        if self.snapshot.signature != meta:
            with self.lock:
                meta = _signature(self.meta_path)
                if self.snapshot.signature != meta:
                    self.index.reload()
                    self.snapshot = Snapshot(self.index, self.state.slots, meta)
        return self.snapshot


class DiskStore(Store):
    """Indexes below one directory.

    Args:
        root: The directory; made when first written to.
        capacity: How many indexes stay open in this process.
        timeout_seconds: How long a write waits for another of the same index.
    """

    def __init__(self, root: Path, capacity: int, timeout_seconds: float):
        super().__init__()
        self.root = root
        self._capacity = capacity
        self._timeout_seconds = timeout_seconds
        self._open: OrderedDict[str, _OpenIndex] = OrderedDict()
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        try:
            entries = list(os.scandir(self.root))
        except FileNotFoundError:
            return []
        return [
            entry.name
            for entry in entries
            if _INDEX_NAME.fullmatch(entry.name) and Path(entry.path, _STATE_FILE).exists()
        ]

    def create(self, name: str) -> None:
        folder = self._folder(name)
        self._prepare_root()
        lease = self._lease(name)
        try:
            try:
                self.snapshot(name)
            except IndexNotFound:
                self._discard(name)
                folder.mkdir()
                state = State()
                _make_generation(folder, state)
                _write_state(folder, state)
                _sync(self.root)
        finally:
            lease.release()

    def drop(self, name: str) -> None:
        if not self._folder(name).exists():
            return
        lease = self._lease(name)
        try:
            self._discard(name)
        finally:
            lease.release()
        for leftover in (self.root / _TRASH).iterdir():
            shutil.rmtree(leftover, ignore_errors=True)

    def snapshot(self, name: str) -> Snapshot:
        failure: BaseException | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self._opened(name).current()
            except IndexNotFound:
                raise
            except BaseException as error:
                if not is_engine_error(error):
                    raise
                if is_passing(error):
                    raise BackendUnavailable("The index cannot be opened now.") from error
                # It may just be replaced by another generation; then the next attempt opens that one.
                failure = error
                self._forget(name)
        raise IndexNotFound(name) from failure

    @contextmanager
    def writing(self, name: str, kinds: FieldKinds, documents: int) -> Iterator[Writing]:
        folder = self._folder(name)
        if not (folder / _STATE_FILE).exists():
            raise IndexNotFound(name)
        lease = self._lease(name)
        try:
            self.snapshot(name)
            entry = self._opened(name)
            slots = slots_for(kinds, entry.state.slots)
            if slots != entry.state.slots:
                if len(slots) > entry.state.capacity:
                    self._grow(name, entry, len(slots))
                    entry = self._opened(name)
                _write_state(folder, replace(entry.state, slots=slots))
                entry = self._opened(name)
        except BaseException:
            lease.release()
            raise
        with self._written(entry.index, slots, lease, documents) as writing:
            yield writing

    def check(self) -> None:
        self._prepare_root()
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"{self.root} cannot be written to")

    def close(self) -> None:
        self.settle()
        with self._lock:
            self._open.clear()

    def after_fork(self) -> None:
        super().after_fork()
        self._lock = threading.Lock()
        self._open = OrderedDict()

    def _prepare_root(self) -> None:
        for directory in (self.root, self.root / _LOCKS, self.root / _TRASH):
            directory.mkdir(parents=True, exist_ok=True)

    def _folder(self, name: str) -> Path:
        if not _INDEX_NAME.fullmatch(name):
            raise IndexNotFound(name)
        return self.root / name

    def _lease(self, name: str) -> FileLease:
        return lock_file(self.root / _LOCKS / name, self._timeout_seconds)

    def _opened(self, name: str) -> _OpenIndex:
        folder = self._folder(name)
        try:
            pointer = _signature(folder / _STATE_FILE)
        except FileNotFoundError:
            self._forget(name)
            raise IndexNotFound(name) from None
        with self._lock:
            entry = self._open.get(name)
            if entry is not None and entry.pointer == pointer:
                self._open.move_to_end(name)
                return entry
        state = State.from_json((folder / _STATE_FILE).read_bytes())
        entry = _OpenIndex(folder, state, pointer)
        with self._lock:
            self._open[name] = entry
            self._open.move_to_end(name)
            while len(self._open) > self._capacity:
                self._open.popitem(last=False)
        return entry

    def _forget(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)

    def _discard(self, name: str) -> None:
        """Take the directory away at one stroke, then empty it."""
        self._forget(name)
        folder = self._folder(name)
        if folder.exists():
            trash = self.root / _TRASH / f"{name}-{uuid.uuid4().hex}"
            folder.rename(trash)
            _sync(self.root)
            shutil.rmtree(trash, ignore_errors=True)

    def _grow(self, name: str, entry: _OpenIndex, wanted: int) -> None:
        """Write the index anew, beside the old one, with room for more fields; then point to it."""
        capacity = entry.state.capacity
        while capacity < wanted:
            capacity *= 2
        folder = self._folder(name)
        state = replace(entry.state, capacity=capacity, generation=f"g{uuid.uuid4().hex[:12]}")
        index = _make_generation(folder, state)
        with engine_errors("rebuilding an index"):
            writer = index.writer(LARGE_HEAP, 1)
            copy_documents(entry.current().searcher, writer, state.slots)
            writer.commit()
            writer.wait_merging_threads()
        _write_state(folder, state)
        self._forget(name)
        shutil.rmtree(entry.folder, ignore_errors=True)


def _signature(path: Path) -> Signature:
    """Changes whenever the file is replaced."""
    status = os.stat(path)  # noqa: PTH116 - a microsecond counts on the path of every search
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _open_index(folder: Path) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    register_tokenizers(index)
    index.config_reader("manual")
    index.reload()
    return index


def _make_generation(folder: Path, state: State) -> tantivy.Index:
    path = folder / state.generation
    path.mkdir()
    index = tantivy.Index(build_schema(state.capacity), str(path))
    register_tokenizers(index)
    return index


def _write_state(folder: Path, state: State) -> None:
    """Replace the state file so that a crash leaves the old one or the new one."""
    draft = folder / f".{_STATE_FILE}"
    with draft.open("wb") as file:
        file.write(state.to_json())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / _STATE_FILE)
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
