"""Indexes on disk, shared by all processes of the machine.

``<root>/<index>/current.json`` names the generation that contains the documents; ``<root>/<index>/<generation>/`` is
tantivy's directory. Lock files are kept in a separate folder and never removed.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

import tantivy

from backends.embedded.index.documents import copy_documents, dynamic_columns_for, live_columns
from backends.embedded.index.generations import (
    META_FILE,
    STATE_FILE,
    Measured,
    Signature,
    current_generation,
    make_generation,
    measure_generations,
    new_generation,
    open_generation,
    read_generation,
    signature_of,
    sweep_drafts,
    sweep_generations,
    sync_folder,
    write_state,
)
from backends.embedded.index.locks import FileLease, lock_file, try_lock_file
from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS, SCHEMA_VERSION, enough_dynamic_columns
from backends.embedded.index.snapshots import Snapshot, SnapshotCache
from backends.embedded.index.store import LARGE_HEAP, State, Store, Writing, is_engine_error, is_passing
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import FieldKinds

_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")
_LOCKS = ".locks"
_VACUUM_LOCK = ".compaction"  # Must not change: during an upgrade, workers of two versions run at the same time.
_TRASH = ".trash"
_ATTEMPTS = 3

IDLE_SECONDS = 2.0
"""Seconds for which an unused index stays open.

Tantivy runs a thread for each open index, which takes about 0.3 ms of CPU per second; opening one takes about 1 ms.
"""

CACHED_WORDS_PER_INDEX = 25
"""Size of the cache for facts about words, in entries per index that may be open; all indexes share the cache.

One entry takes about 5 KB.
"""

CACHED_TITLES_PER_INDEX = 50
"""Size of the cache of titles for suggestions, in titles per index that may be open; one takes 0.5 KB, at most 3 KB."""


class OpenIndex:
    """An index that this process has open.

    Attributes:
        used_at: Time of the last use, on the monotonic clock.
    """

    def __init__(
        self, folder: Path, state: State, pointer: Signature, snapshot_cache: SnapshotCache, title_cache: SnapshotCache
    ):
        self.state = state
        self.pointer = pointer
        self.folder = folder / state.generation
        self._meta_path = f"{self.folder}/{META_FILE}"
        self.used_at = 0.0
        self._snapshot_cache = snapshot_cache
        self._title_cache = title_cache
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        meta = signature_of(self._meta_path)
        # Only the searcher is kept, so that an index that is not written to has no thread.
        self._snapshot = self._snapshot_of(read_generation(self.folder), meta)

    @property
    def index(self) -> tantivy.Index:
        """The index for writing, opened on first use."""
        with self._lock:
            if self._index is None:
                self._index = open_generation(self.folder)
            return self._index

    def current(self) -> Snapshot:
        """Return the snapshot of the last commit; files are read again only after a new commit."""
        meta = signature_of(self._meta_path)
        if self._snapshot.signature != meta:
            with self._lock:
                meta = signature_of(self._meta_path)
                if self._snapshot.signature != meta:
                    if self._index is None:
                        self._index = open_generation(self.folder)
                    else:
                        self._index.reload()
                    self._snapshot = self._snapshot_of(self._index, meta)
        return self._snapshot

    def _snapshot_of(self, index: tantivy.Index, meta: Signature) -> Snapshot:
        commit = str(self.folder), meta
        return Snapshot(index, self.state.dynamic_columns, meta, self._snapshot_cache, self._title_cache, commit)


class Maintenance(Protocol):
    """Background maintenance that keeps a store's indexes fast to search."""

    def look(self) -> None:
        """Start due work in the background."""

    def after_write(self, name: str) -> None:
        """Do what an index needs after a write; called in the background."""


class DiskStore(Store):
    """Indexes below one directory.

    At most ``capacity`` indexes stay open, each for :data:`IDLE_SECONDS` after its last use. A closed index uses no
    memory, thread, or file descriptor.

    Args:
        root: The directory; created on the first write.
        capacity: Number of indexes that stay open in this process.
        timeout_seconds: Seconds that a write waits for another write of the same index.
        maintenance: Creates the store's :class:`Maintenance`.

    Attributes:
        is_closing: Whether no more background work may start.
    """

    def __init__(
        self,
        root: Path,
        capacity: int,
        timeout_seconds: float,
        maintenance: Callable[[DiskStore], Maintenance] | None = None,
    ):
        super().__init__()
        self.root = root
        self._capacity = capacity
        self._timeout_seconds = timeout_seconds
        self._make_maintenance = maintenance
        self._begin()

    def _begin(self) -> None:
        self.snapshot_cache = SnapshotCache(self._capacity * CACHED_WORDS_PER_INDEX)
        self._title_cache = SnapshotCache(self._capacity * CACHED_TITLES_PER_INDEX)
        self._open: OrderedDict[str, OpenIndex] = OrderedDict()
        self._lock = threading.Lock()
        self._closer: threading.Thread | None = None
        self._closed = threading.Event()
        self._maintenance = None if self._make_maintenance is None else self._make_maintenance(self)
        self.is_closing = False
        self._measured: dict[str, Measured] = {}

    def names(self) -> list[str]:
        try:
            entries = list(os.scandir(self.root))
        except FileNotFoundError:
            return []
        return [
            entry.name
            for entry in entries
            if _INDEX_NAME.fullmatch(entry.name) and Path(entry.path, STATE_FILE).exists()
        ]

    def outdated_names(self) -> list[str]:
        return [name for name in self.names() if self._is_outdated(name)]

    def _is_outdated(self, name: str) -> bool:
        try:
            return State.from_json((self.folder(name) / STATE_FILE).read_bytes()).version < SCHEMA_VERSION
        except ValueError:
            return True
        except (FileNotFoundError, BackendUnavailable):
            return False  # It was deleted meanwhile, or a newer release created it.

    def create(self, name: str) -> None:
        folder = self.folder(name)
        self._prepare_root()
        lease = self.lease(name)
        try:
            try:
                self.snapshot(name)
            except IndexNotFound:
                self._discard(name)
                folder.mkdir(mode=0o700)
                state = State()
                make_generation(folder, state)
                write_state(folder, state)
                sync_folder(self.root)
        finally:
            lease.release()

    def drop(self, name: str) -> None:
        if not self.folder(name).exists():
            return
        lease = self.lease(name)
        try:
            self._discard(name)
        finally:
            lease.release()
        # Also removes files that killed processes left behind.
        for leftover in (self.root / _TRASH).iterdir():
            shutil.rmtree(leftover, ignore_errors=True)

    def snapshot(self, name: str) -> Snapshot:
        failure: BaseException | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self.opened(name).current()
            except IndexNotFound:
                raise
            except BaseException as error:
                if not is_engine_error(error):
                    raise
                if is_passing(error):
                    raise BackendUnavailable("The index cannot be opened now.") from error
                # A new generation may have just replaced this one; the next attempt then opens the new one.
                failure = error
                self.forget(name)
        raise IndexNotFound(name) from failure

    @contextmanager
    def writing(self, name: str, kinds: FieldKinds, characters: int) -> Iterator[Writing]:
        folder = self.folder(name)
        if not (folder / STATE_FILE).exists():
            raise IndexNotFound(name)
        lease = self.lease(name)
        try:
            self.snapshot(name)
            entry = self.opened(name)
            dynamic_columns: Mapping[str, int] = dynamic_columns_for(kinds, entry.state.dynamic_columns)
            if dynamic_columns != entry.state.dynamic_columns:
                if len(dynamic_columns) > entry.state.capacity:
                    dynamic_columns = self._grow(name, entry, kinds)
                else:
                    write_state(folder, replace(entry.state, dynamic_columns=dynamic_columns))
                entry = self.opened(name)
            # A process that was killed while writing leaves drafts behind.
            sweep_drafts(entry.folder)
            index = entry.index
        except BaseException:
            lease.release()
            raise
        afterwards = None if self._maintenance is None else partial(self._maintenance.after_write, name)
        with self._written(index, dynamic_columns, lease, characters, afterwards) as writing:
            yield writing

    def run_maintenance(self) -> None:
        if self._maintenance is not None:
            self._maintenance.look()

    def index_bytes(self) -> int | None:
        measured_before = self._measured
        self._measured = {
            path: measured
            for name in self.names()
            for path, measured in measure_generations(self.folder(name), measured_before).items()
        }
        return sum(measured.size for measured in self._measured.values())

    def check(self) -> None:
        self._prepare_root()
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"{self.root} cannot be written to")

    def close(self) -> None:
        self.is_closing = True
        self.settle()
        self.is_closing = False
        with self._lock:
            self._open.clear()
        self._closed.set()

    def after_fork(self) -> None:
        super().after_fork()
        self._begin()

    def _prepare_root(self) -> None:
        for directory in (self.root, self.root / _LOCKS, self.root / _TRASH):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = self.root.stat()
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            self.root.chmod(0o700)  # Earlier releases left the directory readable by everyone.

    def folder(self, name: str) -> Path:
        """Return the folder of an index. Raises :class:`IndexNotFound` for an invalid name."""
        if not _INDEX_NAME.fullmatch(name):
            raise IndexNotFound(name)
        return self.root / name

    def lease(self, name: str) -> FileLease:
        """Wait for the write lock of an index."""
        return lock_file(self.root / _LOCKS / name, self._timeout_seconds)

    def try_hold_vacuum(self, name: str) -> FileLease | None:
        """Take the lock for building another generation of an index; ``None`` if another process has it."""
        return try_lock_file(self.root / _LOCKS / f"{name}{_VACUUM_LOCK}")

    def opened(self, name: str) -> OpenIndex:
        """Return the open index; opens it if necessary.

        Raises:
            IndexNotFound: The index does not exist.
        """
        folder = self.folder(name)
        try:
            # Read before the state, so that after a switch in between, the next use reopens the index.
            pointer = signature_of(f"{folder}/{STATE_FILE}")
        except FileNotFoundError:
            self.forget(name)
            raise IndexNotFound(name) from None
        with self._lock:
            entry = self._open.get(name)
            if entry is not None and entry.pointer == pointer:
                entry.used_at = monotonic()
                self._open.move_to_end(name)
                return entry
        state = State.from_json((folder / STATE_FILE).read_bytes())
        entry = OpenIndex(folder, state, pointer, self.snapshot_cache, self._title_cache)
        let_go: list[OpenIndex] = []
        with self._lock:
            entry.used_at = monotonic()
            self._open[name] = entry
            self._open.move_to_end(name)
            while len(self._open) > self._capacity:
                # Kept until the lock is released, since closing an index takes a while.
                let_go.append(self._open.popitem(last=False)[1])
            self._start_closer()
        return entry

    def close_idle(self) -> float | None:
        """Close the indexes that have been idle for too long.

        Returns:
            Seconds until the next index may become idle; ``None`` if no index is open.
        """
        while True:
            with self._lock:
                entry = next(iter(self._open.values()), None)
                if entry is None:
                    return None
                rest = entry.used_at + IDLE_SECONDS - monotonic()
                if rest > 0:
                    return rest
                self._open.popitem(last=False)

    def _start_closer(self) -> None:
        """Start the thread that closes idle indexes. The caller must hold the lock."""
        if self._closer is None:
            closer = threading.Thread(target=self._keep_closing, name="index-closer", daemon=True)
            # If no thread can be started (or the interpreter is exiting), the next opened index tries again.
            with suppress(RuntimeError):
                closer.start()
                self._closer = closer

    def _keep_closing(self) -> None:
        while True:
            rest = self.close_idle()
            with self._lock:
                if not self._open:
                    self._closer = None
                    return
            self._closed.wait(rest)
            self._closed.clear()

    def forget(self, name: str) -> None:
        """Close an index; the next use reopens it."""
        with self._lock:
            self._open.pop(name, None)

    def _discard(self, name: str) -> None:
        """Move the index's folder away atomically, then delete its contents."""
        self.forget(name)
        folder = self.folder(name)
        if folder.exists():
            trash = self.root / _TRASH / f"{name}-{uuid.uuid4().hex}"
            # A rename is atomic: no process can see a half-deleted index.
            folder.rename(trash)
            sync_folder(self.root)
            shutil.rmtree(trash, ignore_errors=True)

    def _grow(self, name: str, entry: OpenIndex, kinds: FieldKinds) -> Mapping[str, int]:
        """Build a new generation with room for more fields beside the current one, then switch to it.

        Returns:
            The assigned dynamic columns.
        """
        folder = self.folder(name)
        guard = self.try_hold_vacuum(name)
        if guard is not None:  # Otherwise another process is building a generation, which must not be removed.
            try:
                sweep_generations(folder, entry.state)
            finally:
                guard.release()
        searcher = entry.current().searcher
        dynamic_columns = live_columns(searcher, kinds, entry.state.dynamic_columns)
        state = State(
            new_generation(), enough_dynamic_columns(FIRST_DYNAMIC_COLUMNS, len(dynamic_columns)), dynamic_columns
        )
        try:
            writer = make_generation(folder, state).writer(LARGE_HEAP, 1)
            copy_documents(searcher, writer, dynamic_columns)
            writer.commit()
            # Must happen before the switch: no writer may touch the files once other processes search them.
            writer.wait_merging_threads()
            write_state(folder, state)
        except BaseException:
            # If an operation fails, the state file may already name the new generation.
            if current_generation(folder) != folder / state.generation:
                shutil.rmtree(folder / state.generation, ignore_errors=True)
            raise
        self.forget(name)
        shutil.rmtree(entry.folder, ignore_errors=True)
        return dynamic_columns
