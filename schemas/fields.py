"""Strict fields: JSON types are not converted, and problems have codes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from marshmallow import ValidationError, fields

from backends.globs import MAX_STARS, star_count
from backends.text import normal_form
from schemas.validation.documents import FIELD_NAME, INVALID_DATE, parse_instant
from schemas.validation.problems import NULL, REQUIRED, Problem, ProblemCount

MAX_INTEGER = 2147483647
MAX_INT64 = 9223372036854775807
MAX_FIELD_LENGTH = 64
MAX_GLOB_LENGTH = 500
_BASE_MESSAGES: Any = {"required": REQUIRED, "null": NULL, "validator_failed": Problem("is not valid", "invalid")}


class Text(fields.String):
    """A string.

    Args:
        min_length, max_length: Limits in characters, after trimming if ``trim``.
        trim: Whether to remove surrounding white space.
        choices: Allowed values.
        max_bytes: Limit in bytes of UTF-8.
    """

    default_error_messages = _BASE_MESSAGES

    def __init__(
        self,
        *,
        min_length: int = 0,
        max_length: int | None = None,
        max_bytes: int | None = None,
        trim: bool = False,
        choices: tuple[str, ...] = (),
        **kwargs: Any,
    ):
        metadata = kwargs.setdefault("metadata", {})
        if min_length:
            metadata.setdefault("minLength", min_length)
        if max_length is not None:
            metadata.setdefault("maxLength", max_length)
        if choices:
            metadata.setdefault("enum", list(choices))
        super().__init__(**kwargs)
        self.min_length = min_length
        self.max_length = max_length
        self.max_bytes = max_bytes
        self.trim = trim
        self.choices = choices

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError([Problem("must be a string", "type")])
        # PostgreSQL cannot store NUL in text, and highlighting uses it to mark matches.
        if "\x00" in value:
            raise ValidationError([Problem("must not contain the NUL character", "invalid")])
        try:
            # JSON can contain lone surrogates, but UTF-8, and therefore databases and engines, cannot.
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise ValidationError([Problem("must not contain lone surrogates", "invalid")]) from error
        text = value.strip() if self.trim else value
        if len(text) < self.min_length:
            if not text:
                raise ValidationError([Problem("must not be empty", "too_short")])
            raise ValidationError([Problem(f"must have at least {self.min_length} characters", "too_short")])
        if self.max_length is not None and len(text) > self.max_length:
            raise ValidationError([Problem(f"must have at most {self.max_length} characters", "too_long")])
        if self.max_bytes is not None and size > self.max_bytes:
            raise ValidationError([Problem(f"must have at most {self.max_bytes} bytes", "too_long")])
        if self.choices and text not in self.choices:
            raise ValidationError([Problem(f"must be one of {', '.join(self.choices)}", "invalid_choice")])
        return text


class WholeNumber(fields.Integer):
    """A whole number from ``low`` to ``high``.

    In JSON it is an integer: ``5.0`` is 5, ``true`` is not a number.

    Attributes:
        reads_text: Whether it reads text of the form ``-?[0-9]+``, as in a query string.
    """

    default_error_messages = _BASE_MESSAGES
    reads_text = False
    _FORM = re.compile(r"-?[0-9]+", re.ASCII)

    def __init__(self, *, low: int = 0, high: int = MAX_INTEGER, **kwargs: Any):
        metadata = kwargs.setdefault("metadata", {})
        metadata.setdefault("minimum", low)
        metadata.setdefault("maximum", high)
        if high > MAX_INTEGER:
            metadata.setdefault("format", "int64")
        super().__init__(**kwargs)
        self.low = low
        self.high = high

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        # 64 bits need at most 20 characters, and int() raises a ValueError for more than 4,300.
        if self.reads_text and isinstance(value, str) and self._FORM.fullmatch(value):
            value = int(value) if len(value) <= 20 else None
        elif isinstance(value, float) and value.is_integer():
            # The JSON parser rounds integers beyond 64 bits, which could make them fit.
            value = int(value) if abs(value) < 2**63 else None
        # In Python, booleans are integers.
        elif not isinstance(value, int) or isinstance(value, bool):
            raise ValidationError([Problem("must be an integer", "type")])
        if value is None or not self.low <= value <= self.high:
            raise ValidationError([Problem(f"must be between {self.low} and {self.high}", "out_of_range")])
        return int(value)


class RowNumber(fields.Integer):
    """The numeric ID of a row, up to 64 bits."""

    def __init__(self, **kwargs: Any):
        super().__init__(metadata={"format": "int64"}, **kwargs)


class Number(fields.Float):
    """A number from ``low`` to ``high``; in JSON, ``true`` is not a number.

    Attributes:
        reads_text: Whether it reads text such as ``-1.5``, of at most 30 characters, as in a query string.
    """

    default_error_messages = _BASE_MESSAGES
    reads_text = False
    _FORM = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)

    def __init__(self, *, low: float, high: float, **kwargs: Any):
        kwargs.setdefault("metadata", {}).update(minimum=low, maximum=high)
        super().__init__(**kwargs)
        self.low = low
        self.high = high

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if self.reads_text:
            is_number = isinstance(value, str) and len(value) <= 30 and self._FORM.fullmatch(value)
            value = float(value) if is_number else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValidationError([Problem("must be a number", "type")])
        if not self.low <= value <= self.high:
            raise ValidationError([Problem(f"must be between {self.low:g} and {self.high:g}", "out_of_range")])
        return float(value)


class Flag(fields.Boolean):
    """A JSON boolean.

    Attributes:
        reads_text: Whether it reads ``true``, ``false``, ``1``, or ``0``, as in a query string.
    """

    default_error_messages = _BASE_MESSAGES
    reads_text = False

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        flag = _FLAGS.get(value) if self.reads_text else value
        if not isinstance(flag, bool):
            raise ValidationError([Problem("must be true or false", "type")])
        return flag


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


_DATE_LENGTH = len("2024-05-01")


class Instant(fields.DateTime):
    """An ISO 8601 date or date-time, read as an aware UTC time.

    Args:
        date_alone: Whether a date without a time is accepted.
    """

    default_error_messages = _BASE_MESSAGES

    def __init__(self, *, date_alone: bool = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.date_alone = date_alone

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        if not isinstance(value, str):
            raise ValidationError([Problem("must be a string", "type")])
        try:
            moment = parse_instant(value)
        except ValueError as error:
            raise ValidationError([self._no_date()]) from error
        # The parser reads a date as midnight, so only the length shows that the time is missing.
        if not self.date_alone and len(value) == _DATE_LENGTH:
            raise ValidationError([self._no_date()])
        return moment

    def _no_date(self) -> Problem:
        return (
            INVALID_DATE
            if self.date_alone
            else Problem("must be a date-time such as 2024-05-31T12:00:00Z", "invalid_date")
        )

    def _serialize(self, value: datetime | None, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        if value is None:
            return None
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ItemList(fields.Field[list[Any]]):
    """A JSON list whose items another field validates, with a minimum and maximum length."""

    default_error_messages = Text.default_error_messages

    def __init__(self, item: fields.Field[Any], *, low: int = 0, high: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.item = item
        self.low = low
        self.high = high

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError([Problem("must be a list", "type")])
        if not self.low <= len(value) <= self.high:
            code = "too_short" if len(value) < self.low else "too_long"
            raise ValidationError([Problem(f"must have {self.low} to {self.high} items", code)])
        errors: dict[int, Any] = {}
        count = ProblemCount()
        items = []
        for position, member in enumerate(value):
            try:
                items.append(self.item.deserialize(member))
            except ValidationError as error:
                errors[position] = error.messages
                count.add(error.messages)
                # Hostile lists could otherwise cost much more time than the response can report.
                if count.is_full:
                    break
        if errors:
            raise ValidationError(errors)
        return items


class NormalText(Text):
    """A query, stored in its normal form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        query = normal_form(super()._deserialize(value, attr, data, **kwargs))
        if not query:
            raise ValidationError([Problem("must not be empty", "too_short")])
        return query


class FieldName(Text):
    """The name of a field of documents."""

    def __init__(self, **kwargs: Any):
        super().__init__(trim=True, min_length=1, max_length=MAX_FIELD_LENGTH, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if not FIELD_NAME.fullmatch(name):
            raise ValidationError([Problem("must be a letter, then letters, digits, _, and -", "invalid_name")])
        return name


class Glob(Text):
    """A pattern of paths, in which ``*`` matches any characters."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_length=1, max_length=MAX_GLOB_LENGTH, trim=True, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        glob = super()._deserialize(value, attr, data, **kwargs)
        if not glob.startswith(("/", "*")):
            raise ValidationError([Problem("must begin with / or *, such as /blog/*", "invalid")])
        if any(character.isspace() or ord(character) < 32 for character in glob):
            raise ValidationError([Problem("must not contain white space", "invalid")])
        check_stars(glob)
        return glob


MONTH_PATTERN = "^[0-9]{4}-(0[1-9]|1[0-2])$"
"""Pattern of a calendar month, such as `2026-11`."""
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)


class Month(Text):
    """A calendar month, read as its first day."""

    def __init__(self, **kwargs: Any):
        super().__init__(metadata={"pattern": MONTH_PATTERN, **kwargs.pop("metadata", {})}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        match = _MONTH.fullmatch(super()._deserialize(value, attr, data, **kwargs))
        # Years before 1970 would be dates that no database or clock of the service has seen.
        if match is None or int(match[1]) < 1970:
            raise ValidationError([Problem("must be a month, such as 2026-11", "invalid_date")])
        return date(int(match[1]), int(match[2]), 1)


def check_stars(glob: str) -> None:
    """Check the number of stars in a glob.

    Raises:
        ValidationError: There are more than :data:`~backends.globs.MAX_STARS`.
    """
    if star_count(glob) > MAX_STARS:
        raise ValidationError([Problem(f"must have at most {MAX_STARS} *", "too_many")])
