"""JSON in any layout: lines, an array, indented objects, or an API's response with a list."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import orjson

from app.importers.records import (
    BOM,
    MAX_RECORD_BYTES,
    TOO_LONG,
    BadLine,
    BlankLines,
    ByteStream,
    Read,
    Record,
    read_lines,
)
from schemas.validation.problems import Problem


def read_json_lines(stream: ByteStream) -> Iterator[Read]:
    """Read JSON lines. Blank lines and a byte order mark are skipped.

    Raises:
        UnreadableFile: There are too many consecutive blank lines.
    """
    blank = BlankLines()
    for number, line in read_lines(stream):
        if line is not None and not line.strip():
            blank.add()
            continue
        blank.reset()
        yield BadLine(number, TOO_LONG) if line is None else parse_json(number, line)


def parse_json(line: int, text: bytes | bytearray, number: int | None = None) -> Read:
    """Parse a record.

    Args:
        line: Number of the record's first line.
        number: Number of the record, if a line may contain several records.
    """
    try:
        return Record(line, orjson.loads(text), number)
    except orjson.JSONDecodeError as error:
        location = f"column {error.colno}" if number is None else f"character {error.pos + 1} of the record"
        problem = f"is not valid JSON: {error.msg} ({location})"
        return BadLine(line, Problem(problem, "invalid_json"), number)


CHUNK_BYTES = 65_536

_LIST = re.compile(rb'"(\w{1,40})"\s*:\s*\[\s*[{\]]')
_SIGN = re.compile(rb'["{}\[\],]')
_STRING_SIGN = re.compile(rb'["\\]')
_OPENED_BY = {b"}": ord("{"), b"]": ord("[")}
_MAX_NAME_LENGTH = 100
_UNBALANCED = Problem("is not valid JSON: brackets do not match here; the rest was not read", "invalid_json")
_CUT_OFF = Problem("is not valid JSON: the file ends within it", "invalid_json")


def read_json(stream: ByteStream, lists: Collection[str] = (), ids: Collection[str] = ()) -> Iterator[Read]:
    """Read the values of a file one by one: lines, members of arrays, or members of lists in API responses.

    Args:
        lists: Names of the lists of documents in an API's responses.
        ids: Names of ID members, which distinguish a document from a response.
    """
    head = stream.read(CHUNK_BYTES)
    stream.seek(0)
    start = head.removeprefix(BOM).lstrip()
    first_line = start.partition(b"\n")[0].rstrip()
    name = _list_in_response(start, lists, ids)
    # In JSON lines, the first line is a complete object. An indented object breaks after one of these signs.
    if start.startswith(b"[") or name or first_line.endswith((b"{", b"[", b",")):
        yield from _Splitter(name).split(stream)
    else:
        yield from read_json_lines(stream)


def _list_in_response(start: bytes, lists: Collection[str], ids: Collection[str]) -> bytes | None:
    """Return the name of the list if the file starts with an API response, not with a document."""
    if not start.startswith(b"{"):
        return None
    for match in _LIST.finditer(start):
        if match[1].decode() in lists:
            before = start[: match.start()]
            return None if any(f'"{name}"'.encode() in before for name in ids) else match[1]
    return None


class _Splitter:
    """A parser that splits a file into numbered values without parsing the whole file.

    Args:
        name: Name of the list that contains the values in each top-level object. ``None`` if the values are top-level
            objects and members of top-level arrays.
    """

    def __init__(self, name: bytes | None):
        self._key = None if name is None else b'"' + name + b'"'
        self._outside = 0 if name is None else None
        self._value_depth: int | None = self._outside
        """Number of brackets around a value; ``None`` outside the list."""
        self._brackets = bytearray()
        """The brackets that are currently open."""
        self._value = bytearray()
        self._is_too_long = False
        self._line = 1
        self._value_line = 1
        self._number = 1
        self._before_sign = b""

    def split(self, stream: ByteStream) -> Iterator[Read]:
        """Iterate over the values, up to the first unmatched bracket."""
        for text, sign in _pieces(stream):
            self._add_text(text)
            if sign in (b"{", b"["):
                self._open(sign, self._before_sign + text)
            elif sign == b",":
                if self._brackets and len(self._brackets) == self._value_depth:
                    yield from self._finish()
                else:
                    self._add(sign)
            elif sign:
                if not self._brackets or self._brackets[-1] != _OPENED_BY[sign]:
                    yield BadLine(self._line, _UNBALANCED, self._number)
                    return
                yield from self._close(sign)
            # The name of a list may be split between two chunks.
            self._before_sign = b"" if sign else (self._before_sign + text)[-_MAX_NAME_LENGTH:]
        if self._brackets:
            yield BadLine(self._value_line if self._value else self._line, _CUT_OFF, self._number)
        else:
            yield from self._finish()

    def _add_text(self, text: bytes) -> None:
        if self._value_depth is not None:
            if not self._value:
                stripped = text.lstrip()
                self._line += text.count(b"\n", 0, len(text) - len(stripped))
                self._value_line = self._line
                text = stripped
            self._add(text)
        self._line += text.count(b"\n")

    def _add(self, text: bytes) -> None:
        if self._value_depth is None:
            return
        if len(self._value) + len(text) > MAX_RECORD_BYTES:
            self._is_too_long = True
            # The value is dropped to save memory, but it must not look as if it had not begun.
            self._value = bytearray(b"-")
        self._value += text

    def _open(self, bracket: bytes, before: bytes) -> None:
        depth = len(self._brackets)
        self._brackets += bracket
        if self._value_depth is None:
            if (
                depth == 1
                and bracket == b"["
                and before.rstrip().removesuffix(b":").rstrip().endswith(self._key or b"")
            ):
                self._value_depth = 2
        elif depth == 0 and bracket == b"[" and not self._value:
            self._value_depth = 1
        else:
            self._add(bracket)

    def _close(self, bracket: bytes) -> Iterator[Read]:
        is_end_of_list = len(self._brackets) == self._value_depth
        del self._brackets[-1]
        if is_end_of_list:
            yield from self._finish()
            self._value_depth = self._outside
        else:
            self._add(bracket)
            if not self._brackets:
                yield from self._finish()

    def _finish(self) -> Iterator[Read]:
        if self._is_too_long:
            yield BadLine(self._value_line, TOO_LONG, self._number)
            self._number += 1
        elif self._value:
            yield parse_json(self._value_line, self._value, self._number)
            self._number += 1
        self._value = bytearray()
        self._is_too_long = False


def _pieces(stream: ByteStream) -> Iterator[tuple[bytes, bytes]]:
    """Yield pieces of text, each with the bracket or comma that ends it, which is empty at the end of a chunk."""
    in_string = is_escaped = False
    chunk = stream.read(CHUNK_BYTES).removeprefix(BOM)
    while chunk:
        start = offset = 0
        if is_escaped:
            offset, is_escaped = 1, False
        while match := (_STRING_SIGN if in_string else _SIGN).search(chunk, offset):
            offset = match.end()
            sign = match[0]
            if sign == b"\\":
                is_escaped = offset == len(chunk)
                offset += 1
            elif sign == b'"':
                in_string = not in_string
            else:
                yield chunk[start : offset - 1], sign
                start = offset
        yield chunk[start:], b""
        chunk = stream.read(CHUNK_BYTES)
