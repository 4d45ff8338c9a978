"""Merging all segments of an index into a single large one, which tantivy does by itself only as an index grows.

Its merge policy merges segments with few documents once there are eight of them, and it reads the sizes from the
index's ``meta.json`` (https://docs.rs/tantivy/latest/tantivy/merge_policy/struct.LogMergePolicy.html). tantivy-py has
no call for a merge. So, in a copy that no process reads, this module claims that every segment has one live document,
and the next commit merges them all. The real live documents are recorded in the segments' own files, which stay intact.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from backends.embedded.index.documents import to_tantivy
from backends.embedded.index.generations import META_FILE, open_generation, read_meta, write_meta
from backends.embedded.index.rebuild import documents_at
from backends.embedded.index.schema import ID
from backends.embedded.index.store import SMALL_HEAP
from backends.errors import BackendUnavailable

LARGE_SEGMENT = 10_000
"""Minimum number of documents of a large segment: tantivy merges smaller ones whenever there are eight."""

_MANAGED_FILE = ".managed.json"
_SEGMENTS_IN_MERGE = 8
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as described in ``meta.json``: its documents, including deleted ones, and the number deleted."""

    name: str
    documents: int
    deleted: int
    deletes_file: str | None

    @property
    def live(self) -> int:
        return self.documents - self.deleted


def read_segments(generation: Path) -> list[Segment]:
    """The segments of an index.

    Raises:
        OSError: The index does not exist.
        ValueError: Its metadata is invalid.
    """
    try:
        return [_segment(entry) for entry in read_meta(generation)["segments"]]
    except (KeyError, TypeError) as error:
        raise ValueError("not an index") from error


def link_generation(source: Path, target: Path) -> None:
    """Copy an index that no process writes to; files are hard-linked, because tantivy never changes a file."""
    target.mkdir()
    segments = {segment.name: segment for segment in read_segments(source)}
    for path in source.iterdir():
        segment = segments.get(path.name.partition(".")[0])
        if segment is not None and (path.suffix != ".del" or path.name == segment.deletes_file):
            _link(path, target / path.name)
    for name in (_MANAGED_FILE, META_FILE):
        shutil.copyfile(source / name, target / name)


def merge_all(generation: Path, dynamic_columns: Mapping[str, int]) -> None:
    """Merge an index that no other process has open into one segment without deleted documents, plus one small segment.

    Some documents are removed first, so that every large segment has a deletion file, and added back for the commits.

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
    if index.searcher().num_docs != total or sum(segment.documents for segment in segments) != total:
        raise BackendUnavailable(f"The segments of an index were not merged: {len(segments)} are left.")


def _remove_some(index: tantivy.Index, dynamic_columns: Mapping[str, int]) -> dict[str, tantivy.Document]:
    """Remove one document of each segment, and enough in total for the commits that trigger a merge."""
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


def _segment(entry: Mapping[str, Any]) -> Segment:
    name, deletes = entry["segment_id"].replace("-", ""), entry["deletes"] or {}
    file = f"{name}.{deletes['opstamp']}.del" if deletes else None
    return Segment(name, entry["max_doc"], deletes.get("num_deleted_docs", 0), file)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Not every file system supports links.
        shutil.copyfile(source, target)
