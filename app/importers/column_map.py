"""The columns of a file and the fields of its documents that they fill, as whoever imports it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.importers.records import UnreadableFile
from schemas.validation.documents import FIELD_NAME
from schemas.validation.problems import Problem, shown_name

_NEXT_PAIR = re.compile(r"\n|,(?=\s*(?:[A-Za-z][A-Za-z0-9_-]*)?\s*=)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Fields of documents, and the columns they are taken from.

    Attributes:
        columns: Field to column; what has no entry is taken from the column of its own name.
        left_out: Columns that fill no field.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()


def read_column_map(text: str) -> ColumnMap:
    """Read ``title=Headline,url=Link,=Notes``, with commas or line breaks between; no field leaves a column out.

    Raises:
        UnreadableFile: It is malformed.
    """
    columns: dict[str, str] = {}
    left_out = set()
    for pair in _NEXT_PAIR.split(text):
        if not pair.strip():
            continue
        name, sign, column = (part.strip() for part in pair.partition("="))
        if not sign or not column:
            raise _invalid(f"must consist of field=column, not {shown_name(pair.strip())!r}", "invalid")
        if not name:
            left_out.add(column)
        elif not FIELD_NAME.fullmatch(name):
            raise _invalid(f"names the field {shown_name(name)!r}, which no document can have", "invalid_name")
        elif name in columns:
            raise _invalid(f"fills the field {name!r} twice", "conflict")
        else:
            columns[name] = column
    return ColumnMap(columns, frozenset(left_out))


def _invalid(predicate: str, code: str) -> UnreadableFile:
    return UnreadableFile(Problem(predicate, code), "map")
