"""The learned order of hits, page by page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.services.search.learned_order import MAX_POSITIONS_MOVED, learned_page, widen_page
from backends.base import Hit
from backends.query import SearchQuery, SearchSettings, SortKey

GAINS = st.dictionaries(st.integers(0, 30).map(str), st.floats(0.01, MAX_POSITIONS_MOVED), max_size=12)


def page(total: int, gains: dict[str, float], offset: int, limit: int) -> list[str]:
    """Return a page of the engine's hits 0, 1, 2, …"""
    query = SearchQuery("q", limit=limit, offset=offset, settings=SearchSettings(learned={"q": gains}))
    wide = widen_page(query)
    numbers = range(wide.offset, min(wide.offset + wide.limit, total))
    return [hit.id for hit in learned_page(query, [Hit(str(number), b"{}") for number in numbers])]


@given(GAINS, st.integers(0, 35), st.integers(1, 12))
def test_pages_of_learned_order_concatenate_to_the_whole_list(gains: dict[str, float], total: int, limit: int) -> None:
    whole = page(total, gains, 0, 107)

    pages = [id for offset in range(0, total, limit) for id in page(total, gains, offset, limit)]

    assert pages == whole
    assert sorted(whole, key=int) == [str(number) for number in range(total)]


@given(GAINS, st.integers(1, 35))
def test_learned_order_moves_a_hit_by_at_most_three_positions(gains: dict[str, float], total: int) -> None:
    assert all(abs(int(id) - position) <= MAX_POSITIONS_MOVED for position, id in enumerate(page(total, gains, 0, 107)))


def test_hit_passes_its_neighbor_only_with_a_gain_greater_by_one() -> None:
    assert page(3, {"1": 1.0}, 0, 3) == ["1", "0", "2"]
    assert page(3, {"1": 0.99}, 0, 3) == ["0", "1", "2"]
    assert page(3, {"1": 3.0, "0": 2.1}, 0, 3) == ["0", "1", "2"]
    assert page(4, {"3": 3.0}, 0, 4) == ["3", "0", "1", "2"]


def test_sorted_searches_and_searches_with_pinned_hits_have_no_learned_order() -> None:
    learned = {"q": {"1": 3.0}}

    assert SearchQuery(" Q ", settings=SearchSettings(learned=learned)).learned == {"1": 3.0}
    assert SearchQuery("q", settings=SearchSettings(learned=learned), sort=(SortKey("date"),)).learned == {}
    assert SearchQuery("q", settings=SearchSettings(learned=learned, pinned={"q": ("5",)})).learned == {}
