"""The common part of index stores on disk and in memory, and the translation of tantivy's exceptions."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tantivy

from backends.base import Document
from backends.embedded.index.documents import searched_characters, to_tantivy
from backends.embedded.index.generations import MergeWatch, sync_folder
from backends.embedded.index.locks import Lease
from backends.embedded.index.schema import ID
from backends.embedded.index.snapshots import Snapshot
from backends.errors import BackendError, BackendUnavailable
from backends.query import FieldKinds

# Numbers of the operating system's errors, as in tantivy's messages.
_TEMPORARY_ERROR = re.compile(r"os error (?:4|5|11|12|13|23|24|28|30|122)\b|LockBusy|Cannot allocate|No space left")


def is_engine_error(error: BaseException) -> bool:
    """Whether the engine or a file operation raised the error. Engine panics have their own ``BaseException`` class."""
    return isinstance(error, ValueError | OSError | MemoryError | UnicodeError) or (
        type(error).__name__ == "PanicException"
    )


def is_temporary(error: BaseException) -> bool:
    """Whether an error is due to the machine (memory, disk, open files, permissions) rather than the index.

    Tantivy reports errors of the operating system only as text.
    """
    return isinstance(error, MemoryError | PermissionError) or _TEMPORARY_ERROR.search(str(error)) is not None


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Raise :class:`BackendUnavailable` from any engine error in the block; ``doing`` describes the operation."""
    try:
        yield
    except BackendError:
        raise
    # Not only Exception: panics of the engine have their own base class.
    except BaseException as error:
        if not is_engine_error(error):
            raise
        raise BackendUnavailable(f"The search engine failed while {doing}.") from error


log = logging.getLogger(__name__)

_MAX_CLOSING_SECONDS = 2.0
"""Time within which the kernel closes the files of a killed process."""

MAX_UNCHECKED_DELETES = 20
"""Maximum number of IDs that are deleted without checking whether they exist."""

SMALL_HEAP = 15_000_000
"""Size in bytes of a small writer heap, the minimum that tantivy accepts."""

LARGE_HEAP = 64_000_000
"""Size in bytes of the largest writer heap."""


def heap_for(characters: int) -> int:
    """Return the size in bytes of the writer heap for this many characters: enough for one segment, up to
    :data:`LARGE_HEAP`. Larger heaps are slower.
    """
    return min(LARGE_HEAP, SMALL_HEAP + 3 * characters)


class Conversion:
    """The conversion of a write's documents, which may begin while the write waits for its lock.

    Args:
        documents: Documents with distinct IDs.
    """

    def __init__(self, documents: Sequence[Document]):
        self.documents = documents
        self._expected_columns: Mapping[str, int] = {}
        self._ahead: deque[tantivy.Document] = deque()

    def steps_ahead(self, expected_columns: Mapping[str, int]) -> Iterator[None]:
        """Convert the next document at each step, for the dynamic columns that the write will probably have."""
        self._expected_columns = expected_columns
        for document in self.documents:
            self._ahead.append(to_tantivy(document, expected_columns))
            yield

    def entries(self, dynamic_columns: Mapping[str, int]) -> Iterator[tantivy.Document]:
        """Yield all documents, converted."""
        if dynamic_columns != self._expected_columns:
            self._ahead.clear()  # Another write assigned columns to other fields.
        for document in self.documents:
            yield self._ahead.popleft() if self._ahead else to_tantivy(document, dynamic_columns)


@dataclass(slots=True, eq=False)
class OpenWriter:
    """The lock of an index, and the writer that writes under it.

    Attributes:
        index: Index to write to; ``None`` until it is chosen.
        folder: Folder of the chosen index; ``None`` in memory.
        merges: Merges during which other writes may take over the writer; ``None`` if they may not.
        writer: ``None`` until the first write begins.
        after_close: Called under the lock when the writer has been closed.
    """

    lease: Lease
    index: tantivy.Index | None = None
    folder: Path | None = None
    merges: MergeWatch | None = None
    writer: tantivy.IndexWriter | None = None
    after_close: Callable[[], None] | None = None

    def begin(self, documents: Iterable[Document]) -> tuple[tantivy.Index, tantivy.IndexWriter]:
        """Return the index and its writer, which is opened for the size of these documents if necessary."""
        assert self.index is not None
        if self.writer is None:
            self.writer = _open_writer(self.index, heap_for(searched_characters(documents)))
            # A killed process may leave files behind that would make every later commit fail.
            self.writer.garbage_collect_files()
        return self.index, self.writer

    def close(self) -> None:
        """Wait for the merges, which tantivy would abandon otherwise, and close the writer; the lock stays held."""
        writer = self.writer
        self.writer = self.index = self.merges = None
        if writer is not None:
            writer.wait_merging_threads()
            if self.after_close is not None:
                self.after_close()


def _open_writer(index: tantivy.Index, heap_bytes: int) -> tantivy.IndexWriter:
    deadline = time.monotonic() + _MAX_CLOSING_SECONDS
    while True:
        try:
            return index.writer(heap_bytes, 1)
        except ValueError as error:
            # The kernel closes the files of a killed process one by one: our lock first, and tantivy's own lock later.
            if "LockBusy" not in str(error) or time.monotonic() >= deadline:
                raise
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class WriteTransaction:
    """An open write transaction; commits when the block ends without an exception."""

    index: tantivy.Index
    writer: tantivy.IndexWriter
    dynamic_columns: Mapping[str, int]
    conversion: Conversion

    def put(self) -> None:
        """Add the documents with which the write was begun, replacing documents with the same IDs."""
        self.remove([document.id for document in self.conversion.documents])
        for entry in self.conversion.entries(self.dynamic_columns):
            self.writer.add_document(entry)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete the committed documents with these IDs."""
        if len(ids) > MAX_UNCHECKED_DELETES:
            # To delete an ID, tantivy searches every segment, which costs far more than checking that the ID is new.
            self.index.reload()
            searcher = self.index.searcher()
            ids = [id for id in ids if searcher.doc_freq(ID, id)]
        for id in ids:
            self.writer.delete_documents_by_term(ID, id)


class Store(ABC):
    """Indexes by name."""

    def __init__(self) -> None:
        self._merging: set[threading.Thread] = set()
        self._merging_lock = threading.Lock()
        self._offered: dict[str, OpenWriter] = {}
        _STORES.add(self)

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all indexes, including unreadable ones."""

    @abstractmethod
    def outdated_names(self) -> list[str]:
        """Return the names of the indexes to rebuild: indexes of an earlier release and unreadable ones."""

    @abstractmethod
    def create(self, name: str) -> None:
        """Create an empty index, or replace an unreadable one."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Delete an index; does nothing if it does not exist."""

    @abstractmethod
    def snapshot(self, name: str) -> Snapshot:
        """Return the index as of its last commit, whichever process made the commit.

        Raises:
            IndexNotFound: The index does not exist or is unreadable.
        """

    @abstractmethod
    def writing(
        self, name: str, kinds: FieldKinds, documents: Sequence[Document] = ()
    ) -> AbstractContextManager[WriteTransaction]:
        """Begin a write; the block's normal end commits it, and an exception rolls it back.

        Args:
            documents: Documents with distinct ids for :meth:`WriteTransaction.put`.

        Raises:
            IndexNotFound: The index does not exist or is unreadable.
            BackendUnavailable: Other writes held the lock for too long.
        """

    @abstractmethod
    def index_bytes(self) -> int | None:
        """Return the total size of all indexes in bytes; ``None`` if it is unknown."""

    def free_share(self) -> float | None:
        """Return the free share of the disk with the indexes, from 0 to 1; ``None`` for indexes in memory."""
        return None

    @abstractmethod
    def check(self) -> None:
        """Raise ``OSError`` if nothing can be stored."""

    @abstractmethod
    def close(self) -> None:
        """Wait for background work and close everything."""

    def run_maintenance(self) -> None:  # noqa: B027 - indexes in memory need none
        """Start background work that speeds up later searches. Called every few seconds."""

    def settle(self) -> None:
        """Wait for the merges in the background."""
        while True:
            with self._merging_lock:
                waiting = [thread for thread in self._merging if thread is not threading.current_thread()]
            if not waiting:
                return
            for thread in waiting:
                thread.join()

    def after_fork(self) -> None:
        """In a child process, forget background work whose threads exist only in the parent."""
        self._merging = set()
        self._merging_lock = threading.Lock()
        self._offered = {}

    @contextmanager
    def _written(
        self, name: str, open_writer: OpenWriter, dynamic_columns: Mapping[str, int], conversion: Conversion,
        afterwards: Callable[[], None] | None = None,
    ) -> Iterator[WriteTransaction]:  # fmt: skip
        """Commit at the block's end; release the lock after the merges, unless another write takes over the writer."""
        is_new = open_writer.writer is None
        try:
            index, writer = open_writer.begin(conversion.documents)
            yield WriteTransaction(index, writer, dynamic_columns, conversion)
            writer.commit()
            if open_writer.folder is not None:
                # Tantivy flushes the files of a commit, but not the rename that makes it the current one.
                sync_folder(open_writer.folder)
        except BaseException:
            open_writer.merges = None  # After a failure, nobody takes over the writer.
            # Merges of earlier commits would survive a rollback and could replace ``meta.json`` after the lock is
            # released. Closing the writer waits for them, and also discards what was not committed.
            if is_new and open_writer.writer is not None:
                _roll_back(open_writer.writer)
            raise
        finally:
            self._finish(name, open_writer, afterwards)

    def _finish(self, name: str, open_writer: OpenWriter, afterwards: Callable[[], None] | None = None) -> None:
        """Wait for the merges in the background, then release the lock and run ``afterwards``."""
        if open_writer.writer is None:
            open_writer.lease.release()
            return
        merges = open_writer.merges
        if merges is not None and merges.is_time_up():
            # The next write could take the writer before a thread ends the offer, again and again.
            merges = None
        if merges is not None:
            with self._merging_lock:
                self._offered[name] = open_writer

        def close() -> bool:
            if merges is not None and not self._withdraw_offer(name, open_writer):
                return False
            try:
                open_writer.close()
            finally:
                open_writer.lease.release()
            return True

        def finish() -> None:
            if merges is not None:
                _maintain(partial(merges.wait_for_merges, lambda: self._offered.get(name) is not open_writer))
            if close() and afterwards is not None:
                afterwards()

        try:
            self.in_background(finish)
        except RuntimeError:
            # If no thread can be started (or the interpreter is exiting), wait for the merges here and skip the rest.
            _maintain(close)

    def _withdraw_offer(self, name: str, open_writer: OpenWriter) -> bool:
        """End the offer of a writer. Returns whether no other write took it."""
        with self._merging_lock:
            was_offered = self._offered.get(name) is open_writer
            if was_offered:
                del self._offered[name]
        return was_offered

    def _take_over(self, name: str) -> OpenWriter | None:
        """Return the writer that this process offers for an index, if there is one."""
        with self._merging_lock:
            offered = self._offered.pop(name, None)
        # A copy, because the thread that waits for the earlier write's merges recognizes its own offer by identity.
        return None if offered is None else replace(offered)

    def in_background(self, work: Callable[[], None]) -> None:
        """Run work in a thread that :meth:`settle` waits for; engine errors in it are logged.

        Raises:
            RuntimeError: No thread can be started.
        """

        def run() -> None:
            try:
                _maintain(work)
            finally:
                with self._merging_lock:
                    self._merging.discard(thread)

        thread = threading.Thread(target=run, name="index-merge")
        with self._merging_lock:
            # Before the start, because the thread removes itself at its end.
            self._merging.add(thread)
        try:
            thread.start()
        except RuntimeError:
            with self._merging_lock:
                self._merging.discard(thread)
            raise


def _maintain(work: Callable[[], object]) -> None:
    try:
        work()
    except BaseException as error:
        if not isinstance(error, BackendError) and not is_engine_error(error):
            raise
        log.warning("Index maintenance failed: %s: %s", type(error).__name__, error)


def _roll_back(writer: tantivy.IndexWriter) -> None:
    try:
        writer.rollback()
    except BaseException as error:
        if not is_engine_error(error):
            raise
        log.warning("A failed write could not be rolled back immediately: %s", type(error).__name__)


# Weak, so that the registry does not keep stores and their open indexes alive.
_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_STORES):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)
