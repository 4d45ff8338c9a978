"""Getting rid of the dead, and of too many segments.

Tantivy keeps replaced and removed documents until their segment is merged, and large segments until there are eight of
a size; every search looks into each of them. An index with too many of either is merged beside the old one, while
searches and writes go on; what changed meanwhile is brought over under the lock, and the pointer is moved.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tantivy

from backends.embedded.documents import to_tantivy
from backends.embedded.generations import STATE_FILE, new_generation, open_generation, write_state
from backends.embedded.locks import try_lock_file
from backends.embedded.merging import Segment, link_generation, merge_all, read_segments
from backends.embedded.rebuild import changes_by_id, stored_documents
from backends.embedded.schema import CHANGED, ID
from backends.embedded.snapshots import Snapshot
from backends.embedded.store import LARGE_HEAP, State

if TYPE_CHECKING:
    from backends.embedded.disk import DiskStore

DEAD_SHARE = 0.4
"""Dead documents for each living one from which an index is merged."""

FEWEST_DEAD = 2000

LARGE_SEGMENT = 10_000
"""Documents from which a segment counts as large: tantivy merges smaller ones whenever there are eight."""

MOST_LARGE_SEGMENTS = 3

SCATTERED_SHARE = 0.25
"""Documents outside the largest segment for each one in it, from which merging is worth reading that one again."""


def is_bloated(folder: Path) -> bool:
    """Whether an index holds too many dead documents."""
    segments = _segments_of(folder)
    dead = sum(segment.dead for segment in segments)
    return dead >= FEWEST_DEAD and dead > DEAD_SHARE * sum(segment.alive for segment in segments)


def is_scattered(folder: Path) -> bool:
    """Whether an index is in too many large segments."""
    sizes = [segment.alive for segment in _segments_of(folder)]
    if sum(size >= LARGE_SEGMENT for size in sizes) <= MOST_LARGE_SEGMENTS:
        return False
    return sum(sizes) - max(sizes) >= SCATTERED_SHARE * max(sizes)


def compact(store: DiskStore, name: str) -> bool:
    """Merge an index into one segment without its dead documents; whether that was done.

    One process at a time does it; another that tries gives up at once. So does one that finds the index replaced.
    """
    guard = try_lock_file(store.root / ".locks" / f"{name}.compaction")
    if guard is None:
        return False
    folder = store.folder(name)
    state: State | None = None
    try:
        lease = store.lease(name)
        try:
            entry = store.opened(name)
            _sweep(folder, entry.state)
            before, source = entry.current(), entry.state
            state = replace(source, generation=new_generation())
            link_generation(entry.folder, folder / state.generation)
        finally:
            lease.release()
        merge_all(folder / state.generation, state.slots)
        lease = store.lease(name)
        try:
            entry = store.opened(name)
            now = entry.current()
            if entry.state.generation != source.generation:
                return False
            if now.signature != before.signature:
                writer = open_generation(folder / state.generation).writer(LARGE_HEAP, 1)
                _bring_over(before, now, writer)
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


def _segments_of(folder: Path) -> list[Segment]:
    try:
        state = State.from_json((folder / STATE_FILE).read_bytes())
        return read_segments(folder / state.generation)
    except (OSError, ValueError):
        return []


def _bring_over(before: Snapshot, now: Snapshot, writer: tantivy.IndexWriter) -> None:
    """Write what changed between two snapshots."""
    old, new = changes_by_id(before.searcher), changes_by_id(now.searcher)
    for id in old.keys() - new.keys():
        writer.delete_documents_by_term(ID, id)
    changed = {id for id, moment in new.items() if old.get(id) != moment}
    if not changed:
        return
    since = min(new[id] for id in changed)
    recent = tantivy.Query.range_query(now.schema, CHANGED, tantivy.FieldType.Integer, since, None)
    for document in stored_documents(now.searcher, recent):
        if document.id in changed:
            writer.delete_documents_by_term(ID, document.id)
            writer.add_document(to_tantivy(document, now.slots))


def _sweep(folder: Path, state: State) -> None:
    """Remove generations that killed processes left behind."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != state.generation:
            shutil.rmtree(path, ignore_errors=True)
