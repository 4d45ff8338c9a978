"""Items that all readers yield: records, and unreadable lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from schemas.validation.problems import Problem

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Maximum size of a record in bytes. Larger records are reported and skipped to limit memory."""

MAX_BLANK_LINES = 100_000
"""Maximum number of consecutive blank lines, since reading a blank line takes as long as sending a thousand."""

BOM = b"\xef\xbb\xbf"

NOT_UTF8 = Problem("is not valid UTF-8", "invalid_encoding")
TOO_LONG = Problem(f"is longer than {MAX_RECORD_BYTES} bytes", "too_large")


class ByteStream(Protocol):
    """The methods of a binary file that readers use."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a file.

    Attributes:
        line: Number of the record's first line, from 1.
        value: The value, not validated. A document is an object.
        number: Number of the record in the file, from 1, if a line may contain several records.
    """

    line: int
    value: Any
    number: int | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """Content that cannot be read.

    Attributes:
        line: Number of the content's first line, from 1.
        problem: The problem as a predicate, such as ``is not valid JSON``.
        number: As in :class:`Record`.
    """

    line: int
    problem: Problem
    number: int | None = None


Read: TypeAlias = Record | BadLine


class UnreadableFile(Exception):
    """The whole file cannot be read.

    Attributes:
        field: The invalid part of the request: ``file`` or ``map``.
        problem: The problem of that part as a predicate.
    """

    def __init__(self, problem: Problem, field: str = "file"):
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class BlankLines:
    """A counter of consecutive blank lines, to reject files that consist of blank lines."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Count a blank line.

        Raises:
            UnreadableFile: There are too many consecutive blank lines.
        """
        self._count += 1
        if self._count > MAX_BLANK_LINES:
            raise UnreadableFile(
                Problem(f"has more than {MAX_BLANK_LINES} blank lines in a row", "too_many_blank_lines")
            )

    def reset(self) -> None:
        """Reset the count at a line that is not blank."""
        self._count = 0


def read_lines(stream: ByteStream) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbered lines of a file with line ends, without a byte order mark; ``None`` for an overlong line."""
    number = 0
    while line := stream.readline(MAX_RECORD_BYTES):
        number += 1
        if len(line) == MAX_RECORD_BYTES and not line.endswith(b"\n"):
            while (more := stream.readline(MAX_RECORD_BYTES)) and not more.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line.removeprefix(BOM) if number == 1 else line
