"""The files of an index on disk."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import tantivy

from backends.embedded.index.schema import build_schema, register_tokenizers
from backends.embedded.index.state import State

STATE_FILE = "current.json"
META_FILE = "meta.json"
MANAGED_FILE = ".managed.json"
STORED_BLOCK_BYTES = 4_096
"""Size of a compressed block of stored documents, with at least one document; a search unpacks one block per hit."""

_POLL_SECONDS = 0.004
"""Seconds between two checks whether a merge is running."""

_SEGMENT_NAME_LENGTH = 32
_DRAFT_LIFE_SECONDS = 3600
_SETTLED_NS = 2_000_000_000
"""Minimum age of a folder's last change for a reusable measurement, since two changes may share a clock tick."""

Signature = tuple[int, int, int]
"""Inode, modification time, and size of a file; replacing the file always changes it."""


class Measured(NamedTuple):
    """Measurement of a folder's size.

    Attributes:
        changed_at: Time when a file in the folder was last created, renamed, or removed, in nanoseconds.
        measured_at: Time of the measurement, in nanoseconds.
        size: Total size of its files, in bytes.
    """

    changed_at: int
    measured_at: int
    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Document counts of a segment from ``meta.json``: all documents, including deleted ones, and deleted documents."""

    name: str
    documents: int
    deleted: int
    deletes_file: str | None

    @property
    def live(self) -> int:
        return self.documents - self.deleted


def new_generation() -> str:
    """Return a unique name for a new generation."""
    return f"g{uuid.uuid4().hex[:12]}"


def sweep_drafts(folder: Path) -> None:
    """Remove temporary files over an hour old, which killed processes left behind. Call it under the write lock."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".tmp") and time.time() - entry.stat().st_mtime > _DRAFT_LIFE_SECONDS:
                Path(entry.path).unlink(missing_ok=True)


def signature_of(path: str) -> Signature:
    """Return the signature of a file."""
    status = os.stat(path)  # noqa: PTH116 - a microsecond counts on the path of every search
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def read_generation(folder: Path) -> tantivy.Index:
    """Open a generation for a single searcher. Get the searcher, then drop the index at once; the searcher stays valid.

    Tantivy starts a thread that watches the directory of an open index for commits. Dropping the index before that
    thread starts avoids its cost.
    """
    return tantivy.Index.open(str(folder))


def open_generation(folder: Path) -> tantivy.Index:
    """Open a generation for writing and for repeated reading after commits."""
    index = tantivy.Index.open(str(folder))
    register_tokenizers(index)
    index.config_reader("manual")
    return index


def make_generation(folder: Path, state: State) -> tantivy.Index:
    """Create an empty generation with the state's name and number of columns."""
    path = folder / state.generation
    path.mkdir(mode=0o700)
    tantivy.Index(build_schema(state.capacity), str(path))
    # tantivy-py has no argument for index settings, but tantivy reads them from this file.
    meta = read_meta(path)
    meta["index_settings"]["docstore_blocksize"] = STORED_BLOCK_BYTES
    write_meta(path, meta)
    return open_generation(path)


def read_meta(generation: Path) -> dict[str, Any]:
    """Read tantivy's metadata file of an index.

    Raises:
        OSError: The file does not exist.
        ValueError: The file is not JSON.
    """
    meta: dict[str, Any] = orjson.loads((generation / META_FILE).read_bytes())
    return meta


def write_meta(generation: Path, meta: Mapping[str, Any]) -> None:
    """Replace tantivy's metadata file of an index that no process has open."""
    _replace(generation / META_FILE, orjson.dumps(meta))


def write_state(folder: Path, state: State) -> None:
    """Replace the state file atomically: after a crash or a power failure it contains the old or the new state.

    The generation that it names is flushed to disk first.
    """
    sync_folder(folder / state.generation)
    _replace(folder / STATE_FILE, state.to_json())


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the folder's created, renamed, and removed entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def current_generation(folder: Path) -> Path:
    """Return the folder that contains the documents of an index.

    Raises:
        OSError: The index does not exist.
        ValueError: The state file is invalid.
    """
    return folder / State.from_json((folder / STATE_FILE).read_bytes()).generation


def read_segments(generation: Path) -> list[Segment]:
    """Return the segments of an index.

    Raises:
        OSError: The index does not exist.
        ValueError: Its metadata is invalid.
    """
    try:
        return [_segment(entry) for entry in read_meta(generation)["segments"]]
    except (KeyError, TypeError) as error:
        raise ValueError("not an index") from error


def _segment(entry: Mapping[str, Any]) -> Segment:
    # tantivy's metadata has hyphens in the IDs, and its file names do not.
    name, deletes = entry["segment_id"].replace("-", ""), entry["deletes"] or {}
    file = f"{name}.{deletes['opstamp']}.del" if deletes else None
    return Segment(name, entry["max_doc"], deletes.get("num_deleted_docs", 0), file)


class MergeWatch:
    """Recognizes the merges of a writer by their files, since tantivy-py has no call for this.

    A merge writes the files of its segment first, and lists the segment in ``meta.json`` when it is done.

    Args:
        folder: Folder of the generation. No other writer may be open.
        seconds: Seconds after which other processes must get their turn.
    """

    def __init__(self, folder: Path, seconds: float):
        self._folder = folder
        self._deadline = time.monotonic() + seconds
        self._known_segments = _segments_with_files(folder)
        """Segments that are not the result of a merge: committed ones, and leftovers of killed processes."""

    def is_time_up(self) -> bool:
        """Whether this writer's time is up, so that other processes must get their turn."""
        return time.monotonic() >= self._deadline

    def wait_for_merges(self, is_taken_over: Callable[[], bool]) -> None:
        """Wait until no merge is running, another write has taken over the writer, or its time is up."""
        self._known_segments |= _listed_segments(self._folder)
        while not self.is_time_up():
            time.sleep(_POLL_SECONDS)
            if is_taken_over() or not self._is_merging():
                return

    def _is_merging(self) -> bool:
        # The files first: the segment of a merge that ends between the two lookups is then listed.
        begun = _segments_with_files(self._folder) - self._known_segments
        return not begun <= _listed_segments(self._folder)


def _segments_with_files(folder: Path) -> set[str]:
    names = (name.partition(".")[0] for name in os.listdir(folder))  # noqa: PTH208 - a tenth of the time of iterdir
    return {name for name in names if len(name) == _SEGMENT_NAME_LENGTH}


def _listed_segments(folder: Path) -> set[str]:
    return {segment.name for segment in read_segments(folder)}


def measure_generations(folder: Path, measured_before: Mapping[str, Measured]) -> dict[str, Measured]:
    """Measure the sizes of an index's generations, by path.

    Args:
        measured_before: Earlier measurements. A folder is measured again only if a file in it has been created,
            renamed, or removed since, because tantivy never changes a file.
    """
    measured: dict[str, Measured] = {}
    # Another process may remove generations in the meantime.
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            changed_at = entry.stat().st_mtime_ns
            before = measured_before.get(entry.path)
            # A folder that changed just before its measurement may have changed again within the clock's resolution.
            if before is not None and before.changed_at == changed_at and changed_at + _SETTLED_NS < before.measured_at:
                measured[entry.path] = before
            else:
                began = time.time_ns()
                with suppress(FileNotFoundError), os.scandir(entry.path) as files:
                    size = sum(_size_of(file) for file in files)
                    measured[entry.path] = Measured(changed_at, began, size)
    return measured


def _size_of(file: os.DirEntry[str]) -> int:
    try:
        return file.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0  # A merge has just removed the file.


def sweep_generations(folder: Path, state: State) -> None:
    """Remove generations that killed processes left behind. No other process may be building one."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != state.generation:
            shutil.rmtree(path, ignore_errors=True)
