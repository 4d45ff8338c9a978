"""Changes to any number of the ranking are detected: rows fail when it is removed or tripled.

For a limit, removing means that nothing may be looked up, and tripling that it hardly limits anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from tests.ranking.engine import Number, Shelf, constants, ranking_numbers, with_constant, with_number
from tests.ranking.rows import ROWS, Row

pytestmark = pytest.mark.slow

NOTHING: Mapping[str, Number] = {
    "half_life_days": math.inf,  # A divisor: without a half-life, news stay new.
    "reranking._MICROSECONDS_A_DAY": math.inf,  # Also a divisor.
    "spellings._MAX_LISTED": 1,  # The engine cannot search for no documents.
    "parser.MAX_QUERY_TERMS": 1,  # A query has at least one word.
}
"""Values that remove a number's effect where 0 does not."""

_WORK = "bounds work among many thousands of words; among these few the same is found"
_WRITTEN = "decides when documents are written: the shelves are"
_ONCE = "is read once by a process, or when documents are written: the shelves are"
_CACHED = "is in stems that a process computes once for each word"
_SIX = "would take a site in six languages of one script"
_ENDING = "no stemmer takes off more letters; it bounds work"
_LONG = "would take a query of more than nine words"
_DISTINCT = "is about searches with distinct, which the contract of the engines shows"
_SETTINGS = "bounds what a site's settings cost, and rows have none"
_PARTS = "would take a word of more than forty letters or twelve parts"
_ANSWERS = "is about quoted answers, which the tests of passages show"
_TWO_HUNDRED = "would take a site of more than two hundred pages, one in a language of its own"

UNSEEN: Mapping[tuple[str, str], str] = {
    ("variants._MAX_LISTED", "thrice"): _WORK,
    ("spellings._MAX_SPELLINGS", "thrice"): _WORK,
    ("variants._MAX_COMPOUNDS", "thrice"): _WORK,
    ("typos._MAX_SCANNED", "thrice"): _WORK,
    ("typos._MAX_SCANNED_PER_EDIT", "nothing"): _WORK,
    ("typos._MAX_SCANNED_PER_EDIT", "thrice"): _WORK,
    ("typos._MAX_COMPLETED", "nothing"): _WORK,
    ("typos._MAX_COMPLETED", "thrice"): _WORK,
    ("typos._MIN_PREFIX_LETTERS", "nothing"): _WORK,
    ("typos._MIN_PREFIX_LETTERS", "thrice"): _WORK,
    ("typos.MAX_INDEXED_CHARS", "nothing"): _WORK,
    ("typos.MAX_INDEXED_CHARS", "thrice"): _WORK,
    ("spellings.MAX_INDEXED_CHARS", "thrice"): _WORK,
    ("scoring.MAX_NEIGHBOR_PAIRS", "thrice"): _LONG,
    ("scoring.MAX_TITLES_BEGINNING", "thrice"): _WORK,
    ("relaxations._RARITY", "nothing"): _ANSWERS,
    ("relaxations._RARITY", "thrice"): _ANSWERS,
    ("search.FIRST_READ", "nothing"): _DISTINCT,
    ("search.FIRST_READ", "thrice"): _DISTINCT,
    ("search.MAX_VERSIONS", "nothing"): _DISTINCT,
    ("search.MAX_VERSIONS", "thrice"): _DISTINCT,
    ("languages._LETTERS_OF_ENDING", "nothing"): _ENDING,
    ("languages._LETTERS_OF_ENDING", "thrice"): _ENDING,
    ("languages._MAX_LIKELY_LANGUAGES", "thrice"): _SIX,
    ("languages._DOUBTFUL_SHARE", "nothing"): _TWO_HUNDRED,
    ("compounds._MIN_LETTERS", "nothing"): _WRITTEN,
    ("compounds._MIN_LETTERS", "thrice"): _WRITTEN,
    ("compounds._MAX_LETTERS", "nothing"): _WRITTEN,
    ("compounds._MAX_LETTERS", "thrice"): _WRITTEN,
    ("languages._SAMPLE_CHARS", "nothing"): _WRITTEN,
    ("languages._SAMPLE_CHARS", "thrice"): _WRITTEN,
    ("languages._MIN_STEM_LETTERS", "nothing"): _CACHED,
    ("languages._MIN_STEM_LETTERS", "thrice"): _CACHED,
    ("languages._VOTES_OF_LETTERS", "nothing"): _ONCE,
    ("languages._VOTES_OF_LETTERS", "thrice"): _ONCE,
    ("parser.MAX_JOINED_CHARS", "thrice"): _PARTS,
    ("parser.MAX_PARTS", "thrice"): _PARTS,
    ("terms.MAX_JOINED_CHARS", "thrice"): _PARTS,
    ("terms.MAX_PARTS", "thrice"): _PARTS,
    ("terms._MAX_READINGS", "thrice"): _SETTINGS,
    ("synonyms.MAX_USED_SYNONYMS", "nothing"): _SETTINGS,
    ("synonyms.MAX_USED_SYNONYMS", "thrice"): _SETTINGS,
    ("languages._MIN_TONAL_SHARE", "nothing"): _WRITTEN,
    ("languages._MIN_TONAL_SHARE", "thrice"): _WRITTEN,
    ("languages._MAX_WORD_LETTERS", "nothing"): _WRITTEN,
    ("languages._MAX_WORD_LETTERS", "thrice"): _WRITTEN,
}
"""Changes (``nothing``, ``thrice``) of numbers that no row detects, and why. None is in ``Ranking``."""


def changes(numbers: Mapping[str, Number]) -> list[tuple[str, str, Number]]:
    """Return the name, the kind of change, and the new value for every change of a number."""
    nothing = [(name, "nothing", NOTHING.get(name, type(value)(0))) for name, value in numbers.items()]
    return [*nothing, *((name, "thrice", 3 * value) for name, value in numbers.items())]


@pytest.fixture(scope="module")
def holding(shelves: Mapping[str, Shelf]) -> list[Row]:
    """Return the rows that hold: a failing row would seem to detect every change."""
    return [row for row in ROWS if row.holds(shelves[row.shelf].search(row.search))]


def check(name: str, change: str, is_seen: bool) -> None:
    if (name, change) in UNSEEN:
        assert not is_seen, f"a row detects {name} {change}: remove it from UNSEEN"
    else:
        assert is_seen, f"no row detects {name} {change}: add a row to rows.py that fails"


@pytest.mark.parametrize(("name", "change", "value"), changes(ranking_numbers()))
def test_rows_fail_when_a_ranking_number_is_removed_or_tripled(
    shelves: Mapping[str, Shelf], holding: list[Row], name: str, change: str, value: Number
) -> None:
    ranking = with_number(name, value)
    check(name, change, not all(row.holds(shelves[row.shelf].search(row.search, ranking)) for row in holding))


@pytest.mark.parametrize(("name", "change", "value"), changes(constants()))
def test_rows_fail_when_a_constant_is_removed_or_tripled(
    shelves: Mapping[str, Shelf], holding: list[Row], name: str, change: str, value: Number
) -> None:
    with with_constant(name, value):
        check(name, change, not all(row.holds(shelves[row.shelf].search(row.search)) for row in holding))


def test_exceptions_name_existing_numbers_and_changes() -> None:
    known = {*ranking_numbers(), *constants()}
    assert {*NOTHING, *(name for name, _ in UNSEEN)} <= known
    assert {change for _, change in UNSEEN} <= {"nothing", "thrice"}
