"""Conversion of records to documents: columns to fields, nested values flattened, names and dates adapted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from app.importers.records import UnreadableFile
from backends.standard_fields import REQUIRED_FIELDS, STANDARD_FIELDS
from backends.text import normalized
from schemas.validation.documents import FIELD_NAME
from schemas.validation.problems import Problem, printable_name

_NEXT_PAIR = re.compile(r"\n|,(?=\s*(?:[A-Za-z][A-Za-z0-9_-]*\s*)?=)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """A mapping from columns to fields.

    Attributes:
        columns: The column for each field. Other fields are read from the column with the same name.
        ignored: Columns that are not imported.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()


def read_column_map(text: str) -> ColumnMap:
    """Parse a map such as ``title=Headline,url=Link,=Notes``. ``=Notes`` ignores a column.

    Commas or line breaks separate the entries.

    Raises:
        UnreadableFile: The text is malformed.
    """
    columns: dict[str, str] = {}
    ignored = set()
    for pair in _NEXT_PAIR.split(text):
        if not pair.strip():
            continue
        name, sign, column = (part.strip() for part in pair.partition("="))
        if not sign or not column:
            raise _invalid(f"must consist of field=column, not {printable_name(pair.strip())!r}", "invalid")
        if not name:
            ignored.add(column)
        elif not FIELD_NAME.fullmatch(name):
            raise _invalid(f"contains {printable_name(name)!r}, which is not a valid field name", "invalid_name")
        elif name in columns:
            raise _invalid(f"fills the field {name!r} twice", "conflict")
        else:
            columns[name] = column
    return ColumnMap(columns, frozenset(ignored))


def _invalid(predicate: str, code: str) -> UnreadableFile:
    return UnreadableFile(Problem(predicate, code), "map")


_INTERNAL_PREFIX = "_"
"""Prefix of internal fields of the exporting engine: scores, highlights, vectors."""
_IMPORTED_INTERNAL = frozenset(("_geoloc", "_geo", "_tags"))

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_BEFORE_NAMES = re.compile(r"^[^A-Za-z]+", re.ASCII)
_MAX_NAME_LENGTH = 64
_MAX_PATH_LENGTH = 1_000
"""Maximum number of characters in a path, since a long name above many values is repeated for each value."""

_JOINED_BY = {"title": " ", "content": "\n", "excerpt": "\n", "author": ", "}
_TITLE_LEVELS = [f"hierarchy_lvl{level}" for level in range(1, 7)]
_SECTION_LEVEL = "hierarchy_lvl0"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIX_TIME = re.compile(r"-?[0-9]{9,14}", re.ASCII)
_FIRST_SECOND = 10**8
"""Smallest number that counts as Unix seconds. Smaller numbers are years or dates such as ``20240501``."""
_FIRST_MILLISECOND = 10**11


def to_document(
    record: Mapping[str, Any],
    column_map: ColumnMap,
    aliases: Mapping[str, Sequence[str]],
    *,
    unwrap: bool = False,
) -> dict[str, Any]:
    """Convert a record to a document, which may still be invalid.

    Args:
        aliases: Columns for each field that ``column_map`` does not contain, most preferred first.
        unwrap: Whether to replace ``{"raw": …}`` by the value in it.
    """
    values = flatten(record, unwrap=unwrap)
    document: dict[str, Any] = {}
    used = set(column_map.ignored)
    for name, column in column_map.columns.items():
        used.add(column)
        if column in values:
            document[name] = values[column]
    for name, columns in aliases.items():
        present = next((column for column in columns if column in values), None)
        if name not in column_map.columns and present is not None:
            used.add(present)
            document[name] = values[present]
    for column, value in values.items():
        top_level = column.partition(".")[0]
        if column not in used and (not column.startswith(_INTERNAL_PREFIX) or top_level in _IMPORTED_INTERNAL):
            name = column if column in STANDARD_FIELDS else field_name(column)
            if name not in column_map.columns:
                document.setdefault(name, value)
    _title_from_hierarchy(document)
    return finish(document)


def flatten(record: Mapping[str, Any], *, unwrap: bool = False) -> dict[str, Any]:
    """Return the values of a record by path (``author.name``), without nulls. Values within lists become one list.

    Paths are truncated to 1,000 characters. If truncated paths are equal, the first value is used.

    Args:
        unwrap: Whether to replace ``{"raw": …}`` by the value in it.
    """
    values: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    # Not recursive, since the sender chooses the depth.
    waiting = [(name, value, False) for name, value in reversed(list(record.items()))]
    while waiting:
        path, value, is_member = waiting.pop()
        if isinstance(value, list):
            waiting.extend((path, member, True) for member in reversed(value))
        elif isinstance(value, dict):
            if unwrap and "raw" in value and value.keys() <= {"raw", "snippet"}:
                waiting.append((path, value["raw"], is_member))
            else:
                waiting.extend(
                    (f"{path}.{name}"[:_MAX_PATH_LENGTH], member, is_member) for name, member in reversed(value.items())
                )
        elif value is not None and not is_member:
            values.setdefault(path, value)
        elif value is not None:
            lists.setdefault(path, []).append(value)
    return {**{path: _of_one_kind(members) for path, members in lists.items()}, **values}


def _of_one_kind(members: list[Any]) -> list[Any]:
    """``[1, 2] -> [1, 2]``, ``[1, "a"] -> ["1", "a"]``"""
    if all(isinstance(member, int | float) and not isinstance(member, bool) for member in members):
        return members
    return [_as_text(member) for member in members]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def field_name(column: str) -> str:
    """Return the custom field for a column: ``Post_Date`` for "Post Date". Names without ASCII letters are kept."""
    if FIELD_NAME.fullmatch(column):
        return column
    plain = normalized("NFKD", column).encode("ascii", "ignore").decode()
    name = _NOT_IN_NAMES.sub("_", _BEFORE_NAMES.sub("", plain)).rstrip("_")[:_MAX_NAME_LENGTH]
    return name or column


def finish(document: dict[str, Any]) -> dict[str, Any]:
    """Convert standard text fields to strings, and Unix seconds and milliseconds to dates."""
    for name, separator in _JOINED_BY.items():
        value = document.get(name)
        if isinstance(value, list):
            document[name] = separator.join(_as_text(member) for member in value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            document[name] = _as_text(value)
    if "date" in document:
        document["date"] = _as_date(document["date"])
    return document


def _as_date(value: Any) -> Any:
    """Convert Unix seconds or milliseconds to a date, and return any other value unchanged."""
    seconds = value
    if isinstance(value, str) and _UNIX_TIME.fullmatch(value):
        seconds = int(value)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or abs(seconds) < _FIRST_SECOND:
        return value
    if abs(seconds) >= _FIRST_MILLISECOND:
        seconds = seconds / 1000
    try:
        return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return value


def _title_from_hierarchy(document: dict[str, Any]) -> None:
    """Set the title of a DocSearch record, and an empty content if the record is for a heading."""
    if "title" in document or not any(name in document for name in (_SECTION_LEVEL, *_TITLE_LEVELS)):
        return
    levels = [_as_text(document[name]) for name in _TITLE_LEVELS if name in document]
    document["title"] = " › ".join(levels) if levels else _as_text(document[_SECTION_LEVEL])
    document.setdefault("content", "")


def fields_of_columns(names: Sequence[str], column_map: ColumnMap) -> list[list[str]]:
    """Return the fields that each column of a table fills. The names of standard fields are not case-sensitive.

    Raises:
        UnreadableFile: A column in ``column_map`` does not exist, or there is no column for a required field.
    """
    listed_names = ", ".join(printable_name(name) for name in names[:20])
    column_names = set(names)
    for column in (*column_map.columns.values(), *column_map.ignored):
        if column not in column_names:
            predicate = f"contains the unknown column {printable_name(column)!r}; the columns are: {listed_names}"
            raise UnreadableFile(Problem(predicate, "unknown_column"), "map")
    fields_by_column: dict[str, list[str]] = {}
    for name, column in column_map.columns.items():
        fields_by_column.setdefault(column, []).append(name)
    fields = [fields_by_column.get(name, []) for name in names]
    filled_fields = set(column_map.columns)
    used = {*column_map.columns.values(), *column_map.ignored}
    for is_exact in (True, False):
        for column, filled in zip(names, fields, strict=True):
            name = column if is_exact else column.lower()
            if column not in used and name in STANDARD_FIELDS and name not in filled_fields:
                filled_fields.add(name)
                used.add(column)
                filled.append(name)
    for column, filled in zip(names, fields, strict=True):
        if column and column not in used and not column.startswith(_INTERNAL_PREFIX):
            name = field_name(column)
            if name not in filled_fields:
                filled_fields.add(name)
                filled.append(name)
    missing = [name for name in REQUIRED_FIELDS if name not in filled_fields]
    if missing:
        raise UnreadableFile(_no_column(missing, names, listed_names))
    return fields


def _no_column(missing: Sequence[str], names: Sequence[str], listed_names: str) -> Problem:
    return Problem(
        f"is missing columns for {', '.join(missing)}; map a column to each of them: {listed_names}", "required"
    )
