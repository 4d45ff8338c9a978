"""Scores order hits consistently on every page."""

from __future__ import annotations

from backends.query import SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


def test_pins_and_recency_neither_repeat_nor_lose_hits_across_pages() -> None:
    case = index_of()
    case.add(*(page(f"p{n:03}", "word", date=f"20{n % 25:02}-01-01") for n in range(230)), page("pin", "other"))
    settings = SearchSettings(pinned={"word": ("pin", "p200", "p003")})
    for wish in (SearchSettings(), settings):
        seen: list[str] = []
        for offset in range(0, 250, 35):
            seen += case.ids("word", limit=35, offset=offset, settings=wish)
        assert len(seen) == len(set(seen)) == case.search("word", settings=wish).total
    assert seen[:3] == ["pin", "p200", "p003"]


def test_recency_order_does_not_depend_on_the_page_size() -> None:
    case = index_of()
    # Longer texts score lower; among texts of similar length, a newer text may come first.
    case.add(*(page(f"p{n:03}", "word" + " more" * n, date=f"20{n * 7 % 25:02}-01-01") for n in range(130)))
    all_at_once = case.ids("word", limit=130)
    assert all_at_once != sorted(all_at_once)
    for limit in (1, 3, 20, 60):
        pages = (case.ids("word", limit=limit, offset=offset) for offset in range(0, 130, limit))
        assert [id for one_page in pages for id in one_page] == all_at_once
