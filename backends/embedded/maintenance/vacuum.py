"""Removing deleted documents and excess segments.

Tantivy keeps replaced and deleted documents until their segment is merged, and large segments until there are eight of
a size; every search reads each of them. An index with too many of either is merged beside the old one while searches
and writes continue. Then, under the lock, the changes since are copied over and the state file is switched.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import tantivy

from backends.embedded.index.disk import DiskStore
from backends.embedded.index.documents import to_tantivy
from backends.embedded.index.generations import (
    current_generation,
    new_generation,
    open_generation,
    sweep_generations,
    write_state,
)
from backends.embedded.index.rebuild import changes_by_id, stored_documents
from backends.embedded.index.schema import ID, UPDATED_AT
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.index.store import LARGE_HEAP, State
from backends.embedded.maintenance.merging import LARGE_SEGMENT, Segment, link_generation, merge_all, read_segments

DELETED_SHARE = 0.4
"""Deleted documents per live document above which an index is merged."""

MIN_DELETED = 2000

MAX_LARGE_SEGMENTS = 3

FRAGMENTED_SHARE = 0.25
"""Documents outside the largest segment, per document in it, that make rewriting the largest one worthwhile."""


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
    """The segments of an index; empty if it no longer exists or is unreadable."""
    try:
        return read_segments(current_generation(folder))
    except (OSError, ValueError):
        return []


def vacuum(store: DiskStore, name: str, is_needed: Callable[[Sequence[Segment]], bool] = lambda segments: True) -> bool:
    """Merge an index into one large segment without deleted documents. Returns whether it was merged.

    Only one process does it at a time; another one returns at once, and so does a process that finds the index
    replaced or no longer in need of merging.

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
            entry = store.opened(name)
            sweep_generations(folder, entry.state)
            before, source = entry.current(), entry.state
            if not is_needed(read_segments(entry.folder)):
                return False
            state = replace(source, generation=new_generation())
            link_generation(entry.folder, folder / state.generation)
        finally:
            lease.release()
        merge_all(folder / state.generation, state.dynamic_columns)
        # Reading every document's id takes a while: half of that is done before writers have to wait.
        old = None if store.snapshot(name).signature == before.signature else changes_by_id(before.searcher)
        lease = store.lease(name)
        try:
            entry = store.opened(name)
            now = entry.current()
            if entry.state.generation != source.generation:
                return False
            if now.signature != before.signature:
                writer = open_generation(folder / state.generation).writer(LARGE_HEAP, 1)
                _bring_over(changes_by_id(before.searcher) if old is None else old, now, writer)
                writer.commit()
                writer.wait_merging_threads()
            write_state(folder, replace(entry.state, generation=state.generation))
            store.forget(name)
            shutil.rmtree(entry.folder, ignore_errors=True)
            state = None
        finally:
            lease.release()
        return True
    finally:
        if state is not None:
            shutil.rmtree(folder / state.generation, ignore_errors=True)
        guard.release()


def _bring_over(old: Mapping[str, int], now: Snapshot, writer: tantivy.IndexWriter) -> None:
    """Write the changes since ``old``, a mapping of each document's id to the time of its last change."""
    new = changes_by_id(now.searcher)
    for id in old.keys() - new.keys():
        writer.delete_documents_by_term(ID, id)
    changed = {id for id, moment in new.items() if old.get(id) != moment}
    if not changed:
        return
    since = min(new[id] for id in changed)
    recent = tantivy.Query.range_query(now.schema, UPDATED_AT, tantivy.FieldType.Integer, since, None)
    for document in stored_documents(now.searcher, recent):
        if document.id in changed:
            writer.delete_documents_by_term(ID, document.id)
            writer.add_document(to_tantivy(document, now.dynamic_columns))
