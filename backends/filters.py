"""The portable filter grammar: the expression tree every engine compiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ComparisonOperator = Literal["=", "!=", ">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field <operator> value``; lists match by any element. ``position`` is in characters from 0."""

    field: str
    operator: ComparisonOperator
    value: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Between:
    """``field low TO high``, both ends included."""

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
    """``field EXISTS``, ``field IS NULL`` or ``field IS EMPTY``."""

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
