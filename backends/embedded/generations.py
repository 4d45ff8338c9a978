"""The files of an index on disk."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import tantivy

from backends.embedded.schema import build_schema, register_tokenizers
from backends.embedded.store import State

STATE_FILE = "current.json"
META_FILE = "meta.json"
_DRAFT_LIFE_SECONDS = 3600

Signature = tuple[int, int, int]
"""Inode, time of change and size of a file: another one whenever it is replaced."""


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
    path.mkdir()
    index = tantivy.Index(build_schema(state.capacity), str(path))
    register_tokenizers(index)
    return index


def write_state(folder: Path, state: State) -> None:
    """Replace the state file so that a crash leaves the old one or the new one."""
    draft = folder / f".{STATE_FILE}"
    with draft.open("wb") as file:
        file.write(state.to_json())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / STATE_FILE)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
