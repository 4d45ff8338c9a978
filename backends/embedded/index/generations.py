"""The files of an index on disk."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import tantivy

from backends.embedded.index.schema import build_schema, register_tokenizers
from backends.embedded.index.store import State

STATE_FILE = "current.json"
META_FILE = "meta.json"
STORED_BLOCK_BYTES = 4_096
"""Stored documents are compressed in blocks of so many bytes or one document: a search unpacks one for every hit."""

_DRAFT_LIFE_SECONDS = 3600
_SETTLED_NS = 2_000_000_000
"""How much older than a look a folder's last change must be: two changes within a tick of the clock look like one."""

Signature = tuple[int, int, int]
"""Inode, time of change and size of a file: another one whenever it is replaced."""


class Measured(NamedTuple):
    """The measured contents of a folder.

    Attributes:
        changed_at: When a file was last made, renamed or removed in it, in nanoseconds.
        measured_at: When it was looked through, in nanoseconds.
        size: Bytes of its files.
    """

    changed_at: int
    measured_at: int
    size: int


def new_generation() -> str:
    """A name no generation has had."""
    return f"g{uuid.uuid4().hex[:12]}"


def sweep_drafts(folder: Path) -> None:
    """Remove what a killed process was about to rename. To be called with the right to write."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".tmp") and time.time() - entry.stat().st_mtime > _DRAFT_LIFE_SECONDS:
                Path(entry.path).unlink(missing_ok=True)


def signature_of(path: str) -> Signature:
    """Changes whenever the file is replaced."""
    status = os.stat(path)  # noqa: PTH116 - a microsecond counts on the path of every search
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def read_generation(folder: Path) -> tantivy.Index:
    """Open a generation for taking a searcher from it and letting go of it at once.

    Tantivy watches a directory that is open in a thread of its own, which tells a reader of commits. A reader that is
    gone before the first time is spared the work; what was taken from it stays good.
    """
    return tantivy.Index.open(str(folder))


def open_generation(folder: Path) -> tantivy.Index:
    """Open a generation for writing, and for reading again after commits."""
    index = tantivy.Index.open(str(folder))
    register_tokenizers(index)
    index.config_reader("manual")
    return index


def make_generation(folder: Path, state: State) -> tantivy.Index:
    """Make the empty generation that a state names."""
    path = folder / state.generation
    path.mkdir(mode=0o700)
    tantivy.Index(build_schema(state.capacity), str(path))
    # tantivy-py has no argument for the settings of an index; tantivy reads them from here.
    meta = read_meta(path)
    meta["index_settings"]["docstore_blocksize"] = STORED_BLOCK_BYTES
    write_meta(path, meta)
    return open_generation(path)


def read_meta(generation: Path) -> dict[str, Any]:
    """Read what tantivy keeps of an index beside its segments.

    Raises:
        OSError: It is not there.
        ValueError: It is not JSON.
    """
    meta: dict[str, Any] = orjson.loads((generation / META_FILE).read_bytes())
    return meta


def write_meta(generation: Path, meta: Mapping[str, Any]) -> None:
    """Replace it; for an index that nobody has open."""
    _replace(generation / META_FILE, orjson.dumps(meta))


def write_state(folder: Path, state: State) -> None:
    """Replace the state file so that a crash leaves the old one or the new one."""
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
    """Make what was made, renamed or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def current_generation(folder: Path) -> Path:
    """The place where the documents of an index are.

    Raises:
        OSError: The index is not there.
        ValueError: It cannot be read.
    """
    return folder / State.from_json((folder / STATE_FILE).read_bytes()).generation


def measure_generations(folder: Path, known: Mapping[str, Measured]) -> dict[str, Measured]:
    """The sizes of an index's generations, by path.

    Args:
        known: What was measured before: a folder in which no file was made, renamed or removed since is not looked
            through again, for tantivy writes a file once.
    """
    measured: dict[str, Measured] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            changed_at = entry.stat().st_mtime_ns
            before = known.get(entry.path)
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
        return 0  # It was merged away meanwhile.


def sweep_generations(folder: Path, state: State) -> None:
    """Remove generations that killed processes left behind; only while nobody makes one."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != state.generation:
            shutil.rmtree(path, ignore_errors=True)
