"""The formats of files that can be imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.importers.column_map import ColumnMap
from app.importers.csv import read_csv
from app.importers.fields import fields_of_columns, finish, to_document
from app.importers.json_values import read_json
from app.importers.records import ByteStream, Read, Record
from app.importers.wxr import read_wxr


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The format in which a system writes its documents as JSON.

    Attributes:
        lists: The names under which answers of its API hold documents.
        aliases: Field to the columns that may fill it, the best first.
        unwrap: Whether ``{"raw": …}`` stands for the value in it.
    """

    lists: Sequence[str] = ()
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unwrap: bool = False


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
"""Their names."""


def read_file(stream: ByteStream, name: str, column_map: ColumnMap) -> Iterator[Read]:
    """Read a file of one of the ``FORMATS`` as documents that are still to be validated.

    Raises:
        UnreadableFile: It is none of this format, or lacks a column that ``column_map`` names.
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
        if isinstance(read, Record) and isinstance(read.value, dict):
            document = to_document(read.value, column_map, form.aliases, unwrap=form.unwrap)
            yield Record(read.line, document, read.number)
        else:
            yield read


def guess_format(stream: ByteStream, file_name: str) -> str:
    """``csv`` or ``wxr`` by the ending of a file's name or its first sign, else ``jsonl``."""
    suffix = file_name.rpartition(".")[2].lower()
    start = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    stream.seek(0)
    if suffix in ("csv", "xml"):
        return {"csv": "csv", "xml": "wxr"}[suffix]
    return "wxr" if start.startswith(b"<") else "jsonl"
