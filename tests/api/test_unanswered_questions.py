"""Questions without an answer in the inbox."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.clock import now
from app.models import Ask
from app.services.asks.questions import make_ask_id
from tests.api.test_inbox import change, queries, show
from tests.callers import Tenant, page
from tests.responses import assert_ok
from tests.services.inbox.test_items import missed, part_of

DOG = "Can I bring my dog?"
PARKING = "Where do I park?"


@pytest.fixture(autouse=True)
def ask_is_on(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="House rules"))
    set_up(tenant)


def set_up(tenant: Tenant, **settings: Any) -> None:
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"ask": True, **settings}))
    tenant.settle()


def store(tenant: Tenant, question: str, visitor: int | None = 1, *, answered: bool = False, age: float = 0) -> None:
    """Store a question that was asked ``age`` days ago."""
    asked = Ask(
        id=make_ask_id(),
        site_id=tenant.site_id,
        question=question,
        occurred_at=now() - timedelta(days=age),
        answered=answered,
        visitor=visitor,
    )
    with part_of(tenant).database.write() as session:
        session.add(asked)


def test_question_without_an_answer_is_in_the_inbox_once_for_its_normal_form(tenant: Tenant, stranger: Tenant) -> None:
    for visitor, question in enumerate([DOG, DOG.upper(), f"{DOG} ", DOG]):
        store(tenant, question, visitor % 3)
    store(tenant, PARKING, None)
    store(stranger, "Is it theirs?")

    assert show(tenant)["items"] == [
        {"query": DOG.lower(), "kind": "unanswered", "searches": 4, "visitors": 3, "finds_now": 0},
        {"query": PARKING.lower(), "kind": "unanswered", "searches": 1, "visitors": 0, "finds_now": 0},
    ]


def test_question_leaves_once_it_is_answered_and_returns_if_it_is_not(tenant: Tenant) -> None:
    store(tenant, DOG, 1, age=3)
    store(tenant, DOG.upper(), 2, answered=True, age=2)
    assert queries(tenant) == []

    store(tenant, DOG, 3, age=1)
    (item,) = show(tenant)["items"]
    assert (item["searches"], item["visitors"]) == (1, 1)


def test_pinned_page_that_comes_first_resolves_a_question(tenant: Tenant) -> None:
    store(tenant, DOG)
    set_up(tenant, pinned=[{"query": DOG.lower(), "ids": ["page-9"]}])
    assert queries(tenant) == [DOG.lower()]

    set_up(tenant, pinned=[{"query": DOG.lower(), "ids": ["page-2"]}])
    assert queries(tenant) == []


def test_ignored_question_is_listed_separately(tenant: Tenant) -> None:
    store(tenant, DOG)

    change(tenant, DOG, ignored=True)
    assert (queries(tenant), queries(tenant, ignored="true")) == ([], [DOG.lower()])

    change(tenant, DOG, ignored=False)
    assert queries(tenant) == [DOG.lower()]


def test_search_for_the_same_words_keeps_its_kind_until_it_finds_pages(tenant: Tenant) -> None:
    missed(tenant, "dogs", 5, 7)
    store(tenant, "Dogs")
    (item,) = show(tenant)["items"]
    assert item == {"query": "dogs", "kind": "no_results", "searches": 7, "visitors": 5, "finds_now": 0}

    tenant.index(page(3, title="Dogs"))
    (item,) = show(tenant)["items"]
    assert item == {"query": "dogs", "kind": "unanswered", "searches": 1, "visitors": 1, "finds_now": 1}


def test_old_and_too_long_questions_and_questions_of_sites_without_ask_are_skipped(tenant: Tenant) -> None:
    store(tenant, DOG, age=30)
    store(tenant, "🐕" * 129)
    assert queries(tenant) == []

    store(tenant, "🐕" * 128)
    store(tenant, DOG, age=28.9)
    assert len(queries(tenant)) == 2
    set_up(tenant, ask=False)
    assert queries(tenant) == []
