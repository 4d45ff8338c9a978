"""Indexes are merged that have many large segments, when nobody writes to them any more, or many dead documents."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from backends.embedded.compaction import (
    compact,
    current_generation,
    is_bloated,
    is_scattered,
    needs_merging,
    segments_of,
)
from backends.embedded.generations import META_FILE
from backends.errors import IndexNotFound

if TYPE_CHECKING:
    from backends.embedded.disk import DiskStore

QUIET_SECONDS = 10.0
"""How long nobody must have written to an index."""

LONGEST_WAIT_SECONDS = 600.0
"""After which it is merged although it is still written to."""

INDEXES_A_LOOK = 500
"""Indexes that are looked at in one go: each takes about 60 microseconds."""


class Tidier:
    """Finds what is to be merged among the indexes of a store, a part of them at every look.

    Args:
        store: Whose indexes they are.
    """

    def __init__(self, store: DiskStore):
        self._store = store
        self._round: Iterator[str] = iter(())
        self._scattered_since: dict[str, float] = {}
        self._busy = threading.Lock()

    def look(self) -> None:
        """Look at some indexes, and begin to merge in the background what is to be merged; one thread does it."""
        if not self._busy.acquire(blocking=False):
            return
        due: list[str] = []
        try:
            names = list(islice(self._round, INDEXES_A_LOOK))
            if not names:
                self._round = iter(self._store.names())
                names = list(islice(self._round, INDEXES_A_LOOK))
            due = [name for name in names if self._is_due(name)]
            if due:
                self._store.in_background(lambda: self._merge(due))
        except RuntimeError:
            # No thread can be had: the next look tries again.
            due = []
        finally:
            if not due:
                self._busy.release()

    def _merge(self, names: list[str]) -> None:
        try:
            for name in names:
                if not self._store.is_closing:
                    with suppress(IndexNotFound):
                        compact(self._store, name, needs_merging)
        finally:
            self._busy.release()

    def _is_due(self, name: str) -> bool:
        folder = self._store.folder(name)
        segments = segments_of(folder)
        if is_bloated(segments):
            return True
        if not is_scattered(segments):
            self._scattered_since.pop(name, None)
            return False
        since = self._scattered_since.setdefault(name, time.monotonic())
        if time.monotonic() - since >= LONGEST_WAIT_SECONDS:
            return True
        try:
            written_at = (current_generation(folder) / META_FILE).stat().st_mtime
        except (OSError, ValueError):
            return False
        return time.time() - written_at >= QUIET_SECONDS
