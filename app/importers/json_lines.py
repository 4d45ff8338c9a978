"""JSON lines: one value on each."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from app.importers.records import TOO_LONG, BadLine, BlankLines, ByteStream, Read, Record, read_lines
from schemas.validation.problems import Problem


def read_json_lines(stream: ByteStream) -> Iterator[Read]:
    """Read JSON lines; blank lines are passed over, a byte order mark is taken.

    Raises:
        UnreadableFile: There are too many blank lines in a row.
    """
    blank = BlankLines()
    for number, line in read_lines(stream):
        if line is not None and not line.strip():
            blank.add()
            continue
        blank.end()
        yield BadLine(number, TOO_LONG) if line is None else parse_json(number, line)


def parse_json(line: int, text: bytes | bytearray, number: int | None = None) -> Read:
    """The record that stands at ``line``, if it is JSON; ``number`` is its own where a line may hold several."""
    try:
        return Record(line, orjson.loads(text), number)
    except orjson.JSONDecodeError as error:
        place = f"column {error.colno}" if number is None else f"character {error.pos + 1} of the record"
        problem = f"is not valid JSON: {error.msg} ({place})"
        return BadLine(line, Problem(problem, "invalid_json"), number)
