"""Repair of response heads with lines that browsers ignore but the HTTP parser rejects."""

from __future__ import annotations

import re

MAX_HEAD_BYTES = 65_536
"""Maximum bytes of a head that is repaired; the parser rejects longer ones itself."""

HEAD_END = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)|[ \t].*", re.DOTALL)
"""A header with its value, or the continuation of one."""
_LENGTHS = re.compile(rb"[ \t]*[0-9]+(?:[ \t]*,[ \t]*[0-9]+)*[ \t]*")


def repair(head: bytes) -> bytes:
    """Remove lines that are not headers, lengths that are not numbers, and spaces before colons from a head.

    ``b"HTTP/1.1 200 OK\\r\\nX-A : b\\r\\noops" -> b"HTTP/1.1 200 OK\\r\\nX-A: b"``
    """
    status, *lines = _LINE_END.split(head)
    return b"\r\n".join([status, *(repaired for line in lines if (repaired := _repaired(line)) is not None)])


def _repaired(line: bytes) -> bytes | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, value = match.groups()
    if name is None:
        return line
    is_length = name.lower() == b"content-length"
    if (is_length and not _LENGTHS.fullmatch(value)) or (
        name.lower() == b"transfer-encoding" and value.strip().lower() == b"identity"
    ):
        return None
    return name + b":" + value
