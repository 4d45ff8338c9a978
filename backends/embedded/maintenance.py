"""Background maintenance of indexes on disk: removing deleted documents and excess segments.

Tantivy keeps replaced and deleted documents until their segment is merged, and large segments until there are eight of
similar size, and every search reads all of them. An index with too many of either is merged into a copy while searches
and writes continue. Then, under the lock, later changes are copied over and the state file is switched to the copy.

Tantivy's merge policy merges segments with few documents once there are eight of them, and it reads the sizes from the
index's ``meta.json`` (https://docs.rs/tantivy/latest/tantivy/merge_policy/struct.LogMergePolicy.html). tantivy-py has
no call for a merge. Therefore, in a copy that no process reads, this module claims in ``meta.json`` that every segment
has one live document, and the next commit merges them all. The segments' own files, which record the real live
documents, stay intact.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import tantivy

from backends.embedded.index.disk import DiskStore
from backends.embedded.index.documents import changes_by_id, documents_at, stored_documents, to_tantivy
from backends.embedded.index.generations import (
    MANAGED_FILE,
    META_FILE,
    Segment,
    current_generation,
    new_generation,
    open_generation,
    read_meta,
    read_segments,
    sweep_generations,
    write_meta,
    write_state,
)
from backends.embedded.index.schema import ID, UPDATED_AT
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.index.state import State
from backends.embedded.index.store import LARGE_HEAP, SMALL_HEAP
from backends.errors import BackendUnavailable, IndexNotFound

LARGE_SEGMENT = 10_000
"""Minimum number of documents of a large segment: tantivy merges smaller ones whenever there are eight."""

_SEGMENTS_IN_MERGE = 8
_ATTEMPTS = 3


def link_generation(source: Path, target: Path) -> None:
    """Copy an index that no process writes to, hard-linking segment files, because tantivy never changes them."""
    target.mkdir()
    segments = {segment.name: segment for segment in read_segments(source)}
    for path in source.iterdir():
        segment = segments.get(path.name.partition(".")[0])
        if segment is not None and (path.suffix != ".del" or path.name == segment.deletes_file):
            _link(path, target / path.name)
    for name in (MANAGED_FILE, META_FILE):
        # Copied, because these files change with every commit. Segment files never change.
        shutil.copyfile(source / name, target / name)


def merge_all(generation: Path, dynamic_columns: Mapping[str, int]) -> None:
    """Merge an index that no other process has open into one segment without deleted documents, plus one small segment.

    Some documents are first removed, so that every large segment has a deletion file, and then added back, so that
    there is something to commit.

    Raises:
        BackendUnavailable: Tantivy did not merge, or documents are missing; the copy is then useless.
    """
    index = open_generation(generation)
    total = index.searcher().num_docs
    removed: dict[str, tantivy.Document] = {}
    for _ in range(_ATTEMPTS):
        if removed and all(segment.deleted or segment.live < LARGE_SEGMENT for segment in read_segments(generation)):
            break
        removed |= _remove_some(index, dynamic_columns)
    del index
    # No index is open here, because an open one would write its own metadata over the changed file.
    _claim_one_live_document(generation)
    index = open_generation(generation)
    writer = index.writer(SMALL_HEAP, 1)
    pending = list(removed.values())
    for _ in range(_SEGMENTS_IN_MERGE - 1 - len(read_segments(generation))):
        if len(pending) > 1:
            writer.add_document(pending.pop())
            writer.commit()
    for document in pending:
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    segments = read_segments(generation)
    # Checked because the merge relies on internals of tantivy, which may change.
    if index.searcher().num_docs != total or sum(segment.documents for segment in segments) != total:
        raise BackendUnavailable(f"The segments of an index were not merged: {len(segments)} are left.")


def _remove_some(index: tantivy.Index, dynamic_columns: Mapping[str, int]) -> dict[str, tantivy.Document]:
    """Remove a document of each segment, and at least eight in total, if there are as many; return the removed ones."""
    index.reload()
    searcher = index.searcher()
    every = tantivy.Query.all_query()
    addresses = [address for _, address in searcher.search(every, limit=_SEGMENTS_IN_MERGE, count=False).hits]
    for number in range(searcher.num_segments):
        # The first document of a segment may be deleted: then the segment already has a deletion file.
        first = tantivy.DocAddress(number, 0)
        same_id = tantivy.Query.term_query(index.schema, ID, searcher.doc(first).get_first(ID))
        addresses += [address for _, address in searcher.search(same_id, limit=1, count=False).hits]
    documents = {document.id: document for document in documents_at(searcher, addresses)}
    writer = index.writer(SMALL_HEAP, 1)
    writer.garbage_collect_files()
    for id in documents:
        writer.delete_documents_by_term(ID, id)
    writer.commit()
    writer.wait_merging_threads()
    return {id: to_tantivy(document, dynamic_columns) for id, document in documents.items()}


def _claim_one_live_document(generation: Path) -> None:
    meta = read_meta(generation)
    for entry in meta["segments"]:
        if entry["deletes"]:
            entry["deletes"]["num_deleted_docs"] = entry["max_doc"] - 1
    write_meta(generation, meta)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Not every file system supports links.
        shutil.copyfile(source, target)


DELETED_SHARE = 0.4
"""Ratio of deleted to live documents above which an index is merged."""

MIN_DELETED = 2000

MAX_LARGE_SEGMENTS = 3

FRAGMENTED_SHARE = 0.25
"""Minimum ratio of documents outside the largest segment to documents in it for which rewriting it is worthwhile."""


def needs_vacuum(segments: Sequence[Segment]) -> bool:
    """Whether an index contains too many deleted documents."""
    deleted = sum(segment.deleted for segment in segments)
    return deleted >= MIN_DELETED and deleted > DELETED_SHARE * sum(segment.live for segment in segments)


def is_fragmented(segments: Sequence[Segment]) -> bool:
    """Whether an index has too many large segments."""
    sizes = [segment.live for segment in segments]
    if sum(size >= LARGE_SEGMENT for size in sizes) <= MAX_LARGE_SEGMENTS:
        return False
    return sum(sizes) - max(sizes) >= FRAGMENTED_SHARE * max(sizes)


def needs_merging(segments: Sequence[Segment]) -> bool:
    """Whether an index has too many deleted documents or large segments."""
    return needs_vacuum(segments) or is_fragmented(segments)


def segments_of(folder: Path) -> list[Segment]:
    """Return the segments of an index; empty if it no longer exists or is unreadable."""
    try:
        return read_segments(current_generation(folder))
    except (OSError, ValueError):
        return []


def vacuum(store: DiskStore, name: str, is_needed: Callable[[Sequence[Segment]], bool] = lambda segments: True) -> bool:
    """Merge an index into one large segment without deleted documents. Returns whether it was merged.

    Only one process merges an index at a time. The function returns immediately if another process is merging it, or
    if the index has been replaced or no longer needs merging.

    Raises:
        BackendUnavailable: Tantivy did not merge, or other writes held the lock for too long.
        IndexNotFound: The index does not exist.
    """
    guard = store.try_hold_vacuum(name)
    if guard is None:
        return False
    folder = store.folder(name)
    state: State | None = None
    try:
        lease = store.lease(name)
        try:
            entry = store.open_indexes.get(name)
            sweep_generations(folder, entry.state)
            before, source = entry.current(), entry.state
            if not is_needed(read_segments(entry.folder)):
                return False
            state = replace(source, generation=new_generation())
            link_generation(entry.folder, folder / state.generation)
        finally:
            lease.release()
        merge_all(folder / state.generation, state.dynamic_columns)
        # Reading every document's id takes a while; half of that happens before writers have to wait.
        old = None if store.snapshot(name).signature == before.signature else changes_by_id(before.searcher)
        lease = store.lease(name)
        try:
            entry = store.open_indexes.get(name)
            now = entry.current()
            # Meanwhile, a write that needed more columns has rebuilt the index without deleted documents.
            if entry.state.generation != source.generation:
                return False
            if now.signature != before.signature:
                writer = open_generation(folder / state.generation).writer(LARGE_HEAP, 1)
                _copy_changes(changes_by_id(before.searcher) if old is None else old, now, writer)
                writer.commit()
                writer.wait_merging_threads()
            # In this order: after a crash, at most an unused folder remains, which the next merge deletes.
            write_state(folder, replace(entry.state, generation=state.generation))
            store.open_indexes.forget(name)
            shutil.rmtree(entry.folder, ignore_errors=True)
            # The copy is in use from here on, so the cleanup below must not delete it.
            state = None
        finally:
            lease.release()
        return True
    finally:
        if state is not None:
            shutil.rmtree(folder / state.generation, ignore_errors=True)
        guard.release()


def _copy_changes(old: Mapping[str, int], now: Snapshot, writer: tantivy.IndexWriter) -> None:
    """Write the changes since ``old``, which maps each document's id to the time of its last change."""
    new = changes_by_id(now.searcher)
    for id in old.keys() - new.keys():
        writer.delete_documents_by_term(ID, id)
    changed = {id for id, moment in new.items() if old.get(id) != moment}
    if not changed:
        return
    # Reads only documents from the oldest change on, not the whole index.
    since = min(new[id] for id in changed)
    recent = tantivy.Query.range_query(now.schema, UPDATED_AT, tantivy.FieldType.Integer, since, None)
    for document in stored_documents(now.searcher, recent):
        if document.id in changed:
            writer.delete_documents_by_term(ID, document.id)
            writer.add_document(to_tantivy(document, now.dynamic_columns))


QUIET_SECONDS = 10.0
"""Seconds without a write before a fragmented index is merged."""

MAX_WAIT_SECONDS = 600.0
"""Seconds after which a fragmented index is merged even while it is written to."""

INDEXES_PER_CHECK = 500
"""Number of indexes checked per call; each check takes about 60 microseconds."""


class MergeScheduler:
    """Finds a store's indexes that need merging, checking some of them on every call.

    Args:
        store: The store with the indexes.
    """

    def __init__(self, store: DiskStore):
        self._store = store
        self._round: Iterator[str] = iter(())
        self._fragmented_since: dict[str, float] = {}
        self._busy = threading.Lock()

    def start_due_work(self) -> None:
        """Check some indexes in the background, and merge those that need it. Does nothing while a check is running."""
        # If no thread can be started, the next call tries again.
        with suppress(RuntimeError):
            self._store.in_background(self._merge_due_indexes)

    def after_write(self, name: str) -> None:
        """Merge an index after a write if it has too many deleted documents."""
        # Reads only the metadata, so that the check adds almost nothing to the cost of a write.
        if needs_vacuum(segments_of(self._store.folder(name))):
            vacuum(self._store, name, needs_vacuum)

    def _merge_due_indexes(self) -> None:
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
            # The index is being deleted or replaced, or it is broken, which the next search reports.
            return False
        if needs_vacuum(segments):
            return True
        if not is_fragmented(segments):
            self._fragmented_since.pop(name, None)
            return False
        since = self._fragmented_since.setdefault(name, time.monotonic())
        return time.time() - written_at >= QUIET_SECONDS or time.monotonic() - since >= MAX_WAIT_SECONDS
