"""Files beside the database: cached texts that are expensive to produce, and checks of file permissions."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path

import orjson

from app.storage.database import StorageUnavailable
from app.storage.machine_process import FileLocks

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READABLE = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, slots=True)
class OpenPaths:
    """Paths in a folder that other users can access.

    Attributes:
        folders: Folders that others may list or enter.
        files: Files that others may read.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...]


def is_open(folder: Path) -> bool:
    """Whether other users may list or enter a folder."""
    return bool(folder.stat().st_mode & _OTHERS)


def find_open_paths(folder: Path) -> OpenPaths:
    """Check a folder and everything in it."""
    folders: list[Path] = []
    files: list[Path] = []
    for path, mode in _modes(folder):
        if stat.S_ISDIR(mode):
            if mode & _OTHERS:
                folders.append(path)
        elif stat.S_ISREG(mode) and mode & _READABLE:
            files.append(path)
    return OpenPaths(tuple(folders), tuple(files))


def _modes(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in (folder, *sorted(folder.rglob("*"))):
        try:
            yield path, path.lstat().st_mode
        except FileNotFoundError:
            continue  # A running service deletes files, such as journals and segments.


FREE_SECONDS = 0.05
"""Texts that take up to this many CPU seconds are produced again with every change."""
PAUSE_FACTOR = 100
"""A more expensive text is produced again no sooner than after its CPU seconds times this factor."""
KEPT_SECONDS = 3_600
"""Age in seconds at which copies are deleted."""
MAX_BYTES = 268_435_456
"""Maximum total size of a machine's copies after a cleanup."""
LEVEL = 6
_PIECE_BYTES = 65_536
_SUFFIX = ".copy"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Header:
    """First line of a copy.

    Attributes:
        state: State of the source from which the text was produced.
        length: Size of the text in bytes.
        seconds: CPU seconds that producing it took.
    """

    state: str
    length: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Copy:
    """A produced text, compressed with gzip."""

    header: Header
    gzipped: bytes

    def text(self) -> Iterator[bytes]:
        """Yield the text in pieces."""
        with gzip.GzipFile(fileobj=BytesIO(self.gzipped)) as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece


class FileCopies:
    """Cached texts in one folder, one for each name.

    Producing an expensive text takes at most one percent of a core, no matter how often it is requested or changes;
    between productions, an outdated copy is returned. A machine produces one text at a time.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._locks = FileLocks(folder)

    def get(self, name: str, state: str, make: Callable[[], Iterable[bytes]]) -> Copy:
        """Return the copy of a text, after producing it if there is no copy or the source has changed.

        Args:
            name: A valid file name.
            state: Current state of the source.
            make: Produces the text.
        """
        try:
            return self._get(name, state, make)
        except StorageUnavailable as error:
            log.error("cannot share a cached copy: %s", error)
            return self._make(name, state, make)

    def _get(self, name: str, state: str, make: Callable[[], Iterable[bytes]]) -> Copy:
        cached = self._read(name)
        if cached is not None and self._is_usable(name, cached.header, state):
            return cached
        if cached is not None and cached.header.seconds > FREE_SECONDS:
            # Another process is producing a text: an outdated copy is better than a wait.
            with self._locks.try_hold("making") as is_held:
                return self._make(name, state, make) if is_held else cached
        with self._locks.hold("making"):
            cached = self._read(name)  # Another thread may have produced it in the meantime.
            if cached is not None and self._is_usable(name, cached.header, state):
                return cached
            return self._make(name, state, make)

    def delete_old(self) -> None:
        """Delete copies older than :data:`KEPT_SECONDS`, then the oldest until the rest fits in :data:`MAX_BYTES`."""
        sizes = []
        for path in self._folder.glob(f"*{_SUFFIX}*"):
            # Another process may have deleted the copy in the meantime.
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                sizes.append((status.st_mtime, status.st_size, path))
        total = 0
        # Newest first, so that the oldest exceed the total.
        for modified, size, path in sorted(sizes, reverse=True):
            total += size
            if total > MAX_BYTES or abs(time.time() - modified) > KEPT_SECONDS:
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"

    def _read(self, name: str) -> Copy | None:
        try:
            head, _, gzipped = self._path(name).read_bytes().partition(b"\n")
            return Copy(Header(**orjson.loads(head)), gzipped)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:  # A power failure may leave a file without its content.
            log.error("cannot read the cached copy %s: %s", name, error)
            return None

    def _is_usable(self, name: str, header: Header, state: str) -> bool:
        if header.state == state:
            return True
        try:
            age = time.time() - self._path(name).stat().st_mtime
        except FileNotFoundError:
            return False
        # The age is negative if the clock was set back.
        return header.seconds > FREE_SECONDS and 0 <= age < PAUSE_FACTOR * header.seconds

    def _make(self, name: str, state: str, make: Callable[[], Iterable[bytes]]) -> Copy:
        # CPU time, so that a busy machine does not make the text seem expensive.
        begun, length, gzipped = time.thread_time(), 0, BytesIO()
        # Without a time, so that equal texts have equal bytes.
        with gzip.GzipFile(fileobj=gzipped, mode="wb", compresslevel=LEVEL, mtime=0) as file:
            for piece in make():
                length += file.write(piece)
        fresh_copy = Copy(Header(state, length, time.thread_time() - begun), gzipped.getvalue())
        try:
            self._write(name, fresh_copy)
        except OSError as error:
            log.error("cannot store the cached copy %s: %s", name, error)
        return fresh_copy

    def _write(self, name: str, copy: Copy) -> None:
        temporary = self._folder / f"{name}{_SUFFIX}.{secrets.token_hex(4)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(orjson.dumps(asdict(copy.header)) + b"\n" + copy.gzipped)
            # Atomically, because other processes read copies without a lock.
            temporary.replace(self._path(name))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
