"""Validating and encoding documents in one pass, because a batch contains up to 10,000; and parsing their dates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from backends.query import FieldKind
from backends.sections import SECTIONS, Section, is_sections
from backends.standard_fields import REQUIRED_FIELDS, STANDARD_FIELDS, STRING_FIELDS
from backends.values import INT64
from schemas.validation.problems import MAX_PROBLEMS, REQUIRED, Problem, printable_name


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 date or date-time as an aware UTC datetime. A date means 00:00 UTC; the default offset is UTC.

    Raises:
        ValueError: The text is neither.
    """
    if not _ISO.fullmatch(text):
        raise ValueError("not an ISO 8601 date or date-time")
    moment = datetime.fromisoformat(text.replace("z", "Z").replace("t", "T"))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)


_DATE_FORMS = "a date such as 2024-05-31, or a date-time such as 2024-05-31T12:00:00Z"
INVALID_DATE = Problem(f"must be {_DATE_FORMS}", "invalid_date")

RECOMMENDED_BATCH = 1_000
MAX_BATCH = 10_000
MAX_ID_LENGTH = 512
MAX_URL_LENGTH = 2_048
MAX_DOCUMENT_BYTES = 1_048_576
MAX_CUSTOM_FIELDS = 100

MAX_SECTIONS = 400
MAX_SECTION_TITLE = 500
MAX_ANCHOR_LENGTH = 200
ANCHOR = re.compile(rf"[^\s\x00-\x1f\x7f-\x9f\ufdd0-\ufdef]{{1,{MAX_ANCHOR_LENGTH}}}")
"""Characters allowed after ``#`` in a URL: no blanks, control characters, or noncharacters."""
_SECTION_MEMBERS = set(Section._fields)
_INVALID_SECTION = "invalid_section"

LISTED_FIELDS = frozenset({"_source", "_updated_at"})
"""Members added to documents in lists; ignored in requests, so that an export can be sent back."""

_STANDARD = frozenset(STANDARD_FIELDS)
FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_NAME_RULE = "use a letter, then letters, digits, _, and -, at most 64 characters"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PLAIN_URL = re.compile(r"(?:https?://[A-Za-z0-9.-]+)?/(?![/\\])[!-~]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ValidDocument:
    """A valid document.

    Attributes:
        id: Identifier, as a string.
        body: The document as stored: JSON without null fields.
        fields: The document, decoded.
        kinds: Custom fields and the kind of each value.
        position: Position in the request: index from 0 in a batch, or line in a file.
    """

    id: str
    body: bytes
    fields: dict[str, Any]
    kinds: dict[str, FieldKind]
    position: int = 0


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """Fields of a document to replace or remove, each valid on its own.

    Attributes:
        fields: Name to new value.
        removed: Fields to remove.
        position: Index of the change in the request, from 0.
    """

    id: str
    fields: dict[str, Any]
    removed: frozenset[str]
    position: int


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """An unreadable document in a batch."""

    problem: Problem


class DocumentProblems(Exception):
    """The problems of one document, each with its field name (or ``""``), up to one more than a response lists."""

    def __init__(self, problems: list[tuple[str, Problem]]):
        super().__init__(problems)
        self.problems = problems


def custom_field_kinds(document: Mapping[str, Any]) -> dict[str, FieldKind]:
    """Return the custom fields of a valid document and their kinds, as in :attr:`ValidDocument.kinds`."""
    custom_fields = ((name, value) for name, value in document.items() if name not in _STANDARD)
    kinds = ((name, _check_custom_value(value)[0]) for name, value in custom_fields if not is_sections(value))
    return {name: kind for name, kind in kinds if kind is not None}


def read_document(raw: Any, position: int = 0, *, whole: bool = True) -> ValidDocument:
    """Validate and encode one document.

    Args:
        whole: Whether the document is complete, so that its sections must be within its content.

    Raises:
        DocumentProblems: The document is invalid.
    """
    if not isinstance(raw, dict):
        unreadable = isinstance(raw, UnreadableDocument)
        raise DocumentProblems([("", raw.problem if unreadable else Problem("must be a JSON object", "type"))])
    problems: list[tuple[str, Problem]] = []
    document: dict[str, Any] = {}
    kinds: dict[str, FieldKind] = {}
    custom_fields = 0
    for name, value in raw.items():
        if name in _STANDARD:
            if value is not None:
                document[name] = value
        elif name in LISTED_FIELDS:
            continue
        elif not FIELD_NAME.fullmatch(name):
            problems.append(_invalid_name(name))
        elif name == SECTIONS and value is not None and not _is_list_of_strings(value):
            document[name] = value  # Checked below, with the content.
        elif value is not None:
            custom_fields += 1
            if custom_fields > MAX_CUSTOM_FIELDS:
                continue
            kind, value, problem = _check_custom_value(value)
            if problem is not None:
                problems.append((name, problem))
            elif kind is not None:
                kinds[name] = kind
            document[name] = value
        if len(problems) > MAX_PROBLEMS:
            raise DocumentProblems(problems)
    problems.extend(_standard_problems(document))
    if SECTIONS in document and not _is_list_of_strings(document[SECTIONS]):
        problems.extend(_section_problems(document[SECTIONS], document.get("content") if whole else None))
    if custom_fields > MAX_CUSTOM_FIELDS:
        problems.append(("", Problem(f"must have at most {MAX_CUSTOM_FIELDS} custom fields", "too_many_fields")))
    if problems:
        raise DocumentProblems(problems)
    try:
        body = orjson.dumps(document)
    except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
        raise DocumentProblems([("", Problem("must not contain lone surrogates", "invalid"))]) from error
    if len(body) > MAX_DOCUMENT_BYTES:
        raise DocumentProblems([("", Problem(f"must have at most {MAX_DOCUMENT_BYTES} bytes", "too_large"))])
    if b"\\u0000" in body:
        problems = [
            (name, Problem("must not contain the NUL character", "invalid"))
            for name, value in document.items()
            if _has_nul(value)
        ]
        if problems:
            raise DocumentProblems(problems)
    return ValidDocument(document["id"], body, document, kinds, position)


def _invalid_name(name: str) -> tuple[str, Problem]:
    printable = printable_name(name)
    # Dots separate the names in the path of a problem, so the path cannot end in this name.
    if not name or "." in name:
        return "", Problem(f"has a field with the name {printable!r}; {_NAME_RULE}", "invalid_name")
    return printable, Problem(f"is not a field name: {_NAME_RULE}", "invalid_name")


_UNCHANGED = {"title": "", "content": "", "url": "/"}
"""Placeholder for the required fields that a change omits."""


def read_change(raw: Any, position: int = 0) -> DocumentChange:
    """Validate those parts of one change that can be checked without the document.

    Raises:
        DocumentProblems: The change is invalid for every document.
    """
    document = read_document({**_UNCHANGED, **raw} if isinstance(raw, dict) else raw, position, whole=False)
    changes = {name: value for name, value in raw.items() if name not in LISTED_FIELDS}
    return DocumentChange(
        document.id,
        {name: document.fields[name] for name, value in changes.items() if value is not None},
        frozenset(name for name, value in changes.items() if value is None),
        position,
    )


def _standard_problems(document: dict[str, Any]) -> Iterator[tuple[str, Problem]]:
    for name in REQUIRED_FIELDS:
        if name not in document:
            yield name, REQUIRED
    if "id" in document:
        identifier = document["id"] = as_identifier(document["id"])
        if not isinstance(identifier, str):
            yield "id", Problem("must be a string", "type")
        elif not identifier:
            yield "id", Problem("must not be empty", "too_short")
        elif len(identifier) > MAX_ID_LENGTH:
            yield "id", Problem(f"must have at most {MAX_ID_LENGTH} characters", "too_long")
    for name in STRING_FIELDS:
        if name in document and not isinstance(document[name], str):
            yield name, Problem("must be a string", "type")
    if "url" in document:
        problem = url_problem(document["url"])
        if problem is not None:
            yield "url", problem
    if "date" in document:
        date = document["date"]
        if not isinstance(date, str):
            yield "date", Problem(f"must be a string: {_DATE_FORMS}", "type")
        else:
            try:
                parse_instant(date)
            except ValueError:
                yield "date", INVALID_DATE


def _is_list_of_strings(value: Any) -> bool:
    """Whether ``sections`` is a custom field, as in documents from before sections were supported."""
    return isinstance(value, list) and all(isinstance(member, str) for member in value)


def _section_problems(sections: Any, content: Any) -> Iterator[tuple[str, Problem]]:
    """Yield the problems with a document's sections, only the first of each kind.

    Args:
        content: The content that they refer to; ``None`` if it is unknown.
    """
    if not isinstance(sections, list):
        yield SECTIONS, Problem("must be a list of sections", _INVALID_SECTION)
        return
    if len(sections) > MAX_SECTIONS:
        yield SECTIONS, Problem(f"must have at most {MAX_SECTIONS} sections", _INVALID_SECTION)
        return
    length = len(content) if isinstance(content, str) else None
    anchors: set[str] = set()
    last = 0
    for index, section in enumerate(sections):
        problem = _section_problem(section, anchors, last, length)
        if problem is not None:
            yield SECTIONS, Problem(f"has an invalid section: section {index + 1} {problem}", _INVALID_SECTION)
            return
        anchors.add(section["anchor"])
        last = section["start"]


def _section_problem(section: Any, anchors: set[str], last: int, length: int | None) -> str | None:
    if not isinstance(section, dict) or section.keys() != _SECTION_MEMBERS:
        return f"must be an object with exactly the fields {', '.join(Section._fields)}"
    anchor, title, level, start = (section[name] for name in Section._fields)
    if not isinstance(anchor, str) or ANCHOR.fullmatch(anchor) is None:
        return "must have an anchor of 1 to 200 characters, without spaces or control characters"
    if anchor in anchors:
        return f"repeats the anchor {anchor!r}"
    if not isinstance(title, str) or not 1 <= len(title) <= MAX_SECTION_TITLE or not title.strip():
        return f"must have a title of 1 to {MAX_SECTION_TITLE} characters"
    if type(level) is not int or not 1 <= level <= 6:
        return "must have a level from 1 to 6"
    if type(start) is not int or start < last:
        return "must not start before the previous one"
    if length is not None and start > length:
        return f"starts at {start}, beyond the content, which has {length} characters"
    return None


def as_identifier(value: Any) -> Any:
    """Convert an integer to a string, which is a valid ID; return anything else unchanged."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def url_problem(url: Any) -> Problem | None:
    if not isinstance(url, str):
        return Problem("must be a string", "type")
    if not url:
        return Problem("must not be empty", "too_short")
    if len(url) > MAX_URL_LENGTH:
        return Problem(f"must have at most {MAX_URL_LENGTH} characters", "too_long")
    if _PLAIN_URL.fullmatch(url):
        return None
    invalid = Problem("must be an http or https URL, or a path that starts with one /", "invalid_url")
    if _CONTROL.search(url):
        return invalid
    if url.startswith("/"):
        return invalid if url.startswith(("//", "/\\")) else None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return invalid
    if any(character.isspace() for character in parts.netloc):
        return invalid
    return None if parts.scheme.lower() in {"http", "https"} and parts.hostname else invalid


def _check_custom_value(value: Any) -> tuple[FieldKind | None, Any, Problem | None]:
    """Return the kind of a custom field's value, the value, and the problem with it, if any."""
    if isinstance(value, str):
        return FieldKind.STRING, value, None
    if isinstance(value, bool):
        return FieldKind.BOOLEAN, value, None
    if isinstance(value, int | float):
        return FieldKind.NUMBER, value, _number_problem(value)
    if isinstance(value, list):
        if not value:
            return None, value, None
        if all(isinstance(member, str) for member in value):
            return FieldKind.STRING_LIST, value, None
        if all(isinstance(member, int | float) and not isinstance(member, bool) for member in value):
            problems = (_number_problem(member) for member in value)
            return FieldKind.NUMBER_LIST, value, next((p for p in problems if p is not None), None)
        return None, value, Problem("must be a list of strings or a list of numbers", "type")
    return (
        None,
        value,
        Problem("must be a string, a number, a boolean, a list of strings, or a list of numbers", "type"),
    )


def _number_problem(value: int | float) -> Problem | None:
    if isinstance(value, float):
        if not math.isfinite(value) or (abs(value) >= 2**63 and value.is_integer()):
            return Problem("must be a number that fits in 64 bits", "out_of_range")
        return None
    return None if value in INT64 else Problem("must be a number that fits in 64 bits", "out_of_range")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(map(_has_nul, value.values()))
    return isinstance(value, list) and any(map(_has_nul, value))
