"""File formats for imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.importers.csv import read_csv
from app.importers.fields import ColumnMap, fields_of_columns, finish, to_document
from app.importers.json_values import read_json
from app.importers.records import ByteStream, Read, Record
from app.importers.wxr import read_wxr
from app.texts.formats import html_to_text


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A system's JSON format for documents.

    Attributes:
        lists: Names of the lists of documents in API responses.
        aliases: Columns for each field, most preferred first.
        unwrap: Whether to replace ``{"raw": …}`` by the value in it.
        html: Columns with HTML, which becomes text.
        rows: Columns and the only value that is not skipped, such as ``{"status": "published"}``. Rows without the
            column are read, so that a file of another format is reported.
    """

    lists: Sequence[str] = ()
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unwrap: bool = False
    html: Sequence[str] = ()
    rows: Mapping[str, str] = field(default_factory=dict)


_JSON_FORMATS = {
    "jsonl": JsonFormat(lists=("documents",)),
    "algolia": JsonFormat(lists=("hits",), aliases={"id": ("objectID", "id")}),
    "meilisearch": JsonFormat(lists=("results", "hits"), aliases={"id": ("id", "objectID")}),
    "typesense": JsonFormat(),
    "appsearch": JsonFormat(
        lists=("results",),
        aliases={
            "id": ("id", "_meta.id"),
            "content": ("content", "body_content"),
            "excerpt": ("excerpt", "meta_description"),
        },
        unwrap=True,
    ),
}

FORMATS = ("wxr", "csv", *_JSON_FORMATS)
"""Names of the formats."""


def read_file(stream: ByteStream, name: str, column_map: ColumnMap) -> Iterator[Read]:
    """Read a file in one of the ``FORMATS`` as documents that have not been validated.

    Raises:
        UnreadableFile: The file has another format, or lacks a column that ``column_map`` names.
    """
    if name == "csv":
        for read in read_csv(stream, partial(fields_of_columns, column_map=column_map)):
            yield Record(read.line, finish(read.value)) if isinstance(read, Record) else read
        return
    if name == "wxr":
        form, reads = JsonFormat(), read_wxr(stream)
    else:
        form = _JSON_FORMATS[name]
        reads = read_json(stream, form.lists, form.aliases.get("id", ("id",)))
    for read in reads:
        if not isinstance(read, Record) or not isinstance(read.value, dict):
            yield read
        elif all(read.value.get(column, value) == value for column, value in form.rows.items()):
            row = read.value
            row |= {column: html_to_text(row[column]) for column in form.html if isinstance(row.get(column), str)}
            document = to_document(row, column_map, form.aliases, unwrap=form.unwrap)
            yield Record(read.line, document, read.number)


def guess_format(stream: ByteStream, file_name: str) -> str:
    """Guess ``csv`` or ``wxr`` from a file's extension or first character. The default is ``jsonl``."""
    suffix = file_name.rpartition(".")[2].lower()
    start = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    stream.seek(0)
    if suffix in ("csv", "xml"):
        return {"csv": "csv", "xml": "wxr"}[suffix]
    return "wxr" if start.startswith(b"<") else "jsonl"
