"""Matching a document against a filter tree in Python, with the same result as on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from backends.field_rules import check_filter, instant_of, number_of
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.query import FieldKinds
from backends.values import fold_value, parse_instant, parse_number

Predicate = Callable[[Mapping[str, Any]], bool]
"""Returns whether a document, given its fields, meets a condition."""

_ID, _DATE = "id", "date"
_BY_SIZE: Mapping[str, Callable[[Any, Any], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


def compile_matching(expression: Filter, kinds: FieldKinds) -> Predicate:
    """Compile a filter to a predicate on documents.

    Raises:
        BackendRejected: A field is unknown, or a value cannot be compared by size.
    """
    check_filter(expression, kinds)
    return _compile(expression)


def _compile(node: Filter) -> Predicate:
    match node:
        case Not(operand):
            matches = _compile(operand)
            return lambda document: not matches(document)
        case And(operands):
            every = [_compile(operand) for operand in operands]
            return lambda document: all(matches(document) for matches in every)
        case Or(operands):
            some = [_compile(operand) for operand in operands]
            return lambda document: any(matches(document) for matches in some)
        case Presence(name, test):
            return _presence(name, test)
        case OneOf(name, values, position):
            return _equality(name, values, position)
        case Between(name, low, high, position):
            return _by_size(name, [(">=", low), ("<=", high)], position)
        case Comparison(name, "=", value, position):
            return _equality(name, [value], position)
        case Comparison(name, "!=", value, position):
            equal = _equality(name, [value], position)
            return lambda document: not equal(document)
        case Comparison(name, operator, value, position):
            return _by_size(name, [(operator, value)], position)


def _presence(name: str, test: str) -> Predicate:
    match test:
        case "exists":
            return lambda document: name in document
        case "empty":
            return lambda document: document.get(name) in ("", [])
        case _:
            return lambda document: False  # The service removes null fields, so no document has one.


def _equality(name: str, values: Iterable[str], position: int) -> Predicate:
    if name == _ID:
        ids = frozenset(values)
        return lambda document: document[_ID] in ids
    if name == _DATE:
        instants = frozenset(instant_of(value, position) for value in values)
        return lambda document: _instant_of(document) in instants
    texts = frozenset(fold_value(value) for value in values)
    numbers = frozenset(number for number in map(parse_number, values) if number is not None)

    def equals(item: Any) -> bool:
        if isinstance(item, str):
            return fold_value(item) in texts
        if isinstance(item, bool):
            return ("true" if item else "false") in texts
        return item in numbers

    return lambda document: any(map(equals, _items(document.get(name))))


def _by_size(name: str, bounds: Iterable[tuple[str, str]], position: int) -> Predicate:
    if name == _DATE:
        instants = [(_BY_SIZE[operator], instant_of(value, position)) for operator, value in bounds]

        def is_between(document: Mapping[str, Any]) -> bool:
            instant = _instant_of(document)
            return instant is not None and all(compare(instant, bound) for compare, bound in instants)

        return is_between
    numbers = [(_BY_SIZE[operator], float(number_of(name, value, position))) for operator, value in bounds]

    def holds(item: Any) -> bool:
        return (
            isinstance(item, int | float)
            and not isinstance(item, bool)
            and all(compare(float(item), bound) for compare, bound in numbers)
        )

    return lambda document: any(map(holds, _items(document.get(name))))


def _instant_of(document: Mapping[str, Any]) -> int | None:
    date = document.get(_DATE)
    return None if date is None else parse_instant(date)


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]
