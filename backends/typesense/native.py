"""Rejecting filters in Typesense's own syntax that must not reach Typesense.

Some name the adapter's own fields. Others make Typesense 0.24.1 hang: it parses whole numbers without checking that
they fit into 64 bits, and takes an id of only backticks as a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from backends.errors import BackendRejected
from backends.values import INT64

# Typesense itself rejects a number with a letter, a backtick, or a point beside it where it is invalid.
_WHOLE_NUMBER = re.compile(r"(?<![^\s:=!<>\[(,.])[+-]?[0-9]{19,}(?![^\s\]),.])")
_HARMLESS = frozenset({"string", "string[]", "bool", "bool[]", "float", "float[]"})
"""Types of fields that accept any digits, as text or as a float, or for which Typesense reports an error."""

_ENDS = re.compile(r"\(|\)|&&|\|\|")


def has_long_numbers(filters: str) -> bool:
    """Whether a filter contains numbers for which the types of the fields must be known."""
    return _WHOLE_NUMBER.search(filters) is not None


def check_native_filter(filters: str, types: Mapping[str, str]) -> None:
    """Reject the adapter's own fields, and values that make Typesense hang.

    Args:
        types: The collection's fields; missing ones are treated as numbers.

    Raises:
        BackendRejected: The filter is rejected; with the position.
    """
    for start, expression in _expressions(filters):
        field, _, value = expression.partition(":")
        if field.strip().startswith("_"):
            message = f"The documents have no field {field.strip()!r} to filter by."
            raise BackendRejected("filters", message, position=start)
        if field.strip() == "id":
            if not value.lstrip(" =!").strip("` ") and "`" in value:
                place = start + expression.index("`")
                raise BackendRejected("filters", "An id was expected between the backticks.", position=place)
        elif types.get(field.strip()) not in _HARMLESS:
            for number in _WHOLE_NUMBER.finditer(expression):
                if len(number[0]) > 1000 or int(number[0]) not in INT64:
                    raise BackendRejected(
                        "filters", "A number of more than 64 bits is out of range.", position=start + number.start()
                    )


def _expressions(filters: str) -> Iterator[tuple[int, str]]:
    """The conditions of a filter, split where Typesense splits them, each with its position."""
    at = 0
    while at < len(filters):
        if (end := _ENDS.match(filters, at)) is not None:
            at = end.end()
            continue
        if filters[at] == " ":
            at += 1
            continue
        start, quoted = at, False
        at += 1
        while at < len(filters):
            quoted ^= filters[at] == "`"
            if not quoted and _ENDS.match(filters, at):
                break
            at += 1
        yield start, filters[start:at]
