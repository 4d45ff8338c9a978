"""Lines of a file, as shared by all readers."""

from __future__ import annotations

from io import BytesIO

import pytest

from app.importers.csv import read_csv
from app.importers.json_values import read_json_lines
from app.importers.records import MAX_BLANK_LINES, MAX_RECORD_BYTES, UnreadableFile, read_lines


def test_lines_keep_their_numbers_and_line_endings() -> None:
    assert list(read_lines(BytesIO(b"\xef\xbb\xbfone\r\n\ntwo"))) == [(1, b"one\r\n"), (2, b"\n"), (3, b"two")]


def test_byte_order_mark_after_the_first_line_is_text() -> None:
    assert list(read_lines(BytesIO(b"one\n\xef\xbb\xbftwo"))) == [(1, b"one\n"), (2, b"\xef\xbb\xbftwo")]


def test_line_of_maximum_length_is_read_and_a_longer_line_is_skipped() -> None:
    whole = b"x" * (MAX_RECORD_BYTES - 1) + b"\n"

    assert list(read_lines(BytesIO(whole + b"x" + whole + b"end"))) == [(1, whole), (2, None), (3, b"end")]


def test_file_with_too_many_blank_lines_is_rejected() -> None:
    some, many = b"\n" * MAX_BLANK_LINES, b"\n" * (MAX_BLANK_LINES + 1)

    assert len(list(read_json_lines(BytesIO(some + b"{}" + some + b"{}")))) == 2
    assert len(list(read_csv(BytesIO(b"a,b\n" + some + b"1,2\n" + some)))) == 1
    for reads in (read_json_lines(BytesIO(b"{}\n" + many)), read_csv(BytesIO(b"a,b\n" + many.replace(b"\n", b",\n")))):
        with pytest.raises(UnreadableFile, match="blank lines in a row"):
            list(reads)
