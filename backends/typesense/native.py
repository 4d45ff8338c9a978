"""Filters in Typesense's own syntax that must not reach Typesense.

Some name the adapter's own fields. Some Typesense 0.24.1 never answers: it takes whole numbers apart without asking
whether they fit into 64 bits, and an id of nothing but backticks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from backends.errors import BackendRejected
from backends.values import INT64

# A number with a letter, a backtick or a point beside it is refused by Typesense itself where it cannot stand.
_WHOLE_NUMBER = re.compile(r"(?<![^\s:=!<>\[(,.])[+-]?[0-9]{19,}(?![^\s\]),.])")
_HARMLESS = frozenset({"string", "string[]", "bool", "bool[]", "float", "float[]"})
"""Types of fields that take any digits, as text or as a float, or answer that they do not."""

_ENDS = re.compile(r"\(|\)|&&|\|\|")


def has_long_numbers(filters: str) -> bool:
    """Tell whether a filter has numbers of which the fields must be known."""
    return _WHOLE_NUMBER.search(filters) is not None


def check_native_filter(filters: str, types: Mapping[str, str]) -> None:
    """Refuse the adapter's own fields, and what Typesense would not answer.

    Args:
        types: The collection's fields; those that are not there are taken for numbers.

    Raises:
        BackendRejected: With the position.
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
    """The conditions of a filter, cut where Typesense cuts them, each with its place."""
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
