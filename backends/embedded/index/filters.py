"""Compiling filter trees to tantivy queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tantivy

from backends.embedded.index.schema import (
    DATE,
    FILTER_TERMS,
    ID,
    empty_term,
    equality_term,
    exists_term,
    number_column,
    number_term,
)
from backends.field_rules import instant_of, number_of
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.values import parse_number

_I64 = 2**63 - 1
Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should

_Compiled = tuple[tantivy.Query, bool]
"""A query, and whether the condition is its negation."""


class FilterCompiler:
    """Compiles filters for one index.

    Excluding a few documents is cheap; listing all other documents is expensive. Therefore, a condition that contains
    a negation is compiled to a query for the *excluded* documents, and negated as far up the tree as possible.
    """

    def __init__(self, schema: tantivy.Schema, dynamic_columns: Mapping[str, int]):
        self.schema = schema
        self.dynamic_columns = dynamic_columns

    def compile(self, node: Filter) -> tantivy.Query:
        """Compile a filter to the query for the documents that meet it.

        Raises:
            BackendRejected: A value cannot be compared by size.
        """
        query, negated = self._compiled(node)
        return tantivy.Query.boolean_query([(Must, tantivy.Query.all_query()), (MustNot, query)]) if negated else query

    def _compiled(self, node: Filter) -> _Compiled:
        if isinstance(node, Not):
            query, negated = self._compiled(node.operand)
            return query, not negated
        if isinstance(node, And):
            return _all([self._compiled(operand) for operand in _operands(node)])
        if isinstance(node, Or):
            # A or B is not (not A and not B), so negations in A or B stay lists of excluded documents.
            query, negated = _all([
                (query, not negated) for query, negated in map(self._compiled, _operands(node))
            ])  # fmt: skip
            return query, not negated
        if isinstance(node, Comparison) and node.operator == "!=":
            return self._equal(node.field, node.value, node.position), True
        return self._condition(node), False

    def _condition(self, node: OneOf | Between | Comparison | Presence) -> tantivy.Query:
        if isinstance(node, OneOf) and node.field == ID:
            return tantivy.Query.term_set_query(self.schema, ID, list(node.values))
        if isinstance(node, OneOf):
            return _any([self._equal(node.field, value, node.position) for value in dict.fromkeys(node.values)])
        if isinstance(node, Between):
            return self._range(node.field, node.position, node.low, node.high, True, True)
        if isinstance(node, Comparison):
            return self._comparison(node)
        if node.test == "exists":
            return self._term(exists_term(node.field))
        if node.test == "empty":
            return self._term(empty_term(node.field))
        # ``IS NULL`` selects nothing: fields that are null are not stored.
        return tantivy.Query.empty_query()

    def _comparison(self, node: Comparison) -> tantivy.Query:
        name, value, position = node.field, node.value, node.position
        match node.operator:
            case ">":
                return self._range(name, position, value, None, False, True)
            case ">=":
                return self._range(name, position, value, None, True, True)
            case "<":
                return self._range(name, position, None, value, True, False)
            case "<=":
                return self._range(name, position, None, value, True, True)
            case _:
                return self._equal(name, value, position)

    def _equal(self, name: str, value: str, position: int) -> tantivy.Query:
        if name == ID:
            return tantivy.Query.term_query(self.schema, ID, value)
        if name == DATE:
            instant = _bounded(instant_of(value, position))
            return tantivy.Query.term_query(self.schema, DATE, instant)
        choices = [self._term(equality_term(name, value))]
        number = parse_number(value)
        if number is not None:
            choices.append(self._term(number_term(name, number)))
        return _any(choices)

    def _range(
        self, name: str, position: int, low: str | None, high: str | None, with_low: bool, with_high: bool
    ) -> tantivy.Query:
        if name == DATE:
            bounds = [None if bound is None else _bounded(instant_of(bound, position)) for bound in (low, high)]
            return tantivy.Query.range_query(
                self.schema, DATE, tantivy.FieldType.Integer, bounds[0], bounds[1], with_low, with_high
            )
        numbers = [None if bound is None else float(number_of(name, bound, position)) for bound in (low, high)]
        dynamic_column = self.dynamic_columns.get(name)
        if dynamic_column is None:
            return tantivy.Query.empty_query()
        return tantivy.Query.range_query(
            self.schema,
            number_column(dynamic_column),
            tantivy.FieldType.Float,
            numbers[0],
            numbers[1],
            with_low,
            with_high,
        )

    def _term(self, filter_term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, FILTER_TERMS, filter_term)


def _bounded(instant: int) -> int:
    """Clamp an instant to the range of the date column."""
    return max(-_I64, min(_I64, instant))


def _operands(node: And | Or) -> list[Filter]:
    """Return the operands, with nested operands of the same type flattened."""
    operands: list[Filter] = []
    for operand in node.operands:
        operands += _operands(operand) if isinstance(operand, And | Or) and type(operand) is type(node) else [operand]
    return operands


def _all(conditions: Sequence[_Compiled]) -> _Compiled:
    """Combine conditions by AND."""
    required = [query for query, negated in conditions if not negated]
    excluded = [query for query, negated in conditions if negated]
    if not required:
        return _any(excluded), True
    if not excluded and len(required) == 1:
        return required[0], False
    return tantivy.Query.boolean_query(
        [(Must, query) for query in required] + [(MustNot, query) for query in excluded]
    ), False


def _any(choices: list[tantivy.Query]) -> tantivy.Query:
    if not choices:
        return tantivy.Query.empty_query()
    if len(choices) == 1:
        return choices[0]
    return tantivy.Query.boolean_query([(Should, choice) for choice in choices])
