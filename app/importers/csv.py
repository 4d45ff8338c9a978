"""CSV: field names in the first line, columns separated by commas, semicolons, tabs, or vertical bars."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from app.importers.records import (
    MAX_RECORD_BYTES,
    NOT_UTF8,
    TOO_LONG,
    BadLine,
    BlankLines,
    ByteStream,
    Read,
    Record,
    UnreadableFile,
    read_lines,
)
from app.wording import counted, number
from backends.standard_fields import REQUIRED_FIELDS, STANDARD_FIELDS, STRING_FIELDS
from schemas.validation.problems import Problem, printable_name

csv.field_size_limit(MAX_RECORD_BYTES)  # For the whole process; pages may exceed the default of 128 KiB.

MAX_COLUMNS = 16_384
"""Maximum number of columns, as in Excel, since each takes memory even if its name is empty."""

_STANDARD = frozenset(STANDARD_FIELDS)
_MAY_BE_EMPTY = _STANDARD.intersection(REQUIRED_FIELDS, STRING_FIELDS)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
DELIMITERS = ",;\t|"
"""Possible delimiters of columns; the earlier one if several fit."""
_NO_LINES: tuple[tuple[int, bytes], ...] = ((1, b""), (2, b""))
_STATED_DELIMITER = re.compile(rf"sep=([{DELIMITERS}])\r?\n", re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False}

FieldsOfColumns: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[str]]]
"""Maps the names in the first line to the fields that each column fills."""


def read_csv(stream: ByteStream, fields_of: FieldsOfColumns | None = None) -> Iterator[Read]:
    """Read rows as documents.

    An empty cell omits its field, except that title and content may be empty. In custom fields, JSON numbers and
    booleans are recognized. Rows of empty cells are skipped.

    Args:
        fields_of: Returns the fields that the columns fill; by default, each column fills the field with its name.

    Raises:
        UnreadableFile: The first line is missing or empty, or has too many columns; there are too many consecutive
            blank lines; or ``fields_of`` raised it.
    """
    lines = _Lines(stream)
    reader = csv.reader(lines, delimiter=lines.read_delimiter(), strict=True)
    names = _read_names(lines, reader)
    columns = [(name,) for name in names] if fields_of is None else fields_of(names)
    blank = BlankLines()
    while True:
        try:
            cells = lines.read_record(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadLine(lines.start, _explain(error))
            lines.read_again()
            continue
        if lines.problem is None and not any(cells):
            blank.add()
            continue
        blank.reset()
        if lines.problem is not None:
            yield BadLine(lines.start, lines.problem)
        elif len(cells) != len(names):
            problem = Problem(
                f"has {counted(len(cells), 'cell')}, but the first line has {counted(len(names), 'column')}",
                "column_count",
            )
            yield BadLine(lines.start, problem)
        else:
            yield Record(
                lines.start,
                {
                    name: _value(name, cell)
                    for cell, filled in zip(cells, columns, strict=True)
                    for name in filled
                    if cell or name in _MAY_BE_EMPTY
                },
            )


class _Lines:
    """The file's lines as text, for the parser.

    Attributes:
        start: First line of the current record.
        problem: The problem with the current record's lines, if there is one.
    """

    def __init__(self, stream: ByteStream):
        self._lines = read_lines(stream)
        self._waiting: deque[tuple[int, bytes | None]] = deque()
        self._record: list[tuple[int, bytes | None]] = []
        self.start = 1
        self.problem: Problem | None = None

    def read_delimiter(self) -> str:
        """Return the delimiter of the columns, from the first two lines, which stay unread.

        A line such as ``sep=;``, by which Excel knows the delimiter, is skipped.
        """
        lines = list(islice(self._lines, 2))
        first, second = ((line or b"").decode(errors="replace") for _, line in (*lines, *_NO_LINES[len(lines) :]))
        stated = _STATED_DELIMITER.fullmatch(first)
        self._waiting.extend(lines[stated is not None :])
        if stated is not None:
            return stated[1]
        return max(DELIMITERS, key=lambda delimiter: _fitness(first, second, delimiter))

    def read_record(self, reader: Iterator[list[str]]) -> list[str]:
        """Return the cells of the next record.

        Raises:
            StopIteration: The file has ended.
            csv.Error: The record is malformed.
        """
        self._record.clear()
        self.problem = None
        return next(reader)

    def read_again(self) -> None:
        """Continue with the current record's second line, in case a stray quotation mark has joined several lines."""
        self._waiting.extendleft(reversed(self._record[1:]))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = entry = self._waiting.popleft() if self._waiting else next(self._lines)
        if not self._record:
            self.start = number
        self._record.append(entry)
        if line is None:
            self.problem = TOO_LONG
            return "\n"
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.problem = NOT_UTF8
            return line.decode(errors="replace")


def _fitness(first: str, second: str, delimiter: str) -> tuple[int, bool, int]:
    """Return the standard fields in the first line, whether the second line has as many columns, and the columns."""
    try:
        names, cells = (next(csv.reader([line], delimiter=delimiter), []) for line in (first, second))
    except csv.Error:  # Reported when the lines are read.
        return 0, False, 0
    return sum(name.strip().lower() in _STANDARD for name in names), 1 < len(names) == len(cells), len(names)


def _read_names(lines: _Lines, reader: Iterator[list[str]]) -> list[str]:
    try:
        cells = lines.read_record(reader)
    except StopIteration:
        raise UnreadableFile(Problem("is empty; its first line must name the columns", "required")) from None
    except csv.Error as error:
        raise UnreadableFile(Problem(f"has a first line that {_explain(error)}", "invalid_csv")) from error
    if lines.problem is not None:
        raise UnreadableFile(Problem(f"has a first line that {lines.problem}", lines.problem.code))
    if len(cells) > MAX_COLUMNS:
        raise UnreadableFile(Problem(f"has more than {number(MAX_COLUMNS)} columns", "too_many_columns"))
    names = [name.strip() for name in cells]
    if not any(names):
        raise UnreadableFile(Problem("has a first line without column names", "required"))
    distinct_names: set[str] = set()
    for name in filter(None, names):
        if name in distinct_names:
            raise UnreadableFile(Problem(f"has the column {printable_name(name)!r} twice", "conflict"))
        distinct_names.add(name)
    return names


def _explain(error: csv.Error) -> Problem:
    if "unexpected end of data" in str(error) or "field larger" in str(error):
        return Problem("has a quotation mark that is never closed", "invalid_csv")
    return Problem(f"is not valid CSV: {error}", "invalid_csv")


def _value(name: str, cell: str) -> str | int | float | bool:
    if name in _STANDARD:
        return cell
    if cell in _BOOLEANS:
        return _BOOLEANS[cell]
    if _NUMBER.fullmatch(cell):
        number = float(cell) if any(sign in cell for sign in ".eE") else int(cell)
        # A number beyond 64 bits is an identifier rather than a quantity.
        return number if abs(number) < 2**63 else cell
    return cell
