"""Clicked documents move up, by a limited number of positions."""

from __future__ import annotations

import pytest

from app.operations.learning import MAX_GAIN, MIN_VISITORS, VisitorClick, click_share_at, find_gains
from benchmarks.clicks import displayed, simulate, swapped_pairs

SEED = 7
PLACES = {"first": 1, "second": 2, "third": 3, "a": 1, "b": 2}


def clicks(document_id: str, position: int | None, count: int, *, first: int = 0, age: float = 0) -> list[VisitorClick]:
    return [VisitorClick(document_id, first + number, position, age) for number in range(count)]


def test_page_clicked_more_than_its_position_predicts_moves_up() -> None:
    gains = find_gains([*clicks("first", 1, 10), *clicks("third", 3, 30, first=10)], PLACES)

    assert gains["third"] - gains.get("first", 0) > 2
    assert max(gains.values()) <= MAX_GAIN


def test_clicks_explained_by_position_keep_the_order() -> None:
    told = [*clicks("first", 1, 30), *clicks("second", 2, 15, first=30), *clicks("third", 3, 10, first=45)]

    assert displayed(["first", "second", "third"], find_gains(told, PLACES)) == ["first", "second", "third"]


def test_fewer_than_five_visitors_in_thirty_days_move_no_page() -> None:
    four = clicks("third", 3, MIN_VISITORS - 1)
    one = clicks("third", 3, 1, first=MIN_VISITORS)

    assert find_gains(four, PLACES) == {}
    assert find_gains([*four, *clicks("third", 3, 20, first=100, age=31)], PLACES) == {}
    assert "third" in find_gains([*four, *one], PLACES)


def test_click_weight_halves_after_thirty_days() -> None:
    now = clicks("a", 1, 20)

    old = find_gains([*now, *clicks("b", 1, 40, first=20, age=30)], PLACES)
    new = find_gains([*now, *clicks("b", 1, 20, first=20)], PLACES)

    assert old == new


def test_click_without_a_position_counts_as_a_click_on_the_first_position() -> None:
    others = clicks("a", 1, 10)

    assert find_gains([*others, *clicks("b", None, 10, first=10)], PLACES) == find_gains(
        [*others, *clicks("b", 1, 10, first=10)], PLACES
    )


def test_invented_click_position_counts_at_most_as_the_last_shown_position() -> None:
    others = clicks("first", 1, 100)
    invented, told = ([*others, *clicks("third", position, 10, first=100)] for position in (1_000_000, 6))

    assert find_gains(invented, PLACES) == find_gains(told, PLACES)
    assert find_gains(invented, PLACES).get("third", 0) < 1


def test_clicks_on_pages_that_cannot_move_do_not_affect_other_pages() -> None:
    better = [*clicks("first", 1, 10), *clicks("third", 3, 30, first=10)]

    assert find_gains([*better, *clicks("nowhere", 90, 500, first=100)], PLACES) == find_gains(better, PLACES)
    assert find_gains(clicks("nowhere", 90, 500), PLACES) == {}


@pytest.mark.parametrize(("others", "invented"), [(0, 6), (100, 19), (1000, 136)])
def test_invented_clicks_needed_to_reach_the_top_grow_with_real_clicks(others: int, invented: int) -> None:
    """Numbers in ``docs/architecture.md``: a page at the fourth position that gets no genuine clicks."""
    pages = {f"{position}": position for position in range(1, 11)}

    def place_with(count: int) -> int:
        told, number = [], 0
        for page, position in pages.items():
            clicked = 0 if page == "4" else round(others * click_share_at(position))
            told += clicks(page, position, clicked, first=number)
            number += clicked
        told += clicks("4", 1_000_000, count, first=number)
        return displayed(list(pages), find_gains(told, pages)).index("4") + 1

    assert (place_with(invented - 1), place_with(invented)) == (2, 1)


@pytest.mark.parametrize("steepness", [1.0, 0.7])
def test_clearly_better_second_page_moves_to_the_top_and_no_other_page_moves(steepness: float) -> None:
    better, others = swapped_pairs(0.2, 0.6, lists=25, seed=SEED, steepness=steepness)

    assert (better, others) == (1, 0)


def test_equally_good_pages_rarely_swap_positions() -> None:
    equal, others = swapped_pairs(0.3, 0.3, lists=50, seed=SEED)

    assert equal <= 0.2
    assert others == 0


def test_page_moves_by_at_most_three_positions() -> None:
    ranked = [str(number) for number in range(10)]

    seen = simulate({"q": ranked}, lambda _, document_id: 0.9 if document_id == "8" else 0.05, seed=SEED)["q"]

    assert seen.index("8") == 5
    assert all(abs(seen.index(document_id) - position) <= MAX_GAIN for position, document_id in enumerate(ranked))


def test_pages_that_match_only_some_words_keep_their_position() -> None:
    ranked = ["0", "1", "2"]

    seen = simulate(
        {"q": ranked}, lambda _, document_id: 0.9 if document_id == "2" else 0.05, movable={"q": {"0", "1"}}, seed=SEED
    )

    assert seen["q"] == ranked
