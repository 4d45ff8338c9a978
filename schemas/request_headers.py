"""Request headers that the crawler sends to a source's host."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import ValidationError, fields

from schemas.fields import Text
from schemas.validation.problems import Problem, printable_name

MAX_HEADERS = 5
MAX_HEADER_VALUE_LENGTH = 2_000

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?", re.ASCII)
_OUR_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "if-modified-since",
        "if-none-match",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
"""Headers for message framing or for the sender's identity, which only the crawler sets."""


class Headers(fields.Field[dict[str, str]]):
    """Up to five request headers, by name. Values are secrets: no error message repeats them."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise ValidationError([Problem("must be a JSON object", "type")])
        if len(value) > MAX_HEADERS:
            raise ValidationError([Problem(f"must have at most {MAX_HEADERS} headers", "too_long")])
        problems = {
            printable_name(name): [problem] for name, text in value.items() if (problem := _problem_of(name, text))
        }
        if problems:
            raise ValidationError(problems)
        if len({name.lower() for name in value}) < len(value):
            raise ValidationError([Problem("must not repeat a header", "invalid")])
        return dict(value)


def _problem_of(name: str, text: Any) -> Problem | None:
    if not _HEADER_NAME.fullmatch(name):
        return Problem("is not a valid header name", "invalid")
    if name.lower() in _OUR_HEADERS:
        return Problem("is set by the crawler and cannot be changed", "invalid")
    if not isinstance(text, str):
        return Problem("must be a string", "type")
    if len(text) > MAX_HEADER_VALUE_LENGTH:
        return Problem(f"must have at most {MAX_HEADER_VALUE_LENGTH} characters", "too_long")
    if not _HEADER_VALUE.fullmatch(text):
        return Problem("must be printable ASCII on one line, without spaces at its ends", "invalid")
    return None
