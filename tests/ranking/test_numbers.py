"""No number of the ranking can be lost or skewed unseen: for each, rows fail without it and with three times as much.

Where a number stands for a bound, none at all means that nothing may be looked up, and three times as much that the
bound is hardly one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from tests.ranking.engine import Number, Shelf, constants, ranking_numbers, with_constant, with_number
from tests.ranking.rows import ROWS, Row

NOTHING: Mapping[str, Number] = {
    "half_life_days": math.inf,  # A time to divide by: without a half-life, news stay new.
    "search._MICROSECONDS_A_DAY": math.inf,  # The same.
    "queries.MAX_UNITS": 1,  # A query has at least one word.
}
"""What a number is set to where 0 is not what nothing means."""

_OF_WORK = "bounds work in indexes of many thousand words; in small ones the same is found"
_WHEN_WRITTEN = "acts when documents are written, and in no query of these"

UNSEEN: Mapping[tuple[str, str], str] = {}
"""Number and change (``nothing``, ``thrice``) that no row can show, and why."""

def changes(numbers: Mapping[str, Number]) -> list[tuple[str, str, Number]]:
    """Every number, the name of what is done to it, and the value it is given."""
    nothing = [(name, "nothing", NOTHING.get(name, type(value)(0))) for name, value in numbers.items()]
    return [*nothing, *((name, "thrice", 3 * value) for name, value in numbers.items())]


def fails(shelves: Mapping[str, Shelf], row: Row, *ranking: object) -> bool:
    return not row.holds(shelves[row.shelf].search(row.search, *ranking))


def demand_a_row(name: str, change: str, failing: bool) -> None:
    if (name, change) in UNSEEN:
        assert not failing, f"{name} is seen now: take {(name, change)} from UNSEEN"
    else:
        assert failing, f"{name}: every row holds with it changed ({change}); add one to rows.py"


@pytest.mark.parametrize(("name", "change", "value"), changes(ranking_numbers()))
def test_rows_fail_without_a_number_and_with_three_times_as_much(
    shelves: Mapping[str, Shelf], name: str, change: str, value: Number
) -> None:
    ranking = with_number(name, value)
    demand_a_row(name, change, any(fails(shelves, row, ranking) for row in ROWS))


@pytest.mark.parametrize(
    ("name", "change", "value"), changes(constants())
)
def test_rows_fail_with_another_constant(
    shelves: Mapping[str, Shelf], name: str, change: str, value: Number
) -> None:
    with with_constant(name, value):
        demand_a_row(name, change, any(fails(shelves, row) for row in ROWS))


def test_the_exceptions_are_numbers_of_the_engine() -> None:
    known = {*ranking_numbers(), *constants()}
    assert {*NOTHING, *(name for name, _ in UNSEEN)} <= known
    assert {change for _, change in UNSEEN} <= {"nothing", "thrice"}
