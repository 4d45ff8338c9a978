"""The in-memory engine fulfills the whole contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.base import SearchBackend
from backends.registry import create_backend
from tests.backends.contract import BackendContract, Case, MatchingContract, case_fixture, page  # noqa: F401


@pytest.fixture
def backend() -> Iterator[SearchBackend]:
    backend = create_backend("memory://")
    yield backend
    backend.close()


@pytest.mark.slow  # The contract is also tested on disk.
class TestMemory(BackendContract, MatchingContract):
    pass


def test_last_words_of_a_very_long_query_are_searched(case: Case) -> None:
    case.add(
        page("wanted", "The walrus", "Of the otter and the seal."),
        *(page(f"other{number}", "The page", "It is one of the pages about this and that.") for number in range(5)),
    )
    start = "what is this, and who is it of, and is that what it was? " * 5

    assert case.ids(start + "walrus otter seal")[0] == "wanted"
    assert case.ids(start + "walrus ot")[0] == "wanted"
    assert case.ids(start)[0] != "wanted"
