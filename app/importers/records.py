"""Items that every reader gives: records, and lines that are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from schemas.validation.problems import Problem

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Longest record that is read; a longer one is named and left out, so that memory stays bounded."""

MAX_BLANK_LINES = 100_000
"""Most blank lines in a row: each costs as much to read as it would to send a thousand."""

BOM = b"\xef\xbb\xbf"

NOT_UTF8 = Problem("is not valid UTF-8", "invalid_encoding")
TOO_LONG = Problem(f"is longer than {MAX_RECORD_BYTES} bytes", "too_large")


class ByteStream(Protocol):
    """The methods that readers need of a binary file."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Record:
    """A record as the file has it.

    Attributes:
        line: The line on which it begins, from 1.
        value: An object for a document; whether it is one is for whoever validates it.
        number: Its number among the file's records, from 1, if a line may hold several.
    """

    line: int
    value: Any
    number: int | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """Content that cannot be read at all.

    Attributes:
        line: The line on which it begins, from 1.
        problem: A predicate: ``is not valid JSON``.
        number: As of a record.
    """

    line: int
    problem: Problem
    number: int | None = None


Read: TypeAlias = Record | BadLine


class UnreadableFile(Exception):
    """The file as a whole cannot be read.

    Attributes:
        field: The part of the request that is wrong: ``file`` or ``map``.
        problem: A predicate that follows it.
    """

    def __init__(self, problem: Problem, field: str = "file"):
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class BlankLines:
    """Counts blank lines in a row, to give up a file of nothing else."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Count one.

        Raises:
            UnreadableFile: There are too many.
        """
        self._count += 1
        if self._count > MAX_BLANK_LINES:
            raise UnreadableFile(
                Problem(f"has more than {MAX_BLANK_LINES} blank lines in a row", "too_many_blank_lines")
            )

    def end(self) -> None:
        """There was a line that is not blank."""
        self._count = 0


def read_lines(stream: ByteStream) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file with their numbers, line ends kept, a byte order mark left out; too long ones as ``None``."""
    number = 0
    while line := stream.readline(MAX_RECORD_BYTES):
        number += 1
        if len(line) == MAX_RECORD_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_RECORD_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line.removeprefix(BOM) if number == 1 else line
