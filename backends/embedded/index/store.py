"""The common part of the stores of indexes, on disk and in memory."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import orjson
import tantivy

from backends.base import Document, FieldKinds
from backends.embedded.engine_errors import is_engine_error
from backends.embedded.index.documents import to_tantivy
from backends.embedded.index.locks import Lease
from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS, ID, OLDEST_READABLE_VERSION, SCHEMA_VERSION
from backends.embedded.index.snapshots import Snapshot
from backends.errors import BackendError, BackendUnavailable

log = logging.getLogger(__name__)

FEW = 20
"""Up to so many ids are removed without a look whether they are there."""

SMALL_HEAP = 15_000_000
"""Bytes; tantivy takes no less."""

LARGE_HEAP = 64_000_000


def heap_for(characters: int) -> int:
    """The memory in which so much text becomes one segment: less makes several, and more makes it slower."""
    return min(LARGE_HEAP, SMALL_HEAP + 3 * characters)


@dataclass(frozen=True, slots=True)
class State:
    """Facts about an index beside its documents.

    Attributes:
        generation: Name of the directory the documents are in; a rebuild makes a new one.
        capacity: Number of dynamic columns its schema has.
        dynamic_columns: Slots given out, by field.
        version: Version of the schema it was made with.
    """

    generation: str = "g1"
    capacity: int = FIRST_DYNAMIC_COLUMNS
    dynamic_columns: Mapping[str, int] = field(default_factory=dict)
    version: int = field(default_factory=lambda: SCHEMA_VERSION)

    def to_json(self) -> bytes:
        return orjson.dumps({
            "version": self.version, "generation": self.generation, "capacity": self.capacity,
            "slots": dict(self.dynamic_columns),
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: bytes) -> State:
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: It is not a state, or of a version of the schema that is not read any more.
            BackendUnavailable: A newer release made the index.
        """
        try:
            values = orjson.loads(text)
            version = int(values["version"])
            if version > SCHEMA_VERSION:
                # Not missing: a process of the release before must not build again what its successor has built.
                raise BackendUnavailable("The index was made by a newer release of the service.")
            if version < OLDEST_READABLE_VERSION:
                raise ValueError("a version of the schema that is not read any more")
            return cls(str(values["generation"]), int(values["capacity"]), dict(values["slots"]), version)
        except (KeyError, TypeError) as error:
            raise ValueError("not the state of an index") from error


@dataclass(frozen=True, slots=True)
class Writing:
    """An open write: what is put and removed is committed when the block ends well."""

    index: tantivy.Index
    writer: tantivy.IndexWriter
    dynamic_columns: Mapping[str, int]

    def put(self, documents: Sequence[Document]) -> None:
        """Add documents with distinct ids, in place of those with the same."""
        self.remove([document.id for document in documents])
        for document in documents:
            self.writer.add_document(to_tantivy(document, self.dynamic_columns))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove what was committed under these ids."""
        if len(ids) > FEW:
            # tantivy looks for what is to be removed in every segment, which costs far more than to know it is new.
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
        _STORES.add(self)

    @abstractmethod
    def names(self) -> list[str]:
        """Names of all indexes, those that cannot be read any more included."""

    @abstractmethod
    def outdated_names(self) -> list[str]:
        """Names of the indexes to be built anew: an earlier release made them, or they cannot be read any more."""

    @abstractmethod
    def create(self, name: str) -> None:
        """Make an empty index, or replace one that cannot be read any more."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove an index; does nothing if it is not there."""

    @abstractmethod
    def snapshot(self, name: str) -> Snapshot:
        """The index as of its last commit, whichever process made it.

        Raises:
            IndexNotFound: There is none, or it cannot be read any more.
        """

    @abstractmethod
    def writing(self, name: str, kinds: FieldKinds, characters: int) -> AbstractContextManager[Writing]:
        """A write of so many characters of text, committed when the block ends well, undone when it raises.

        Raises:
            IndexNotFound: There is no such index, or it cannot be read any more.
            BackendUnavailable: Others were writing for too long.
        """

    @abstractmethod
    def index_bytes(self) -> int | None:
        """Bytes of all indexes; ``None`` if that is not known."""

    @abstractmethod
    def check(self) -> None:
        """Raise ``OSError`` if nothing can be stored."""

    @abstractmethod
    def close(self) -> None:
        """Wait for what goes on and let go of everything open."""

    def run_maintenance(self) -> None:  # noqa: B027 - in memory nothing is to be done
        """Begin, in the background, what makes later searches faster. To be called every few seconds."""

    def settle(self) -> None:
        """Wait for the merges that go on in the background."""
        while True:
            with self._merging_lock:
                waiting = [thread for thread in self._merging if thread is not threading.current_thread()]
            if not waiting:
                return
            for thread in waiting:
                thread.join()

    def after_fork(self) -> None:
        """Forget, in a child process, what only the parent's threads can finish."""
        self._merging = set()
        self._merging_lock = threading.Lock()

    @contextmanager
    def _written(
        self, index: tantivy.Index, dynamic_columns: Mapping[str, int], lease: Lease, characters: int,
        afterwards: Callable[[], None] | None = None,
    ) -> Iterator[Writing]:  # fmt: skip
        """Write under a lease that is given back when the merges are done."""
        handed_over = False
        try:
            writer = index.writer(heap_for(characters), 1)
            try:
                # A killed process leaves files that the next commit would stumble over for ever.
                writer.garbage_collect_files()
                yield Writing(index, writer, dynamic_columns)
                writer.commit()
            except BaseException:
                _roll_back(writer)
                raise
            finally:
                handed_over = True
                self._finish(writer, lease, afterwards)
        finally:
            if not handed_over:
                lease.release()

    def _finish(self, writer: tantivy.IndexWriter, lease: Lease, afterwards: Callable[[], None] | None) -> None:
        """Wait for the merges in the background, then give the lock back and do what is to be done at rest."""

        def wait() -> None:
            try:
                writer.wait_merging_threads()
            finally:
                lease.release()

        def rest() -> None:
            wait()
            if afterwards is not None:
                afterwards()

        try:
            self.in_background(rest)
        except RuntimeError:
            # No thread can be had (or the interpreter is ending): the caller waits for the merges, and no longer.
            _maintain(wait)

    def in_background(self, work: Callable[[], None]) -> None:
        """Do something in a thread that :meth:`settle` waits for; what the engine raises there is logged.

        Raises:
            RuntimeError: No thread can be had.
        """

        def run() -> None:
            try:
                _maintain(work)
            finally:
                with self._merging_lock:
                    self._merging.discard(thread)

        thread = threading.Thread(target=run, name="index-merge")
        with self._merging_lock:
            self._merging.add(thread)
        try:
            thread.start()
        except RuntimeError:
            with self._merging_lock:
                self._merging.discard(thread)
            raise


def _maintain(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException as error:
        if not isinstance(error, BackendError) and not is_engine_error(error):
            raise
        log.warning("The maintenance of an index failed: %s: %s", type(error).__name__, error)


def _roll_back(writer: tantivy.IndexWriter) -> None:
    try:
        writer.rollback()
    except BaseException as error:
        if not is_engine_error(error):
            raise
        log.warning("A failed write could not be undone at once: %s", type(error).__name__)


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_STORES):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)
