"""Title search by word prefixes in the embedded engine: order and caching."""

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


def test_shorter_titles_come_first(case: Case) -> None:
    case.add(
        page("a", "How to install the program on old computers"),
        page("b", "Instruments and their makers of the town"),
        page("c", "Install notes"),
        page("d", "Instruments"),
        page("e", "Install the other program"),
    )

    assert titles(case, "inst")[:2] == ["Instruments", "Install notes"]


def test_title_with_the_exact_word_precedes_titles_with_longer_words(case: Case) -> None:
    case.add(page("a", "Linker"), page("b", "Links"), page("c", "Link"), page("d", "Linking"))

    assert titles(case, "link", 1) == ["Link"]


@pytest.mark.parametrize("typed", ["t", "tr", "tra"])
def test_title_caches_are_invalidated_by_the_next_write(case: Case, typed: str) -> None:
    case.add(page("a", "Tram map"), page("b", "Other"))
    assert titles(case, typed) == titles(case, typed) == ["Tram map"]

    case.add(page("a", "Bus map"), page("c", "Train times"))

    assert titles(case, typed) == ["Train times"]


def test_very_long_title_is_found_repeatedly(case: Case) -> None:
    long = "Regulation " + "x" * 5000
    case.add(page("a", long))

    assert titles(case, "reg") == titles(case, "reg") == [long]
