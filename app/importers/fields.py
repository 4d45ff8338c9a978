"""From a record of another system to a document: nested values flattened, names and dates made to fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from app.importers.column_map import ColumnMap
from app.importers.records import UnreadableFile
from backends.standard_fields import REQUIRED_FIELDS, STANDARD_FIELDS
from backends.text import normalized
from schemas.validation.documents import FIELD_NAME
from schemas.validation.problems import Problem, shown_name

_OWN = "_"
"""What begins so is the other engine's own: scores, highlights, vectors."""
_KEPT_OWN = frozenset(("_geoloc", "_geo", "_tags"))

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_BEFORE_NAMES = re.compile(r"^[^A-Za-z]+", re.ASCII)
_LONGEST_NAME = 64
_LONGEST_PATH = 1_000
"""A long name above many values would be written once for each of them."""

_JOINED_BY = {"title": " ", "content": "\n", "excerpt": "\n", "author": ", "}
_TITLE_LEVELS = [f"hierarchy_lvl{level}" for level in range(1, 7)]
_SECTION_LEVEL = "hierarchy_lvl0"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIX_TIME = re.compile(r"-?[0-9]{9,14}", re.ASCII)
_FIRST_SECOND = 10**8
"""Smaller numbers are a year or ``20240501`` rather than seconds since 1970."""
_FIRST_MILLISECOND = 10**11


def to_document(
    record: Mapping[str, Any],
    column_map: ColumnMap,
    aliases: Mapping[str, Sequence[str]],
    *,
    unwrap: bool = False,
) -> dict[str, Any]:
    """Make a document of a record, as far as it can become one.

    Args:
        aliases: Field to the columns that may fill it where ``column_map`` says nothing, the best first.
        unwrap: Whether ``{"raw": …}`` stands for the value in it.
    """
    values = flatten(record, unwrap=unwrap)
    document: dict[str, Any] = {}
    used = set(column_map.left_out)
    for name, column in column_map.columns.items():
        used.add(column)
        if column in values:
            document[name] = values[column]
    for name, columns in aliases.items():
        found = next((column for column in columns if column in values), None)
        if name not in column_map.columns and found is not None:
            used.add(found)
            document[name] = values[found]
    for column, value in values.items():
        top_level = column.partition(".")[0]
        if column not in used and (not column.startswith(_OWN) or top_level in _KEPT_OWN):
            name = column if column in STANDARD_FIELDS else field_name(column)
            if name not in column_map.columns:
                document.setdefault(name, value)
    _title_from_hierarchy(document)
    return finish(document)


def flatten(record: Mapping[str, Any], *, unwrap: bool = False) -> dict[str, Any]:
    """The values of a record by their paths (``author.name``), without nulls; those of list members together in a list.

    Paths are cut after 1,000 characters; of those that are then one, the first one stays.

    Args:
        unwrap: Whether ``{"raw": …}`` stands for the value in it.
    """
    values: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    # How deep it goes is the sender's choice: no recursion.
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
                    (f"{path}.{name}"[:_LONGEST_PATH], member, is_member) for name, member in reversed(value.items())
                )
        elif value is not None and not is_member:
            values.setdefault(path, value)
        elif value is not None:
            lists.setdefault(path, []).append(value)
    return {**{path: _of_one_kind(members) for path, members in lists.items()}, **values}


def _of_one_kind(members: list[Any]) -> list[Any]:
    """A list of strings or of numbers."""
    if all(isinstance(member, int | float) and not isinstance(member, bool) for member in members):
        return members
    return [_as_text(member) for member in members]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def field_name(column: str) -> str:
    """The name of a further field for a column: ``Post_Date`` for "Post Date". One that has no letter of it stays."""
    if FIELD_NAME.fullmatch(column):
        return column
    plain = normalized("NFKD", column).encode("ascii", "ignore").decode()
    name = _NOT_IN_NAMES.sub("_", _BEFORE_NAMES.sub("", plain)).rstrip("_")[:_LONGEST_NAME]
    return name or column


def finish(document: dict[str, Any]) -> dict[str, Any]:
    """Make texts of what must be text, and dates of Unix seconds and milliseconds."""
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
    """A date for Unix seconds or milliseconds; anything else as it is."""
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
    """Give a record of DocSearch its title, and a content where it is a heading."""
    if "title" in document or not any(name in document for name in (_SECTION_LEVEL, *_TITLE_LEVELS)):
        return
    levels = [_as_text(document[name]) for name in _TITLE_LEVELS if name in document]
    document["title"] = " › ".join(levels) if levels else _as_text(document[_SECTION_LEVEL])
    document.setdefault("content", "")


def fields_of_columns(names: Sequence[str], column_map: ColumnMap) -> list[list[str]]:
    """The fields that each column of a table fills.

    A column fills the standard field of its name whatever the letters' case.

    Raises:
        UnreadableFile: There is no such column as ``column_map`` says, or none for a field that all documents have.
    """
    shown = ", ".join(shown_name(name) for name in names[:20])
    for column in (*column_map.columns.values(), *column_map.left_out):
        if column not in names:
            predicate = f"names the column {shown_name(column)!r}, but the columns are: {shown}"
            raise UnreadableFile(Problem(predicate, "unknown_column"), "map")
    fields = [[field for field, filled_by in column_map.columns.items() if filled_by == name] for name in names]
    taken = set(column_map.columns)
    used = {*column_map.columns.values(), *column_map.left_out}
    for is_exact in (True, False):
        for column, filled in zip(names, fields, strict=True):
            name = column if is_exact else column.lower()
            if column not in used and name in STANDARD_FIELDS and name not in taken:
                taken.add(name)
                used.add(column)
                filled.append(name)
    for column, filled in zip(names, fields, strict=True):
        if column and column not in used and not column.startswith(_OWN):
            name = field_name(column)
            if name not in taken:
                taken.add(name)
                filled.append(name)
    missing = [name for name in REQUIRED_FIELDS if name not in taken]
    if missing:
        raise UnreadableFile(_no_column(missing, names, shown))
    return fields


def _no_column(missing: Sequence[str], names: Sequence[str], shown: str) -> Problem:
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        return Problem("must have its columns separated by commas", "invalid_csv")
    return Problem(f"has no column for {', '.join(missing)}; map columns to them. Its columns are: {shown}", "required")
