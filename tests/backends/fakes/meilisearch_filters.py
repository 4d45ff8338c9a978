"""Filters of the fake Meilisearch, whose comparison of text and numbers differs slightly from ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence, fields_of


def names_in(tree: Filter) -> list[str]:
    return list(fields_of(tree))


def holds(tree: Filter, document: Mapping[str, Any]) -> bool:
    match tree:
        case Not():
            return not holds(tree.operand, document)
        case And():
            return all(holds(each, document) for each in tree.operands)
        case Or():
            return any(holds(each, document) for each in tree.operands)
        case Presence(test="exists"):
            return tree.field in document
        case Presence(test="null"):
            return tree.field in document and document[tree.field] is None
        case Presence():
            return tree.field in document and document[tree.field] in ("", [], {})
    value = document.get(tree.field)
    # An empty text does not count as a value of a field.
    values = [each for each in (value if isinstance(value, list) else [value]) if each not in (None, "")]
    match tree:
        case OneOf():
            return any(_equal(each, wanted) for each in values for wanted in tree.values)
        case Between():
            return any(_compare(each, tree.low, ">=") and _compare(each, tree.high, "<=") for each in values)
        case Comparison(operator="="):
            return any(_equal(each, tree.value) for each in values)
        case Comparison(operator="!="):
            return not any(_equal(each, tree.value) for each in values)
        case Comparison():
            return any(_compare(each, tree.value, tree.operator) for each in values)
    raise AssertionError(tree)


def _equal(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted.casefold() == str(value).casefold()
    if isinstance(value, str):
        return value.casefold().strip() == wanted.casefold().strip()
    number = _number(wanted)
    return number is not None and float(value) == number


def _compare(value: Any, bound: str, operator: str) -> bool:
    left, right = _sides(value, bound)
    if left is None or right is None:
        return False
    return {">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[operator]


def _sides(value: Any, bound: str) -> tuple[Any, Any]:
    """Return a value and a bound in comparable form: as lower-case texts or as numbers."""
    if isinstance(value, str | bool):
        return str(value).casefold(), bound.casefold()
    return float(value), _number(bound)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
