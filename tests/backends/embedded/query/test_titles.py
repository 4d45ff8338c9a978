"""Titles by the beginnings of their words, in the embedded engine: which come first, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.base import SearchBackend
from backends.registry import create_backend
from tests.backends.contract import Case, case_fixture, page  # noqa: F401


@pytest.fixture
def backend() -> Iterator[SearchBackend]:
    backend = create_backend("memory://")
    yield backend
    backend.close()


def titles(case: Case, text: str, limit: int = 8) -> list[str]:
    return [match.title for match in case.backend.find_titles(case.index, text, limit)]


def test_shorter_titles_come_first_whatever_their_words(case: Case) -> None:
    case.add(
        page("a", "How to install the program on old computers"),
        page("b", "Instruments and their makers of the town"),
        page("c", "Install notes"),
        page("d", "Instruments"),
        page("e", "Install the other program"),
    )

    assert titles(case, "inst")[:2] == ["Instruments", "Install notes"]


def test_a_title_with_the_word_as_typed_comes_before_one_with_a_longer_word(case: Case) -> None:
    case.add(page("a", "Linker"), page("b", "Links"), page("c", "Link"), page("d", "Linking"))

    assert titles(case, "link", 1) == ["Link"]


@pytest.mark.parametrize("typed", ["t", "tr", "tra"])
def test_what_is_remembered_of_beginnings_and_titles_ends_with_the_next_write(case: Case, typed: str) -> None:
    case.add(page("a", "Tram map"), page("b", "Other"))
    assert titles(case, typed) == titles(case, typed) == ["Tram map"]

    case.add(page("a", "Bus map"), page("c", "Train times"))

    assert titles(case, typed) == ["Train times"]


def test_a_very_long_title_is_found_each_time(case: Case) -> None:
    long = "Regulation " + "x" * 5000
    case.add(page("a", long))

    assert titles(case, "reg") == titles(case, "reg") == [long]
