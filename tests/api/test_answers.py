"""Quoted answers to questions, returned beside the hits of a search."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.gateway.callers import Gateway
from tests.responses import assert_ok

QUESTION = "when are the tickets refunded"
TEXT = "Tickets are refunded up to noon, <b>but</b> never after it."


@pytest.fixture
def asked(tenant: Tenant) -> Tenant:
    """A site with answers enabled."""
    tenant.index(page(1, title="Refunds", content=f"Ask us.\n{TEXT}\nWe are open."), page(2, title="Ferries"))
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"answers": True}))
    return tenant


def test_question_is_answered_with_a_passage_and_its_document(asked: Tenant) -> None:
    results = asked.find(QUESTION)

    assert results["answer"] == {"text": TEXT, "id": "page-1", "url": results["hits"][0]["url"], "anchor": ""}


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("tickets refunded", {}),
        ("when are the ferries and boats refunded by whom", {}),
        (QUESTION, {"page": 2, "limit": 1}),
        (QUESTION, {"sort": "title"}),
    ],
)
def test_searches_without_a_matching_question_have_no_answer(
    asked: Tenant, query: str, parameters: dict[str, Any]
) -> None:
    assert "answer" not in asked.find(query, **parameters)


def test_documents_excluded_by_the_filter_provide_no_answer(asked: Tenant) -> None:
    assert "answer" not in asked.find(QUESTION, filters=asked.equals("author", "nobody"))


def test_sites_without_the_answers_setting_get_no_answer(tenant: Tenant) -> None:
    tenant.index(page(1, content=TEXT))

    assert "answer" not in tenant.find(QUESTION)


def test_hidden_document_provides_no_answer(asked: Tenant) -> None:
    settings = {"answers": True, "hidden": [{"query": QUESTION, "ids": ["page-1"]}]}
    assert_ok(asked.private.put(f"/sites/{asked.site_id}/search-settings", json=settings))

    assert "answer" not in asked.find(QUESTION)


def test_answers_appear_in_post_searches_and_the_preview(asked: Tenant) -> None:
    by_body = asked.search.post("/v1/search", json={"q": QUESTION, "sections": 1, "highlight": True}).get_json()
    preview = asked.browser.get(f"/sites/{asked.site_id}/try", query_string={"q": QUESTION})
    shown = asked.browser.get(
        f"/sites/{asked.site_id}/try", query_string={"q": QUESTION}, headers={"Accept": "text/html"}
    )

    assert by_body["results"]["answer"]["text"] == TEXT
    assert preview.get_json()["results"]["answer"]["text"] == TEXT
    assert "<blockquote>Tickets are refunded up to noon, &lt;b&gt;but&lt;/b&gt; never after it.</blockquote>" in (
        shown.get_data(as_text=True)
    )


def test_gateway_returns_the_answer_beside_the_hits(asked: Tenant) -> None:
    answer = Gateway(asked).search(q=QUESTION)

    assert answer["answer"]["text"] == TEXT
    assert "answer" not in Gateway(asked).search(q="tickets refunded")
