"""Ranks in an engine with scores: the extent of their effect."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from backends.base import Document, Hit
from backends.embedded.query import ranks
from backends.embedded.query.ranks import WINDOW
from backends.filters import parse_filter
from backends.query import Boost, SearchQuery, SearchSettings, bounded_rank, rank_factor
from backends.registry import create_backend
from tests.backends.contract.case import kinds_of


def hits_of(pages: list[dict[str, Any]], text: str, *boosts: Boost, **options: Any) -> Sequence[Hit]:
    documents = [{"id": f"{at}", "url": f"/{at}", "title": "Other", **page} for at, page in enumerate(pages)]
    backend = create_backend("memory://")
    backend.create_index("pages")
    kinds = kinds_of(documents)
    backend.upsert("pages", [Document.of(page["id"], page, at) for at, page in enumerate(documents)], kinds)
    query = SearchQuery(text, kinds=kinds, settings=SearchSettings(boosts=boosts), **options)
    hits = backend.search("pages", query).hits
    backend.close()
    return hits


def found(pages: list[dict[str, Any]], text: str, *boosts: Boost, **options: Any) -> list[str]:
    return [hit.id for hit in hits_of(pages, text, *boosts, **options)]


def test_exact_title_match_ranks_above_boosted_mentions() -> None:
    pages = [{"title": "Brewing tea", "content": "Pour hot water over the leaves, and wait."}]
    pages += [{"content": f"Number {at}: tea, brewing, and what else there is in a kitchen"} for at in range(30)]

    best = found(pages, "brewing tea", Boost(5, parse_filter("title = Other")))

    assert best[0] == "0"


def test_boosted_page_beyond_the_ranked_window_comes_first() -> None:
    many = [{"content": "tea"} for _ in range(WINDOW + 20)]
    last = {"content": "tea and sugar", "kind": "x"}

    assert found([*many, last], "tea", Boost(5, parse_filter("kind = x")), limit=1) == [f"{len(many)}"]


@pytest.mark.parametrize("pattern", [
    "/*", "/docs/*", "/DOCS/**", "/docs/É/*", "/docs//*", "//docs/*", "/d/" * 2 + "*", "/d/" * 3 + "*",
])  # fmt: skip
def test_boost_of_a_folder_applies_to_the_pages_that_its_pattern_matches(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [
        "/docs/a", "/Docs/É/c", "/docs/é/d", "/docs", "/docs/", "/docs//y", "//docs/x", "docs/x", "", " /docs/b ",
        "https://x.com/docs/b", "HTTPS://X.com/docs/", "https://docs/x", "http:///docs/", "https://x.com?a=/docs/",
        "/docs?x=/docs/", "/docs/#/docs/", "/#/docs/", "/a?b=/docs/", "/d/" * 2, "/d/" * 3 + "x", "/docs/" + "x" * 400,
    ]  # fmt: skip
    pages = [{"content": "tea", "url": url} for url in urls]

    def boosted() -> set[str]:
        hits = hits_of(pages, "tea", Boost(1, path=pattern), explain=True, limit=100)
        return {str(hit.document["url"]) for hit in hits if (hit.explanation or {})["rank"]}

    by_folder = boosted()
    monkeypatch.setattr(ranks, "MAX_FOLDERS", -1)

    assert by_folder == boosted() != set()


@pytest.mark.parametrize("count", [WINDOW // 2, 3 * WINDOW])
@pytest.mark.parametrize("seed", range(3))
def test_ranks_of_many_boosts_add_up_for_any_number_of_hits(count: int, seed: int) -> None:
    draw = random.Random(seed)
    boosts = tuple(
        Boost(draw.randint(-3, 3), parse_filter(f"{name} = {value}")) for name in "abcd" for value in range(4)
    )
    pages = [
        {
            "content": " ".join(draw.choices(["tea", "pot", "cup"], k=draw.randint(1, 40))),
            **{name: draw.randrange(5) for name in "abcd"},
        }
        for _ in range(count)
    ]
    ranks = [sum(boost.rank for at, boost in enumerate(boosts) if page["abcd"[at // 4]] == at % 4) for page in pages]

    hits = hits_of(pages, "tea pot", *boosts, explain=True)

    explained = [hit.explanation or {} for hit in hits]
    assert [each["rank"] for each in explained] == [bounded_rank(ranks[int(hit.id)]) for hit in hits]
    scores = [each["score"] for each in explained]
    assert len(scores) == 20
    assert all(a >= b or math.isclose(a, b, rel_tol=1e-4) for a, b in pairwise(scores))
    assert max(each["rank"] for each in explained) == 5


def test_pages_of_hits_join_at_the_end_of_the_ranked_window() -> None:
    pages = [{"content": "tea", "kind": "x" if at % 2 else "y"} for at in range(WINDOW + 40)]
    boost = Boost(1, parse_filter("kind = x"))

    first = found(pages, "tea", boost, limit=WINDOW + 30)
    around = found(pages, "tea", boost, limit=30, offset=WINDOW - 10)

    assert len(set(first)) == WINDOW + 30
    assert around == first[WINDOW - 10 : WINDOW + 20]
    assert all(int(id) % 2 for id in first[: WINDOW // 2])


@pytest.mark.parametrize("seed", [3, 6])
def test_best_hits_come_first_even_if_other_pages_have_boosts_beyond_the_rank_limit(seed: int) -> None:
    draw = random.Random(seed)
    boosts = tuple(
        Boost(draw.randint(1, 3), parse_filter(f"{name} = {value}")) for name in "abcdef" for value in (0, 1)
    )
    words = [f"w{number}" for number in range(30)]
    pages = [
        {
            "title": " ".join(draw.choices(words, k=3)),
            "content": " ".join(draw.choices(words, k=draw.randint(1, 60))),
            **{name: draw.randrange(4) for name in "abcdef"},
        }
        for _ in range(5 * WINDOW)
    ]
    ranks = [sum(boost.rank for at, boost in enumerate(boosts) if page["abcdef"[at // 2]] == at % 2) for page in pages]
    plain = hits_of(pages, "w1 w2", explain=True, limit=900)
    expected = sorted(
        ((hit.explanation or {})["score"] * rank_factor(ranks[int(hit.id)]) for hit in plain), reverse=True
    )

    best = [(hit.explanation or {})["score"] for hit in hits_of(pages, "w1 w2", *boosts, explain=True)]

    assert best == pytest.approx(expected[:20], rel=1e-4)
