"""Getting rid of the dead: tantivy keeps replaced and removed documents until their segment is merged.

An index with too many is written anew beside the old one, while searches and writes go on; what changed meanwhile is
brought over under the lock, and the pointer is moved.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import tantivy

from backends.embedded.documents import to_tantivy
from backends.embedded.generations import STATE_FILE, make_generation, new_generation, write_state
from backends.embedded.locks import try_lock_file
from backends.embedded.rebuild import changes_by_id, copy_documents, stored_documents
from backends.embedded.schema import CHANGED, ID
from backends.embedded.snapshots import Snapshot
from backends.embedded.store import LARGE_HEAP, State

if TYPE_CHECKING:
    from backends.embedded.disk import DiskStore

DEAD_SHARE = 0.4
"""Dead documents for each living one from which an index is written anew."""

FEWEST_DEAD = 2000


def is_bloated(folder: Path) -> bool:
    """Whether an index holds too many dead documents."""
    try:
        state = State.from_json((folder / STATE_FILE).read_bytes())
        meta = orjson.loads((folder / state.generation / "meta.json").read_bytes())
    except (OSError, ValueError):
        return False
    dead = sum((segment["deletes"] or {}).get("num_deleted_docs", 0) for segment in meta["segments"])
    alive = sum(segment["max_doc"] for segment in meta["segments"]) - dead
    return bool(dead >= FEWEST_DEAD and dead > DEAD_SHARE * alive)


def compact(store: DiskStore, name: str) -> bool:
    """Write an index anew without its dead documents; whether that was done.

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
            state = replace(entry.state, generation=new_generation())
            index = make_generation(folder, state)
            before, source = entry.current(), entry.state.generation
        finally:
            lease.release()
        writer = index.writer(LARGE_HEAP, 1)
        copy_documents(before.searcher, writer, before.slots)
        writer.commit()
        lease = store.lease(name)
        try:
            entry = store.opened(name)
            now = entry.current()
            if entry.state.generation != source:
                return False
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
