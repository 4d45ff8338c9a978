"""JSON lines in bulk requests and files."""

from __future__ import annotations

from io import BytesIO

from app.importers.json_values import read_json_lines
from app.importers.records import MAX_RECORD_BYTES, BadLine, Record


def test_each_line_is_read_as_one_json_value() -> None:
    text = b'\xef\xbb\xbf{"id": 1}\r\n\n  \n{"id": "\xc3\xa4"}\n[1]\n"x"'

    assert list(read_json_lines(BytesIO(text))) == [
        Record(1, {"id": 1}),
        Record(4, {"id": "ä"}),
        Record(5, [1]),
        Record(6, "x"),
    ]


def test_invalid_line_is_reported_and_the_others_are_read() -> None:
    text = b'{"id": 1}\n{not json\n{"id": "\xff"}\n{"id": 2} {"id": 3}\n{"id": 4}\n'

    found = list(read_json_lines(BytesIO(text)))

    assert [record.value["id"] for record in found if isinstance(record, Record)] == [1, 4]
    bad = [line for line in found if isinstance(line, BadLine)]
    assert [line.line for line in bad] == [2, 3, 4]
    assert {line.problem.code for line in bad} == {"invalid_json"}
    assert all(line.problem.startswith("is not valid JSON: ") for line in bad)


def test_oversized_line_is_reported_and_skipped() -> None:
    text = b'{"id": "' + b"x" * (2 * MAX_RECORD_BYTES + 5) + b'"}\n{"id": 2}\n'

    found = list(read_json_lines(BytesIO(text)))

    assert [type(line) for line in found] == [BadLine, Record]
    assert found[1] == Record(2, {"id": 2})
