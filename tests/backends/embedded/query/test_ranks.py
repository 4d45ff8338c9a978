"""Ranks where the engine has scores: how far they reach."""

from __future__ import annotations

from typing import Any

from backends.base import Boost, Document, SearchQuery, SearchSettings
from backends.embedded.query.ranks import WINDOW
from backends.filters import parse_filter
from backends.registry import create_backend
from tests.backends.contract.case import kinds_of


def found(pages: list[dict[str, Any]], text: str, *boosts: Boost, limit: int = 20, offset: int = 0) -> list[str]:
    documents = [{"id": f"{at}", "url": f"/{at}", "title": "Other", **page} for at, page in enumerate(pages)]
    backend = create_backend("memory://")
    backend.create_index("pages")
    kinds = kinds_of(documents)
    backend.upsert("pages", [Document.of(page["id"], page, at) for at, page in enumerate(documents)], kinds)
    query = SearchQuery(text, kinds=kinds, settings=SearchSettings(boosts=boosts), limit=limit, offset=offset)
    hits = backend.search("pages", query).hits
    backend.close()
    return [hit.id for hit in hits]


def test_a_title_that_is_the_query_comes_before_any_mention() -> None:
    pages = [{"title": "Brewing tea", "content": "Pour hot water over the leaves, and wait."}]
    pages += [{"content": f"Number {at}: tea, brewing, and what else there is in a kitchen"} for at in range(30)]

    best = found(pages, "brewing tea", Boost(5, parse_filter("title = Other")))

    assert best[0] == "0"


def test_a_boosted_page_comes_up_from_behind_all_that_are_ordered() -> None:
    many = [{"content": "tea"} for _ in range(WINDOW + 20)]
    last = {"content": "tea and sugar", "kind": "x"}

    assert found([*many, last], "tea", Boost(5, parse_filter("kind = x")), limit=1) == [f"{len(many)}"]


def test_pages_of_hits_join_where_the_order_by_rank_ends() -> None:
    pages = [{"content": "tea", "kind": "x" if at % 2 else "y"} for at in range(WINDOW + 40)]
    boost = Boost(1, parse_filter("kind = x"))

    first = found(pages, "tea", boost, limit=WINDOW + 30)
    around = found(pages, "tea", boost, limit=30, offset=WINDOW - 10)

    assert len(set(first)) == WINDOW + 30
    assert around == first[WINDOW - 10 : WINDOW + 20]
    assert all(int(id) % 2 for id in first[: WINDOW // 2])
