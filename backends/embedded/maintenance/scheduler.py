"""Scheduling merges: of indexes with many deleted documents, and of quiet indexes with many large segments."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from backends.embedded.index.disk import DiskStore
from backends.embedded.index.generations import META_FILE, current_generation
from backends.embedded.maintenance.merging import read_segments
from backends.embedded.maintenance.vacuum import (
    is_fragmented,
    needs_merging,
    needs_vacuum,
    segments_of,
    vacuum,
)
from backends.errors import IndexNotFound

QUIET_SECONDS = 10.0
"""Seconds without a write before a fragmented index is merged."""

MAX_WAIT_SECONDS = 600.0
"""Seconds after which a fragmented index is merged even while it is written to."""

INDEXES_PER_CHECK = 500
"""Number of indexes checked per call: each takes about 60 microseconds."""


class MergeScheduler:
    """Finds indexes of a store to merge, checking a part of them at every call.

    Args:
        store: The store with the indexes.
    """

    def __init__(self, store: DiskStore):
        self._store = store
        self._round: Iterator[str] = iter(())
        self._fragmented_since: dict[str, float] = {}
        self._busy = threading.Lock()

    def look(self) -> None:
        """Check some indexes in the background and merge those that need it; one thread at a time."""
        # If no thread can be started, the next call tries again.
        with suppress(RuntimeError):
            self._store.in_background(self._look)

    def after_write(self, name: str) -> None:
        """Merge an index after a write if it has too many deleted documents."""
        if needs_vacuum(segments_of(self._store.folder(name))):
            vacuum(self._store, name, needs_vacuum)

    def _look(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            for name in self._next_names():
                if not self._store.is_closing and self._is_due(name):
                    with suppress(IndexNotFound):
                        vacuum(self._store, name, needs_merging)
        finally:
            self._busy.release()

    def _next_names(self) -> list[str]:
        names = list(islice(self._round, INDEXES_PER_CHECK))
        if not names:
            self._round = iter(self._store.names())
            names = list(islice(self._round, INDEXES_PER_CHECK))
        return names

    def _is_due(self, name: str) -> bool:
        try:
            generation = current_generation(self._store.folder(name))
            segments, written_at = read_segments(generation), (generation / META_FILE).stat().st_mtime
        except (OSError, ValueError):
            # It is being deleted or replaced, or it is broken, which the next search reports.
            return False
        if needs_vacuum(segments):
            return True
        if not is_fragmented(segments):
            self._fragmented_since.pop(name, None)
            return False
        since = self._fragmented_since.setdefault(name, time.monotonic())
        return time.time() - written_at >= QUIET_SECONDS or time.monotonic() - since >= MAX_WAIT_SECONDS
