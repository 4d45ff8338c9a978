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


def parse_json(line: int, text: bytes | bytearray) -> Read:
    """The record that stands at ``line``, if it is JSON."""
    try:
        return Record(line, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return BadLine(line, Problem(f"is not valid JSON: {error.msg} (column {error.colno})", "invalid_json"))
