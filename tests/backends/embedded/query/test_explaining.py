"""Explanations of the score of a hit."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.base import Document
from backends.filters import parse_filter
from backends.query import Boost, Recency, SearchQuery, SearchSettings
from backends.registry import create_backend
from tests.backends.contract.case import kinds_of

WORDS = ("tea", "teas", "brew", "brewing", "pot", "the", "of", "harbor", "log", "in", "login", "harbour")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
PAGES = st.lists(
    st.fixed_dictionaries(
        {"title": TEXTS, "content": TEXTS, "kind": st.sampled_from(("a", "b"))},
        optional={
            "rank": st.integers(-7, 7),
            "date": st.sampled_from(("2020-01-01", "2031-05-01")),
            "sections": TEXTS.map(lambda title: [{"anchor": "a", "title": title, "level": 2, "start": 0}]),
        },
    ),
    min_size=1,
    max_size=8,
)
SETTINGS = st.builds(
    SearchSettings,
    boosts=st.lists(
        st.builds(Boost, st.integers(-5, 5), st.sampled_from(("kind = a", "kind = b")).map(parse_filter)), max_size=3
    ).map(tuple),
    rank_field=st.sampled_from(("", "rank")),
    recency=st.sampled_from((None, Recency("date", 100))),
    synonyms=st.sampled_from(((), (("pot", "harbor"),))),
)
QUERIES = st.one_of(TEXTS, TEXTS.map(lambda text: f'"{text}" tea'))


def explained(pages: list[dict[str, Any]], query: SearchQuery) -> list[Any]:
    documents = [{"id": f"{at}", "url": f"/{at}", **page} for at, page in enumerate(pages)]
    backend = create_backend("memory://")
    backend.create_index("pages")
    kinds = kinds_of(documents)
    backend.upsert("pages", [Document.of(page["id"], page, 1) for page in documents], kinds)
    query = SearchQuery(query.text, settings=query.settings, kinds=kinds, explain=True)
    hits = backend.search("pages", query).hits
    backend.close()
    return [hit.explanation for hit in hits]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PAGES, QUERIES, SETTINGS)
def test_signal_shares_multiply_to_the_score_that_orders_hits(
    pages: list[dict[str, Any]], text: str, wanted: SearchSettings
) -> None:
    found = explained(pages, SearchQuery(text, settings=wanted))

    scores = [explanation["score"] for explanation in found]
    for explanation in found:
        shares = {signal["name"]: signal["share"] for signal in explanation["signals"]}
        assert math.isclose(math.prod(shares.values()), explanation["score"], rel_tol=1e-4)
        assert all(share > 0 for share in shares.values())
        assert shares["rank"] == pytest.approx(1.25 ** explanation["rank"])
        assert all(share >= 1 for name, share in shares.items() if name not in ("words", "rank"))
    assert all(a >= b or math.isclose(a, b, rel_tol=1e-4) for a, b in pairwise(scores))


PAGE = {"title": "Tea", "content": "How to brew it in boats, kept dry in the log in room: openLeafBox, Puerh"}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("tea", ("tea", "tea", "exact", "title")),
        ("brewing", ("brewing", "brew", "stem", "content")),
        ("boa", ("boa", "boats", "prefix", "content")),
        ("broats", ("broats", "boats", "typo", "content")),
        ("login", ("login", "log in", "split", "content")),
        ("ship", ("ship", "boats", "synonym", "content")),
        ('"to brew"', ("to brew", "to brew", "exact", "content")),
        ("leaf", ("leaf", "leaf", "split", "parts")),
        ("pu-erh", ("pu", "puerh", "joined", "content")),
        ("pu er h", ("er", "puerh", "joined", "content")),
    ],
)
def test_matched_words_are_explained_with_their_variant_kind_and_field(query: str, told: tuple[str, ...]) -> None:
    wanted = SearchSettings(synonyms=(("ship", "boats"),))

    (found,) = explained([PAGE], SearchQuery(query, settings=wanted))

    assert told in [(each["word"], each["variant"], each["kind"], each["field"]) for each in found["words"]]


def test_compound_that_ends_with_the_word_is_explained() -> None:
    page = {"title": "Laden", "content": "Hier ist der Geschenkgutschein für dich, und er ist für die Mutter."}

    (found,) = explained([page], SearchQuery("gutschein"))

    assert found["words"] == [
        {"word": "gutschein", "variant": "geschenkgutschein", "kind": "compound", "field": "content"}
    ]


def test_explanation_names_the_relaxation() -> None:
    assert explained([PAGE], SearchQuery("tea"))[0]["relaxation"] == "all_terms"
    assert explained([PAGE], SearchQuery("tea zeppelin"))[0]["relaxation"] == "any_term"


def test_explanation_marks_hits_with_the_phrase_if_others_follow() -> None:
    having = {"title": "Other", "content": "a log in a room of boats, among many other things that there are " * 9}
    better = {"title": "Boats and pots find a log room", "content": "find the room log, here and there"}

    found = explained([having, better], SearchQuery('find the "log in" boats pots room here'))

    assert [each["has_phrase"] for each in found] == [True, False]
    assert found[0]["score"] < found[1]["score"]
    assert "has_phrase" not in explained([having], SearchQuery('"log in"'))[0]


def test_explanation_marks_hits_beyond_the_ranked_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.embedded.query.ranks.WINDOW", 2)
    wanted = SearchSettings(boosts=(Boost(-5, parse_filter("kind = a")),))

    found = explained([{**PAGE, "kind": "a"} for _ in range(4)], SearchQuery("tea", settings=wanted))

    assert [(each.get("beyond_ranks", False), each["rank"]) for each in found] == [
        (False, -5),
        (False, -5),
        (True, 0),
        (True, 0),
    ]


def test_exact_title_match_appears_as_a_signal() -> None:
    (found,) = explained([PAGE], SearchQuery("tea"))

    assert "exact_title" in [signal["name"] for signal in found["signals"]]


def test_match_all_hits_have_no_score_words_or_signals() -> None:
    (found,) = explained([PAGE], SearchQuery("*"))

    assert (found["score"], found["words"], found["signals"]) == (None, [], [])
