"""Converts Algolia's filters to conditions.

Source: https://www.algolia.com/doc/api-reference/api-parameters/filters/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from app.errors import ApiError, field_error
from backends.filters import (
    MAX_FILTER_DEPTH,
    NO_DOCUMENT,
    And,
    Between,
    Comparison,
    ComparisonOperator,
    Filter,
    Not,
    Or,
    all_of,
    any_of,
)
from backends.query import FieldKinds
from backends.standard_fields import STANDARD_FIELDS

_NAMES = {"objectID": ("id",), "language": ("language", "lang")}
"""Maps Algolia's and DocSearch's field names to ours.

Crawled pages have ``lang``; records imported from Algolia keep their ``language``.
"""
_QUOTED = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_KEYWORD = re.compile(r"\s*(?:(AND|OR|NOT)\b|([()]))")
_TERM = re.compile(rf"\s*(?P<field>{_QUOTED}|[\w.-]+)\s*(?P<operator><=|>=|!=|[:=<>])\s*(?P<value>{_QUOTED}|[^\s()]+)")
_END = re.compile(rf"\s+TO\s+(?P<high>{_QUOTED}|[^\s()]+)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def read_filters(parameters: dict[str, object], kinds: FieldKinds) -> Filter | None:
    """Combine ``filters``, ``facetFilters``, and ``numericFilters`` into one condition, or ``None`` without filters.

    As in Algolia, a condition on a field that doesn't exist in any document matches nothing.

    Raises:
        ApiError: 400 for an invalid expression.
    """
    conditions: list[Filter] = []
    if text := str(parameters["filters"]).strip():
        conditions.append(_Expression(text, kinds).read())
    conditions += _listed(parameters["facetFilters"], lambda text: _facet(text, kinds))
    conditions += _listed(parameters["numericFilters"], lambda text: _Expression(text, kinds).read())
    return all_of(conditions)


def _listed(value: object, read: Callable[[str], Filter]) -> list[Filter]:
    """Return conditions that must all match. A nested list becomes one condition whose parts are alternatives."""
    members = cast("Sequence[str | Sequence[str]]", [value] if isinstance(value, str) else value)
    conditions: list[Filter] = []
    for member in members:
        texts = [member] if isinstance(member, str) else member
        either = [read(text) for text in texts if text.strip()]
        if (condition := any_of(either)) is not None:
            conditions.append(condition)
    return conditions


def _facet(text: str, kinds: FieldKinds) -> Filter:
    name, colon, value = text.partition(":")
    if not colon:
        raise _unreadable("facetFilters", text)
    if value.startswith("-"):
        return Not(_condition(name.strip(), "=", value[1:], kinds))
    return _condition(name.strip(), "=", value.removeprefix("\\"), kinds)


def _condition(name: str, operator: str, value: str, kinds: FieldKinds) -> Filter:
    return _on_fields(name, kinds, lambda field: Comparison(field, cast(ComparisonOperator, operator), value))


def _on_fields(name: str, kinds: FieldKinds, condition: Callable[[str], Filter]) -> Filter:
    """Return a filter that requires the condition on any of the fields that a name refers to."""
    return any_of([condition(field) for field in fields_named(name, kinds)]) or NO_DOCUMENT


def fields_named(name: str, kinds: FieldKinds) -> tuple[str, ...]:
    """Return the fields of a site's documents for one of Algolia's or DocSearch's names."""
    fields = _NAMES.get(name, (name,))
    return tuple(field for field in fields if field in STANDARD_FIELDS or field in kinds)


def _unreadable(parameter: str, text: str) -> ApiError:
    return field_error(parameter, "invalid", f"cannot be read at {text.strip()[:80]!r}")


class _Expression:
    """Parser of ``filters``: terms with AND, OR, NOT, and parentheses."""

    def __init__(self, text: str, kinds: FieldKinds):
        self._text = text
        self._kinds = kinds
        self._at = 0

    def read(self) -> Filter:
        """Parse the whole expression.

        Raises:
            ApiError: 400.
        """
        condition = self._either(0)
        if self._text[self._at :].strip():
            raise self._error()
        return condition

    def _either(self, depth: int) -> Filter:
        members = [self._all(depth)]
        while self._accept("OR"):
            members.append(self._all(depth))
        return members[0] if len(members) == 1 else Or(tuple(members))

    def _all(self, depth: int) -> Filter:
        members = [self._one(depth)]
        while self._accept("AND"):
            members.append(self._one(depth))
        return members[0] if len(members) == 1 else And(tuple(members))

    def _one(self, depth: int) -> Filter:
        if depth > MAX_FILTER_DEPTH:
            raise self._error()
        if self._accept("NOT"):
            return Not(self._one(depth + 1))
        if self._accept("("):
            condition = self._either(depth + 1)
            if not self._accept(")"):
                raise self._error()
            return condition
        return self._term()

    def _term(self) -> Filter:
        match = _TERM.match(self._text, self._at)
        if match is None:
            raise self._error()
        self._at = match.end()
        name, operator, value = _unquoted(match["field"]), match["operator"], _unquoted(match["value"])
        if operator != ":":
            return _condition(name, operator, value, self._kinds)
        end = _END.match(self._text, self._at)
        if end is None:
            return _condition(name, "=", value, self._kinds)
        self._at = end.end()
        high = _unquoted(end["high"])
        return _on_fields(name, self._kinds, lambda field: Between(field, value, high))

    def _accept(self, keyword: str) -> bool:
        match = _KEYWORD.match(self._text, self._at)
        if match is None or keyword not in match.groups():
            return False
        self._at = match.end()
        return True

    def _error(self) -> ApiError:
        return _unreadable("filters", self._text[self._at :])


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] in "\"'" else text
