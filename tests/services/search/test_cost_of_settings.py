"""The largest accepted search settings cost little, counted in calls and engine searches instead of time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from app.clock import now
from app.services.search_settings import read_rules, read_settings
from backends.base import Document, SearchBackend, SearchResult
from backends.query import FieldKind, Highlight, SearchQuery
from backends.registry import create_backend
from schemas.search_rules import MAX_BOOSTS, MAX_RULES
from schemas.search_settings import (
    MAX_FILTER_VALUES,
    MAX_GROUPS,
    MAX_HIDDEN_SUGGESTIONS,
    MAX_PINNED_QUERIES,
    MAX_RULE_DOCUMENTS,
    MAX_RULE_WORDS,
    MAX_STOP_WORDS,
    MAX_SYNONYMS,
    SearchSettingsSchema,
)
from tests.callers import Tenant, page
from tests.responses import assert_ok
from tests.work import Work, work_of

CALLS_A_SECOND = 2_000_000
"""Minimum number of Python calls, including their work, in a CPU second."""

WORDS = ["boat", "harbor", "island", "lake", "river"]
OTHERS = [f"word{number}" for number in range(500)]
KINDS = {"kind": frozenset({FieldKind.STRING}), "rank": frozenset({FieldKind.NUMBER})}


def largest() -> dict[str, Any]:
    """Return the largest accepted settings, with rules that all apply to a search for :data:`WORDS`."""
    values = (MAX_FILTER_VALUES - MAX_BOOSTS) // MAX_RULES
    assert len(WORDS) * MAX_RULES == MAX_RULE_WORDS
    return {
        "synonyms": [[f"{number}-{at}" for at in range(MAX_SYNONYMS // MAX_GROUPS)] for number in range(MAX_GROUPS)],
        "stop_words": [f"stop{number}" for number in range(MAX_STOP_WORDS)],
        "pinned": [{"query": f"query {number}", "ids": ["1", "2"]} for number in range(MAX_PINNED_QUERIES)],
        "hidden": [{"query": f"query {number}", "ids": ["3", "4"]} for number in range(MAX_PINNED_QUERIES)],
        "suggestions_hidden": [f"*casino {number}*" for number in range(MAX_HIDDEN_SUGGESTIONS)],
        "weights": {"title": 2, "excerpt": 1.5, "content": 0.5},
        "rules": [
            {
                "id": f"rule-{number}",
                "when": {"query": " ".join(WORDS), "match": "words"},
                "do": {
                    "pin": [f"{number}", f"{number + 200}", f"none-{number}"],
                    "hide": [f"hidden-{number}-{at}" for at in range(MAX_RULE_DOCUMENTS // MAX_RULES - 3)],
                    "boost": {"filters": f"kind = k{number % 7}", "rank": number % 5 + 1},
                    "filters": " AND ".join(f"kind != none{number}{at}" for at in range(values - 1)),
                },
            }
            for number in range(MAX_RULES)
        ],
        "boosts": [
            {"rank": number % 11 - 5, **({"path": f"/{number}*"} if number % 2 else {"filters": f"kind = k{number}"})}
            for number in range(MAX_BOOSTS)
        ],
        "rank_field": "rank",
        "recency": {"half_life_days": 30},
    }


@pytest.fixture(scope="module")
def backend() -> SearchBackend:
    draw = random.Random(1)
    backend = create_backend("memory://")
    backend.create_index("pages")
    pages = [
        {
            "id": f"{at}",
            "url": f"/{at}",
            "title": " ".join(draw.choices(WORDS + OTHERS[:20], k=5)),
            "content": " ".join(draw.choices(WORDS + OTHERS, k=100)),
            "date": f"20{at % 24:02}-01-01",
            "kind": f"k{at % 7}",
            "rank": at % 4 - 1,
        }
        for at in range(1000)
    ]
    backend.upsert("pages", [Document(each["id"], each, at) for at, each in enumerate(pages, 1)], KINDS)
    return backend


@pytest.mark.parametrize("text", [" ".join(WORDS), "boat word1", "word7", " ".join(WORDS + OTHERS[:40]), "boat -lake"])
def test_largest_settings_at_most_double_the_cost_of_a_search(backend: SearchBackend, text: str) -> None:
    def searches(stored: dict[str, Any]) -> Callable[[], SearchResult]:
        settings, rules = read_settings(stored), read_rules(stored)

        def search() -> SearchResult:
            query = SearchQuery(text, kinds=KINDS, settings=settings, highlight=Highlight())
            return backend.search("pages", rules.apply(query, now))

        return search

    plain, loaded = searches({}), searches(SearchSettingsSchema().load(largest()))
    assert plain().total
    assert loaded().hits

    without, with_all = work_of(plain), work_of(loaded)

    assert with_all.calls <= 2 * without.calls
    # The pinned documents need one more search.
    assert with_all.searches <= 2 * without.searches + 1


def test_fifty_boosts_need_no_more_engine_searches_than_one(backend: SearchBackend) -> None:
    boosts = [{"rank": 1, "filters": f"kind = k{number % 7}"} for number in range(MAX_BOOSTS)]

    def search(count: int) -> Work:
        query = SearchQuery("boat lake", kinds=KINDS, settings=read_settings({"boosts": boosts[:count]}))
        return work_of(lambda: backend.search("pages", query))

    assert search(1).searches == search(MAX_BOOSTS).searches


def test_synonyms_of_a_word_in_many_groups_are_limited(backend: SearchBackend) -> None:
    groups = [["boat", *(f"{word} {number}" for word in WORDS)] for number in range(200)]

    def search(synonyms: list[list[str]]) -> Callable[[], SearchResult]:
        settings = read_settings({"synonyms": synonyms})
        return lambda: backend.search("pages", SearchQuery("boat", kinds=KINDS, settings=settings))

    few, many = search(groups[:10]), search(groups)
    few(), many()

    assert work_of(many).calls <= 1.1 * work_of(few).calls


def test_preview_of_the_largest_settings_takes_at_most_one_cpu_second(tenant: Tenant) -> None:
    for start in range(0, 500, 100):
        tenant.index(*(page(at, content=" ".join(WORDS), kind=f"k{at % 7}") for at in range(start, start + 100)))
    path = f"/sites/{tenant.site_id}/search-settings/preview"

    def preview(sign: str) -> None:
        settings = largest()
        for number, rule in enumerate(settings["rules"]):
            rule["when"]["query"] = " ".join(f"{word}{sign}{number}" for word in WORDS)  # Each word needs stemming.
        body = {"settings": settings, "queries": [f"boat {number}" for number in range(50)]}
        assert_ok(tenant.private.post(path, json=body))

    preview("a")  # One-time initialization is not counted.

    assert work_of(lambda: preview("b")).calls <= CALLS_A_SECOND


def test_preview_page_returns_only_the_results_part_on_request(tenant: Tenant) -> None:
    tenant.index(page(1, title="Boats"))
    path = f"/sites/{tenant.site_id}/search-settings/preview"
    form = {"json": "{}", "query": "boats", "csrf_token": tenant.browser.csrf_token}

    def shown(**more: str) -> str:
        response = tenant.browser.post(path, data={**form, **more}, headers={"Accept": "text/html"})
        assert response.status_code == 200
        return response.get_data(as_text=True)

    part = shown(part="results")
    assert part.strip().startswith('<div id="results"')
    assert "<form" not in part
    assert "Boats" in part
    assert part.strip() in shown()
