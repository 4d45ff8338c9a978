"""Indexes on disk, shared by all processes of the machine.

``<root>/<index>/current.json`` contains the name of the current generation; ``<root>/<index>/<generation>/`` is
tantivy's directory with its documents. Lock files are kept in a separate folder and never removed.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from backends.base import Document
from backends.embedded.index.documents import copy_documents, dynamic_columns_for, live_columns
from backends.embedded.index.generations import (
    STATE_FILE,
    Measured,
    MergeWatch,
    current_generation,
    make_generation,
    measure_generations,
    new_generation,
    sweep_drafts,
    sweep_generations,
    sync_folder,
    write_state,
)
from backends.embedded.index.locks import FileLease, lock_file, try_lock_file
from backends.embedded.index.open_indexes import OpenIndex, OpenIndexes
from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS, SCHEMA_VERSION, enough_dynamic_columns
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.index.state import State
from backends.embedded.index.store import (
    LARGE_HEAP,
    MAX_UNCHECKED_DELETES,
    Conversion,
    OpenWriter,
    Store,
    WriteTransaction,
    is_engine_error,
    is_temporary,
)
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import FieldKinds

_INDEX_NAME = re.compile(r"[a-z0-9_]{1,64}")
_LOCKS = ".locks"
_VACUUM_LOCK = ".compaction"  # Must not change: during an upgrade, workers of two versions run at the same time.
_TRASH = ".trash"
_ATTEMPTS = 3

MAX_WATCHED_SECONDS = 2.0
"""Seconds after which a writer is no longer offered to other writes of its process, so that other processes can write.
"""


class Maintenance(Protocol):
    """Background maintenance that keeps a store's indexes fast to search."""

    def start_due_work(self) -> None:
        """Start due work in the background."""

    def after_write(self, name: str) -> None:
        """Maintain an index after a write. Called in the background."""


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
        watched_seconds: Seconds during which the process's writes may take over a writer; less than the timeout.
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
        self.watched_seconds = min(MAX_WATCHED_SECONDS, timeout_seconds / 3)
        self._make_maintenance = maintenance
        self._begin()

    def _begin(self) -> None:
        self.open_indexes = OpenIndexes(self.folder, self._capacity)
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
                return self.open_indexes.get(name).current()
            except IndexNotFound:
                raise
            except BaseException as error:
                if not is_engine_error(error):
                    raise
                if is_temporary(error):
                    raise BackendUnavailable("The index cannot be opened now.") from error
                # A new generation may have just replaced this one; the next attempt then opens the new one.
                failure = error
                self.open_indexes.forget(name)
        raise IndexNotFound(name) from failure

    @contextmanager
    def writing(self, name: str, kinds: FieldKinds, documents: Sequence[Document] = ()) -> Iterator[WriteTransaction]:
        if not (self.folder(name) / STATE_FILE).exists():
            raise IndexNotFound(name)
        conversion = Conversion(documents)
        open_writer = self._take_over(name) or OpenWriter(self.lease(name, self._convert(name, kinds, conversion)))
        try:
            dynamic_columns = _prepare(self, name, kinds, open_writer)
            if open_writer.index is None:
                entry = self.open_indexes.get(name)
                # A process that was killed while writing leaves drafts behind.
                sweep_drafts(entry.folder)
                open_writer.index, open_writer.folder = entry.index_for_writing(), entry.folder
                open_writer.after_close = entry.after_writer
                if len(documents) > MAX_UNCHECKED_DELETES:
                    open_writer.merges = MergeWatch(entry.folder, self.watched_seconds)
        except BaseException:
            open_writer.merges = None
            self._finish(name, open_writer)
            raise
        afterwards = None if self._maintenance is None else partial(self._maintenance.after_write, name)
        with self._written(name, open_writer, dynamic_columns, conversion, afterwards) as writing:
            yield writing

    def _convert(self, name: str, kinds: FieldKinds, conversion: Conversion) -> Iterator[None]:
        """Convert documents while another process, or the merges after the previous write, hold the lock."""
        if len(conversion.documents) > 1:  # Reading the last commit takes longer than converting one document.
            yield from conversion.steps_ahead(dynamic_columns_for(kinds, self.snapshot(name).dynamic_columns))

    def run_maintenance(self) -> None:
        if self._maintenance is not None:
            self._maintenance.start_due_work()

    def index_bytes(self) -> int | None:
        measured_before = self._measured
        self._measured = {
            path: measured
            for name in self.names()
            for path, measured in measure_generations(self.folder(name), measured_before).items()
        }
        return sum(measured.size for measured in self._measured.values())

    def free_share(self) -> float | None:
        self._prepare_root()
        disk = shutil.disk_usage(self.root)
        return disk.free / disk.total

    def check(self) -> None:
        self._prepare_root()
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"{self.root} cannot be written to")

    def close(self) -> None:
        self.is_closing = True
        self.settle()
        self.is_closing = False
        self.open_indexes.close()

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

    def lease(self, name: str, meanwhile: Iterable[object] = ()) -> FileLease:
        """Wait for the write lock of an index and return it.

        Args:
            meanwhile: Steps of work, run one by one as long as the lock is not free.

        Raises:
            BackendUnavailable: The lock was not free within the store's timeout.
        """
        return lock_file(self.root / _LOCKS / name, self._timeout_seconds, meanwhile)

    def try_hold_vacuum(self, name: str) -> FileLease | None:
        """Return the lock for building another generation of an index; ``None`` if another process holds it."""
        return try_lock_file(self.root / _LOCKS / f"{name}{_VACUUM_LOCK}")

    def _discard(self, name: str) -> None:
        """Move the index's folder away atomically, then delete its contents."""
        self.open_indexes.forget(name)
        folder = self.folder(name)
        if folder.exists():
            trash = self.root / _TRASH / f"{name}-{uuid.uuid4().hex}"
            # A rename is atomic: no process can see a half-deleted index.
            folder.rename(trash)
            sync_folder(self.root)
            shutil.rmtree(trash, ignore_errors=True)


def _prepare(store: DiskStore, name: str, kinds: FieldKinds, open_writer: OpenWriter) -> Mapping[str, int]:
    """Assign dynamic columns to the fields of a write, and return them; closes the writer if the index has to grow."""
    store.snapshot(name)
    entry = store.open_indexes.get(name)
    dynamic_columns = dynamic_columns_for(kinds, entry.state.dynamic_columns)
    if len(dynamic_columns) > entry.state.capacity:
        open_writer.close()
        return _grow(store, name, entry, kinds)
    if dynamic_columns != entry.state.dynamic_columns:
        write_state(store.folder(name), replace(entry.state, dynamic_columns=dynamic_columns))
    return dynamic_columns


def _grow(store: DiskStore, name: str, entry: OpenIndex, kinds: FieldKinds) -> Mapping[str, int]:
    """Build a generation with more dynamic columns, switch to it, and return the assigned columns."""
    folder = store.folder(name)
    guard = store.try_hold_vacuum(name)
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
    store.open_indexes.forget(name)
    shutil.rmtree(entry.folder, ignore_errors=True)
    return dynamic_columns
