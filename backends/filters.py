"""The portable filter grammar: the expression tree that every engine compiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from backends.errors import BackendRejected

ComparisonOperator = Literal["=", "!=", ">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field <operator> value``; a list matches by any element. ``position`` counts characters from 0."""

    field: str
    operator: ComparisonOperator
    value: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Between:
    """``field low TO high``, including both ends."""

    field: str
    low: str
    high: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class OneOf:
    """``field IN [values]``."""

    field: str
    values: tuple[str, ...]
    position: int = 0


@dataclass(frozen=True, slots=True)
class Presence:
    """``field EXISTS``, ``field IS NULL``, or ``field IS EMPTY``."""

    field: str
    test: Literal["exists", "null", "empty"]
    position: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    operand: Filter


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Filter, ...]


Filter = Comparison | Between | OneOf | Presence | Not | And | Or


def all_of(conditions: Sequence[Filter]) -> Filter | None:
    """Combine conditions with AND; ``None`` without conditions."""
    return And(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)


def any_of(conditions: Sequence[Filter]) -> Filter | None:
    """Combine conditions with OR; ``None`` without conditions."""
    return Or(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)


NO_DOCUMENT: Filter = OneOf("id", ("",))
"""A condition that no document meets, because no document has an empty id."""


MAX_FILTER_LENGTH = 2000
"""Maximum length of an expression, in characters."""

MAX_FILTER_DEPTH = 50
"""Maximum nesting depth of parentheses and ``NOT``."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<operator>!=|>=|<=|=|>|<)
    | (?P<mark>[()\[\],])
    | (?P<word>[\w\-/.:+@]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[\w\-/.:+@]+")
_ESCAPE = re.compile(r"\\([\"'\\])")
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "TO", "EXISTS", "IS", "NULL", "EMPTY"})


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["value", "operator", "mark", "keyword", "end"]
    text: str
    position: int


def parse_filter(text: str) -> Filter:
    """Parse an expression in Meilisearch's grammar.

    Keywords are written in capitals. Fields and values may be quoted with ``"`` or ``'``, and inside quotes
    ``\\`` escapes a quote or itself.

    Raises:
        BackendRejected: The expression is malformed, longer than :data:`MAX_FILTER_LENGTH`, or nested
            deeper than :data:`MAX_FILTER_DEPTH`; with the position of the first invalid character.
    """
    if len(text) > MAX_FILTER_LENGTH:
        raise _reject(f"The filter is longer than {MAX_FILTER_LENGTH} characters.", MAX_FILTER_LENGTH)
    return _Parser(_tokens(text)).expression()


def fields_of(expression: Filter) -> dict[str, int]:
    """Return the fields that an expression names, each with the position of its first mention."""
    positions: dict[str, int] = {}
    pending: list[Filter] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Not):
            pending.append(node.operand)
        elif isinstance(node, And | Or):
            pending.extend(node.operands)
        else:
            positions[node.field] = min(node.position, positions.get(node.field, node.position))
    return positions


def count_values(expression: Filter) -> int:
    """Return the number of values that an expression compares fields with; a test without a value counts as one."""
    match expression:
        case Not(operand):
            return count_values(operand)
        case And(operands) | Or(operands):
            return sum(map(count_values, operands))
        case OneOf(_, values):
            return max(1, len(values))
        case Between():
            return 2
        case _:
            return 1


def _quoted(text: str) -> str:
    """``"opening hours"`` -> ``'opening hours'``; a text that needs no quotes stays as it is."""
    if _WORD.fullmatch(text) and text not in _KEYWORDS:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _reject(message: str, position: int) -> BackendRejected:
    return BackendRejected("filters", message, position=position)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    offset = 0
    while True:
        match = _TOKEN.match(text, offset)
        if match is None:
            rest = text[offset:].lstrip()
            position = len(text) - len(rest)
            if not rest:
                tokens.append(_Token("end", "", len(text)))
                return tokens
            if rest[0] in "\"'":
                raise _reject("A quote is not closed.", position)
            raise _reject(f"Unexpected {rest[0]!r}; quote values that contain such characters.", position)
        group = match.lastgroup or ""
        raw, position = match[group], match.start(group)
        if group == "quoted":
            tokens.append(_Token("value", _ESCAPE.sub(r"\1", raw[1:-1]), position))
        elif group == "word":
            tokens.append(_Token("keyword" if raw in _KEYWORDS else "value", raw, position))
        elif group == "operator":
            tokens.append(_Token("operator", raw, position))
        else:
            tokens.append(_Token("mark", raw, position))
        offset = match.end()


class _Parser:
    """Recursive-descent parser over the tokens; ``depth`` limits the recursion."""

    def __init__(self, tokens: list[_Token]):
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    def expression(self) -> Filter:
        result = self.disjunction()
        token = self.peek()
        if token.kind != "end":
            hint = " Write keywords in capitals." if token.text.upper() in _KEYWORDS else ""
            raise _reject(f"Expected AND or OR before {token.text!r}.{hint}", token.position)
        return result

    def disjunction(self) -> Filter:
        operands = [self.conjunction()]
        while self.accept("OR"):
            operands.append(self.conjunction())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def conjunction(self) -> Filter:
        operands = [self.negation()]
        while self.accept("AND"):
            operands.append(self.negation())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def negation(self) -> Filter:
        token = self.peek()
        if token.kind == "keyword" and token.text == "NOT":
            self.index += 1
            return Not(self.nested(token, self.negation))
        if token.kind == "mark" and token.text == "(":
            self.index += 1
            result = self.nested(token, self.disjunction)
            self.expect_mark(")")
            return result
        return self.condition()

    def nested(self, opener: _Token, rule: Callable[[], Filter]) -> Filter:
        self.depth += 1
        if self.depth > MAX_FILTER_DEPTH:
            raise _reject(f"The filter is nested deeper than {MAX_FILTER_DEPTH}.", opener.position)
        result = rule()
        self.depth -= 1
        return result

    def condition(self) -> Filter:
        name = self.value("a field name")
        token = self.next()
        if token.kind == "operator":
            operator = cast(ComparisonOperator, token.text)
            return Comparison(name.text, operator, self.compared_value(name.text, operator), name.position)
        if token.kind == "value":
            if not self.accept("TO"):
                raise _reject("Expected an operator: =, !=, >, >=, <, <=, TO, IN, EXISTS, or IS.", token.position)
            return Between(name.text, token.text, self.value("a value").text, name.position)
        if token.kind == "keyword":
            negated = token.text == "NOT"
            if negated:
                token = self.next()
            result: Filter | None = None
            if token.text == "IN" and token.kind == "keyword":
                result = OneOf(name.text, self.values(), name.position)
            elif token.text == "EXISTS" and token.kind == "keyword":
                result = Presence(name.text, "exists", name.position)
            elif token.text == "IS" and token.kind == "keyword" and not negated:
                negated = self.accept("NOT")
                token = self.next()
                if token.kind == "keyword" and token.text == "NULL":
                    result = Presence(name.text, "null", name.position)
                elif token.kind == "keyword" and token.text == "EMPTY":
                    result = Presence(name.text, "empty", name.position)
                else:
                    raise _reject("Expected NULL or EMPTY after IS.", token.position)
            if result is not None:
                return Not(result) if negated else result
        raise _reject("Expected an operator: =, !=, >, >=, <, <=, TO, IN, EXISTS, or IS.", token.position)

    def compared_value(self, name: str, operator: str) -> str:
        token = self.peek()
        if token.kind == "operator":
            following = self.tokens[self.index + 1]
            example = f"{_quoted(name)} {operator} {_quoted(following.text if following.kind == 'value' else 'value')}"
            raise _reject(f"Expected a value after {operator}, not {token.text}. Write {example}.", token.position)
        if token.kind == "end":
            example = f"{_quoted(name)} {operator} value"
            raise _reject(f"Expected a value after {operator}. Write {example}.", token.position)
        return self.value("a value").text

    def values(self) -> tuple[str, ...]:
        self.expect_mark("[")
        values: list[str] = []
        while not (self.peek().kind == "mark" and self.peek().text == "]"):
            values.append(self.value("a value").text)
            if not (self.peek().kind == "mark" and self.peek().text == ","):
                break
            self.index += 1
        self.expect_mark("]")
        return tuple(values)

    def value(self, expectation: str) -> _Token:
        token = self.next()
        if token.kind == "keyword":
            raise _reject(f"Expected {expectation}; put {token.text} in quotes to use it as text.", token.position)
        if token.kind != "value":
            raise _reject(f"Expected {expectation}.", token.position)
        return token

    def expect_mark(self, mark: str) -> None:
        token = self.next()
        if token.kind != "mark" or token.text != mark:
            raise _reject(f"Expected {mark!r}.", token.position)

    def accept(self, keyword: str) -> bool:
        token = self.peek()
        if token.kind == "keyword" and token.text == keyword:
            self.index += 1
            return True
        return False

    def peek(self) -> _Token:
        return self.tokens[self.index]

    def next(self) -> _Token:
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
        return token
