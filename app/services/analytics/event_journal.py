"""Journal files, to which a process appends searches and clicks before it responds.

There is one file per process, and one line per event (:mod:`~app.services.analytics.event_lines`). The operating system
has the bytes before ``append`` returns, so they survive a crash of the process. A process keeps its file locked
(``flock``). An unlocked file was left behind by a dead process, and any process may take it over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.services.analytics.event_lines import MAX_LINE_BYTES, Event, decode

SUFFIX = ".journal"
_STALE_SECONDS = 3600
"""Age at which an unfinished new file is deleted."""


class EventJournalUnavailable(Exception):
    """The journal cannot store the event: no space, no permission, or an I/O error. The event is not recorded."""


@dataclass(frozen=True, slots=True)
class Portion:
    """A portion of a journal.

    Attributes:
        entries: The intact events.
        end: Byte offset at which to continue.
        damaged: Number of damaged lines.
    """

    entries: Sequence[Event]
    end: int
    damaged: int


class Journal:
    """A journal file that this process has locked."""

    def __init__(self, path: Path, descriptor: int):
        self.path = path
        self.id = path.name.removesuffix(SUFFIX)
        self._descriptor = descriptor
        self.writable = True
        """Whether lines can be appended."""
        self._whole_lines_end = 0
        """Position up to which all lines are known to be complete."""

    @classmethod
    def create(cls, directory: Path) -> Journal:
        """Create an empty journal.

        The file gets its name only once it is locked, because a free lock means that the owner is dead.

        Raises:
            EventJournalUnavailable: The file cannot be created.
        """
        name = secrets.token_hex(16)
        path = directory / f"{name}{SUFFIX}"
        new_path = directory / f".{name}.new"
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Queries may contain personal data, so other users of the machine must not read the file.
            descriptor = os.open(new_path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new_path.rename(path)
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            raise EventJournalUnavailable(f"cannot create a journal in {directory}: {error}") from error
        return cls(path, descriptor)

    def append(self, line: bytes) -> None:
        """Append one line, completely or not at all. The caller must serialize calls.

        Raises:
            EventJournalUnavailable: The line was not written. If ``writable`` is false now, further calls fail, too.
        """
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise EventJournalUnavailable(f"cannot write to {self.path}: {error}") from error
        # A short write means that the disk is full.
        if written != len(line):
            self._cut_torn_line()
            raise EventJournalUnavailable(f"cannot write to {self.path}: only {written} of {len(line)} bytes fit")
        self._whole_lines_end += written

    def _cut_torn_line(self) -> None:
        try:
            tail = os.pread(self._descriptor, self.size - self._whole_lines_end, self._whole_lines_end)
            self._whole_lines_end += tail.rfind(b"\n") + 1
            os.ftruncate(self._descriptor, self._whole_lines_end)
        except OSError:
            self.writable = False  # The torn line stays, so nothing may follow it.

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self, position: int, limit: int, *, ended: bool) -> Portion:
        """Read complete lines from ``position``, at most ``limit`` bytes.

        Args:
            ended: Whether no process appends to the journal anymore, so that a torn line at the end stays torn.
        """
        lines, end = self.read_lines(position, limit, ended=ended)
        intact = [entry for entry in map(decode, lines) if entry is not None]
        return Portion(intact, end, len(lines) - len(intact))

    def read_lines(self, position: int, limit: int, *, ended: bool) -> tuple[list[bytes], int]:
        """Read lines without decoding them. Returns them and the byte offset at which to continue.

        A torn line at the end of an ended journal is returned as an empty line.
        """
        # At least one whole line fits, so that reading always makes progress.
        data = os.pread(self._descriptor, max(limit, MAX_LINE_BYTES), position)
        end = data.rfind(b"\n") + 1
        if ended and end == 0 and data:
            return [b""], position + len(data)
        return data[:end].split(b"\n")[:-1], position + end

    def close(self) -> None:
        """Release the file and its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete the file, then release it, so that no process can take it over in between."""
        self.path.unlink(missing_ok=True)
        self.close()


def abandoned_journals(directory: Path) -> Iterator[Journal]:
    """Yield the journals in ``directory`` whose processes are dead, each locked until the next is requested."""
    try:
        paths = sorted(directory.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        if path.name.endswith(SUFFIX):
            journal = _take_over(path)
            if journal is not None:
                try:
                    yield journal
                finally:
                    journal.close()
        elif path.name.endswith(".new"):
            with contextlib.suppress(
                FileNotFoundError
            ):  # Its creator may have renamed it, or another process deleted it.
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()


def _take_over(path: Path) -> Journal | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if os.fstat(descriptor).st_nlink == 0:  # Another process deleted it between the two calls.
        os.close(descriptor)
        return None
    return Journal(path, descriptor)


def directory_id(directory: Path) -> str:
    """Return the folder's unique ID. The first process that needs it creates it."""
    path = directory / "id"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        new_path = directory / f".{secrets.token_hex(16)}.new"
        try:
            with new_path.open("x") as file:
                file.write(secrets.token_hex(16))
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link fails if another process was first.
            os.link(new_path, path)
        except FileExistsError:
            pass  # Another process was first; its ID applies.
        finally:
            new_path.unlink(missing_ok=True)
    return path.read_text()


def finished_journal(directory: Path, journal_id: str) -> bool:
    """Whether the file of ``journal_id`` was deleted."""
    return not (directory / f"{journal_id}{SUFFIX}").exists()
