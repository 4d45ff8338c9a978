"""Compiling the portable filters to Typesense's syntax, and checking filters in that syntax.

Typesense 0.24 has no ``NOT`` and no test for presence, and its equality ignores punctuation. So equality, presence, and
emptiness are tested with the tokens in ``_terms``, comparisons with the 64-bit fields beside each number
(:mod:`backends.typesense.schema`), and ``NOT`` is pushed down to the conditions. Typesense receives only field names
that the service has checked, tokens of letters and digits, and integers; never a caller's value.

Some filters in Typesense's own syntax must not reach it: filters on the adapter's own fields, and filters that make
Typesense 0.24.1 hang, which parses whole numbers without checking that they fit into 64 bits, and takes an ID of only
backticks as a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from backends.errors import BackendRejected
from backends.field_rules import instant_of, number_of
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.query import FieldKind, FieldKinds
from backends.servers.documents import number_term, ordered_number, term, text_term
from backends.values import INT64, parse_filter_instant, parse_number

NOTHING = f"_terms:={term('', 'never', '')}"
"""A filter that no document matches."""

EVERYTHING = f"_terms:!={term('', 'never', '')}"
"""A filter that every document matches."""

_OPPOSITES: Mapping[str, Literal[">", ">=", "<", "<="]] = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}


class FilterCompiler:
    """Compiles one expression for one collection.

    Args:
        kinds: The custom fields of the index.
        types: The collection's fields; a comparison with a missing field matches no document.
    """

    def __init__(self, kinds: FieldKinds, types: Mapping[str, str]):
        self._kinds = kinds
        self._types = types

    def compile(self, node: Filter, *, negated: bool = False) -> str:
        """Compile the expression or its negation.

        Raises:
            BackendRejected: A value cannot be compared with its field.
        """
        if isinstance(node, Not):
            return self.compile(node.operand, negated=not negated)
        if isinstance(node, And | Or):
            joint = "&&" if isinstance(node, And) != negated else "||"
            return _join(joint, [self.compile(operand, negated=negated) for operand in node.operands])
        match node:
            case Comparison(operator="="):
                return self._terms(self._equal(node.field, node.value), negated)
            case Comparison(operator="!="):
                return self._terms(self._equal(node.field, node.value), not negated)
            case OneOf():
                tokens = [token for value in node.values for token in self._equal(node.field, value)]
                return self._terms(tokens, negated)
            case Presence(test="exists"):
                return self._terms([term(node.field, "exists", "")], negated)
            case Presence(test="empty"):
                return self._terms([term(node.field, "empty", "")], negated)
            case Presence():
                return self._terms([], negated)
            case Between():
                return self._between(node, negated)
            case _:
                return self._compare(node, negated)

    def _terms(self, tokens: list[str], negated: bool) -> str:
        if not tokens:
            return EVERYTHING if negated else NOTHING
        return f"_terms:{'!=' if negated else '='}[{','.join(dict.fromkeys(tokens))}]"

    def _equal(self, field: str, value: str) -> list[str]:
        if field == "id":
            return [term("id", "exact", value)]
        tokens = [text_term(field, value)]
        if field == "date":
            instant = parse_filter_instant(value)
            if instant is not None:
                tokens.append(term("date", "instant", str(instant)))
        elif (number := parse_number(value)) is not None:
            tokens.append(number_term(field, number))
        return tokens

    def _bound(self, field: str, value: str, position: int) -> int:
        return instant_of(value, position) if field == "date" else ordered_number(number_of(field, value, position))

    def _compare(self, node: Comparison, negated: bool) -> str:
        bound = self._bound(node.field, node.value, node.position)
        operator = node.operator if not negated else _OPPOSITES[node.operator]
        # A list exceeds a bound if its largest item does, and the negation also refers to the largest item.
        edge = "_hi_" if node.operator in (">", ">=") else "_lo_"
        conditions = [f"{name}:{operator}{bound}" for name in self._present(f"_n_{node.field}", edge + node.field)]
        return self._with_lack(node.field, conditions, negated)

    def _between(self, node: Between, negated: bool) -> str:
        low = self._bound(node.field, node.low, node.position)
        high = self._bound(node.field, node.high, node.position)
        if low > high:
            return EVERYTHING if negated else NOTHING
        single, several = f"_n_{node.field}", f"_l_{node.field}"
        if not negated:
            return self._with_lack(node.field, [f"{n}:[{low}..{high}]" for n in self._present(single, several)], False)
        if FieldKind.NUMBER_LIST in self._kinds.get(node.field, frozenset()):
            raise BackendRejected(
                "filters",
                f"This search engine cannot negate a range of {node.field!r}, which contains lists of numbers.",
                position=node.position,
            )
        outside = [f"{n}:<{low} || {n}:>{high}" for n in self._present(single)]
        return self._with_lack(node.field, outside, True)

    def _present(self, *names: str) -> list[str]:
        return [name for name in names if name in self._types]

    def _with_lack(self, field: str, conditions: list[str], negated: bool) -> str:
        """Combine conditions by OR. A negation also matches the documents without a number to compare."""
        if negated:
            kind = "exists" if field == "date" else "has number"
            conditions = [f"_terms:!={term(field, kind, '')}", *conditions]
        return _join("||", conditions) if conditions else NOTHING


def _join(joint: str, parts: list[str]) -> str:
    if not parts:
        return EVERYTHING if joint == "&&" else NOTHING
    return parts[0] if len(parts) == 1 else "(" + f" {joint} ".join(f"({part})" for part in parts) + ")"


# Typesense itself rejects a number with a letter, a backtick, or a point beside it where it is invalid.
_WHOLE_NUMBER = re.compile(r"(?<![^\s:=!<>\[(,.])[+-]?[0-9]{19,}(?![^\s\]),.])")
_HARMLESS = frozenset({"string", "string[]", "bool", "bool[]", "float", "float[]"})
"""Types of fields that accept any digits, as text or as a float, or for which Typesense reports an error."""

_ENDS = re.compile(r"\(|\)|&&|\|\|")


def has_long_numbers(filters: str) -> bool:
    """Whether a filter contains numbers so long that checking them requires the fields' types."""
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
                position = start + expression.index("`")
                raise BackendRejected("filters", "Expected an ID between the backticks.", position=position)
        elif types.get(field.strip()) not in _HARMLESS:
            for number in _WHOLE_NUMBER.finditer(expression):
                if len(number[0]) > 1000 or int(number[0]) not in INT64:
                    raise BackendRejected(
                        "filters", "A number of more than 64 bits is out of range.", position=start + number.start()
                    )


def _expressions(filters: str) -> Iterator[tuple[int, str]]:
    """Yield the conditions of a filter, split where Typesense splits them, each with its position."""
    offset = 0
    while offset < len(filters):
        if (end := _ENDS.match(filters, offset)) is not None:
            offset = end.end()
            continue
        if filters[offset] == " ":
            offset += 1
            continue
        start, quoted = offset, False
        offset += 1
        while offset < len(filters):
            quoted ^= filters[offset] == "`"
            if not quoted and _ENDS.match(filters, offset):
                break
            offset += 1
        yield start, filters[start:offset]
