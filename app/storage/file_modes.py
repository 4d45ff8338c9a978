"""Access of other users of this machine to the service's data directory."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READABLE = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, slots=True)
class OpenPaths:
    """The paths of a folder that are open to others: to its group or to everybody.

    Attributes:
        folders: Folders that others may list or enter.
        files: Files that others may read.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...]


def is_open(folder: Path) -> bool:
    """Tell whether others may list or enter a folder."""
    return bool(folder.stat().st_mode & _OTHERS)


def find_open_paths(folder: Path) -> OpenPaths:
    """Look at a folder and all below it."""
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
            continue  # A running service deletes files: journals, segments.
