"""JSON lines: one value on each."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from app.importers.records import TOO_LONG, BadLine, ByteStream, Read, Record, read_lines
from schemas.validation.problems import Problem


def read_json_lines(stream: ByteStream) -> Iterator[Read]:
    """Read JSON lines; blank lines are passed over, a byte order mark is taken."""
    for number, line in read_lines(stream):
        if line is None:
            yield BadLine(number, TOO_LONG)
        elif not line.isspace() and line:
            yield parse_json(number, line)


def parse_json(line: int, text: bytes | bytearray) -> Read:
    """The record that stands at ``line``, if it is JSON."""
    try:
        return Record(line, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return BadLine(line, Problem(f"is not valid JSON: {error.msg} (column {error.colno})", "invalid_json"))
