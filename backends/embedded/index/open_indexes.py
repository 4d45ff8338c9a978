"""The indexes that this process has open: a few at a time, closed soon after their last use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import tantivy

from backends.embedded.index.generations import (
    MANAGED_FILE,
    META_FILE,
    STATE_FILE,
    Signature,
    open_generation,
    read_generation,
    signature_of,
)
from backends.embedded.index.snapshots import Snapshot, SnapshotCache
from backends.embedded.index.state import State
from backends.errors import IndexNotFound

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
        self._managed: Signature | None = None
        """Signature of the list of files after this process's last write with the open index."""
        meta = signature_of(self._meta_path)
        # Only the searcher is kept, so that an index that is not written to has no thread.
        self._snapshot = self._snapshot_of(read_generation(self.folder), meta)

    def index_for_writing(self) -> tantivy.Index:
        """Return the index for a writer, opened if necessary. The caller must hold the write lock."""
        with self._lock:
            # An open index reads its list of files only once, and never removes a file that is not in its list.
            if self._index is None or self._managed != self._managed_signature():
                self._index = open_generation(self.folder)
            return self._index

    def after_writer(self) -> None:
        """Record that the open index knows all files. Call it under the write lock, after closing a writer."""
        with self._lock:
            self._managed = self._managed_signature()

    def _managed_signature(self) -> Signature | None:
        with suppress(FileNotFoundError):
            return signature_of(f"{self.folder}/{MANAGED_FILE}")
        return None

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


class OpenIndexes:
    """The open indexes of a store. Thread-safe.

    Args:
        folder_of: Returns the folder of an index.
        capacity: Number of indexes that stay open.
    """

    def __init__(self, folder_of: Callable[[str], Path], capacity: int):
        self._folder_of = folder_of
        self._capacity = capacity
        self.snapshot_cache = SnapshotCache(capacity * CACHED_WORDS_PER_INDEX)
        self._title_cache = SnapshotCache(capacity * CACHED_TITLES_PER_INDEX)
        self._open: OrderedDict[str, OpenIndex] = OrderedDict()
        self._lock = threading.Lock()
        self._closer: threading.Thread | None = None
        self._closed = threading.Event()

    def get(self, name: str) -> OpenIndex:
        """Return the open index; opens it if necessary.

        Raises:
            IndexNotFound: The index does not exist.
        """
        folder = self._folder_of(name)
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
        evicted: list[OpenIndex] = []
        with self._lock:
            entry.used_at = monotonic()
            self._open[name] = entry
            self._open.move_to_end(name)
            while len(self._open) > self._capacity:
                # Kept until the lock is released, since closing an index takes a while.
                evicted.append(self._open.popitem(last=False)[1])
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

    def close(self) -> None:
        """Close all indexes and end the thread that closes idle ones."""
        with self._lock:
            self._open.clear()
        self._closed.set()
