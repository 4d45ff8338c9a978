"""Searches of sites with semantic ranking enabled."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from sqlalchemy import update

from app.models import DocumentVector
from tests.backends.contract import has_native_filters
from tests.callers import Tenant, page
from tests.responses import assert_ok
from tests.services.embedding.conftest import embedder, semantic_app, site  # noqa: F401
from tests.services.embedding.stub_embedder import StubEmbedder

QUESTION = "how do I get a refund for the ticket"
WORDS = "Get the ticket here, get the ticket there."


@pytest.fixture
def shop(site: Tenant) -> Tenant:  # noqa: F811
    """Index three pages, the second of which matches the question in meaning."""
    site.index(
        page(1, title="Ticket", content=WORDS, author="ann"),
        page(2, title="Reimbursement", content="Your money for a ticket.", author="bob"),
        page(3, title="Dogs", content="Dogs need a ticket.", author="bob"),
    )
    site.app.extensions["runtime"].vectorizer.run()
    return site


def ids(tenant: Tenant, query: str = QUESTION, **parameters: Any) -> list[str]:
    return [hit["id"] for hit in tenant.find(query, **parameters)["hits"]]


def switch(tenant: Tenant, **settings: Any) -> None:
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings))


def test_question_ranks_the_page_with_the_same_meaning_first(shop: Tenant) -> None:
    assert ids(shop)[0] == "page-2"
    switch(shop)
    assert ids(shop)[0] == "page-1"


def test_page_that_matches_the_question_only_in_a_late_section_moves_up(shop: Tenant) -> None:
    filler = "Our ticket office is open. " * 300
    shop.index(
        page(4, title="Opening hours", content=f"{filler}Reimbursement of your money."),
        # Typesense ranks later pages first when the words are equal.
        page(5, title="Cats", content="Cats need a ticket."),
        page(6, title="Birds", content="Birds need a ticket."),
    )
    shop.app.extensions["runtime"].vectorizer.run()
    switch(shop)
    assert ids(shop).index("page-4") > 1
    switch(shop, semantic=True)
    assert set(ids(shop)[:2]) == {"page-2", "page-4"}


def test_other_searches_are_ranked_by_words_only(shop: Tenant) -> None:
    switch(shop)
    plain = {query: ids(shop, query, **options) for query, options in OTHERS}
    switch(shop, semantic=True)
    assert {query: ids(shop, query, **options) for query, options in OTHERS} == plain


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("get refund ticket", {}),
    (QUESTION + " ", {"sort": "title"}),
    ('how do I get a refund for "the ticket"', {}),
    ("how do I get a refund for the ticket -dogs", {}),
    ("wie bekomme ich das Geld für die ticket", {}),
]


def test_semantic_ranking_keeps_filters_pagination_totals_and_facets(shop: Tenant) -> None:
    results = shop.find(QUESTION, filters=shop.equals("author", "bob"), facets="author", highlight="true")
    first, second = shop.find(QUESTION, limit=1), shop.find(QUESTION, limit=1, page=2)

    assert [hit["id"] for hit in results["hits"]] == ["page-2", "page-3"]
    assert results["facetDistribution"] == {"author": {"bob": 2}}
    assert results["estimatedTotalHits"] == 2
    assert "<em>" in results["hits"][0]["_formatted"]["content"]
    assert [first["hits"][0]["id"], second["hits"][0]["id"]] == ids(shop)[:2]
    assert first["estimatedTotalHits"] == 3


def test_pinned_and_hidden_pages_apply_to_semantic_ranking(shop: Tenant) -> None:
    switch(shop, semantic=True, pinned=[{"query": QUESTION, "ids": ["page-3"]}])
    assert ids(shop)[:2] == ["page-3", "page-2"]
    switch(shop, semantic=True, hidden=[{"query": QUESTION, "ids": ["page-2"]}])
    assert "page-2" not in ids(shop)


def test_embedder_outage_falls_back_to_ranking_by_words(shop: Tenant, embedder: StubEmbedder) -> None:  # noqa: F811
    embedder.is_away = True

    assert ids(shop)[0] == "page-1"


def test_explanations_contain_cosine_and_rank_by_words(shop: Tenant) -> None:
    explained = shop.private.get("/v1/search", query_string={"q": QUESTION, "explain": "true"}).get_json()

    hits = explained["results"]["hits"]
    meanings = [hit["_explain"]["meaning"] for hit in hits]
    assert hits[0]["id"] == "page-2"
    assert meanings[0]["place_by_words"] > 1
    assert meanings[0]["cosine"] > 0.9
    for each in meanings:
        by_place = 0.2 / (1 + math.log2(each["place_by_words"]))
        assert each["score"] == pytest.approx(by_place + 0.8 * each["cosine"])
    assert [each["score"] for each in meanings] == sorted((each["score"] for each in meanings), reverse=True)


def test_only_hits_ranked_by_meaning_have_a_meaning_explanation(shop: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    switch(shop, semantic=True, pinned=[{"query": QUESTION, "ids": ["page-3"]}])
    monkeypatch.setattr("app.services.search.mixed_order.MIXED_HITS", 2)
    answer = assert_ok(shop.private.get("/v1/search", query_string={"q": QUESTION, "explain": "true"}))
    told = {hit["id"]: hit["_explain"] for hit in answer["results"]["hits"]}

    assert [id for id, explanation in told.items() if "meaning" in explanation] == ["page-1"]
    assert told["page-1"]["meaning"]["place_by_words"] == 1, "pinned pages are not counted"
    assert told["page-3"]["pinned"] is True


def test_preview_page_explains_semantic_ranking_in_words(shop: Tenant) -> None:
    response = shop.browser.get(
        f"/sites/{shop.site_id}/try", query_string={"q": QUESTION}, headers={"Accept": "text/html"}
    )

    shown = response.get_data(as_text=True)
    first, second, _ = shown.split('<details class="why">')[1:4]
    assert (
        "Ranked by words only, it would be result 2." in first or "Ranked by words only, it would be result 3." in first
    )
    assert re.search(r"Its similarity in meaning to the search is \d\.\d\d, where 1 is identical\.", first)
    both = [re.search(r"Its combined score for words and meaning is (0\.\d+)", each) for each in (first, second)]
    assert both[0] is not None
    assert both[1] is not None
    assert float(both[0][1]) >= float(both[1][1])
    has_scores = not has_native_filters(shop.app.extensions["runtime"].engines.default)
    assert ("Its word score, " in first) == has_scores


def test_answer_comes_from_the_semantically_ranked_hits(shop: Tenant) -> None:
    switch(shop, semantic=True, answers=True)

    assert shop.find("what money is there for a ticket")["answer"]["id"] == "page-2"


def test_settings_preview_compares_ranking_with_and_without_semantic_search(shop: Tenant) -> None:
    switch(shop)
    path = f"/sites/{shop.site_id}/search-settings/preview"
    preview = shop.private.post(path, json={"settings": {"semantic": True}, "queries": [QUESTION, "ticket"]}).get_json()

    assert [query["changed"] for query in preview["queries"]] == [True, False]
    assert preview["queries"][0]["after"][0]["id"] == "page-2"


def test_settings_preview_creates_missing_vectors(site: Tenant) -> None:  # noqa: F811
    switch(site)
    site.index(page(1, title="Ticket", content=WORDS), page(2, title="Reimbursement", content="Your money, a ticket."))
    vectorizer = site.app.extensions["runtime"].vectorizer
    assert vectorizer.run() == 0
    path, body = f"/sites/{site.site_id}/search-settings/preview", {"settings": {"semantic": True}}

    first = site.private.post(path, json={**body, "queries": [QUESTION]}).get_json()
    made = vectorizer.run()
    second = site.private.post(path, json={**body, "queries": [QUESTION]}).get_json()

    assert first["warnings"] == [
        {"code": "vectors_missing", "message": "2 documents have no vector yet and rank by words only."}
    ]
    assert made == 2
    assert "warnings" not in second
    assert [first["queries"][0]["changed"], second["queries"][0]["changed"]] == [False, True]
    assert ids(site)[0] == "page-1"


def test_enabling_semantic_search_without_an_embedder_warns_and_has_no_effect(tenant: Tenant) -> None:
    tenant.index(
        page(1, title="Ticket", content=WORDS), page(2, title="Reimbursement", content="Your money, a ticket.")
    )

    answer = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"semantic": True}).get_json()

    assert [warning["code"] for warning in answer["warnings"]] == ["semantic_unavailable"]
    assert ids(tenant)[0] == "page-1"


def test_analytics_count_semantically_ranked_searches(shop: Tenant, embedder: StubEmbedder) -> None:  # noqa: F811
    ids(shop)
    ids(shop, "ticket")
    embedder.is_away = True
    ids(shop, "what do I pay for the ticket")
    shop.app.extensions["runtime"].events.flush()

    told = assert_ok(shop.private.get("/api/analytics?period=7d"))

    assert (told["total_searches"], told["mixed_searches"], told["previous"]["mixed_searches"]) == (3, 1, 0)


def test_site_without_vectors_is_ranked_by_words(site: Tenant) -> None:  # noqa: F811
    site.index(page(1, title="Ticket", content=WORDS), page(2, title="Reimbursement", content="Money for a ticket."))

    assert ids(site) == ["page-1", "page-2"]
    site.app.extensions["runtime"].events.flush()
    assert assert_ok(site.private.get("/api/analytics?period=7d"))["mixed_searches"] == 0


def test_vectors_of_other_dimensions_are_ignored(shop: Tenant) -> None:
    with shop.app.extensions["runtime"].database.write() as session:
        session.execute(update(DocumentVector).values(vector=b"\x7f" * 7))

    assert ids(shop)[0] == "page-1"


def test_semantic_ranking_does_not_change_other_explanations(shop: Tenant) -> None:
    def explained() -> dict[str, Any]:
        answer = assert_ok(shop.private.get("/v1/search", query_string={"q": QUESTION, "explain": "true"}))
        return {hit["id"]: hit["_explain"] for hit in answer["results"]["hits"]}

    mixed = explained()
    switch(shop)

    assert {id: {**told, "meaning": None} for id, told in mixed.items()} == {
        id: {**told, "meaning": None} for id, told in explained().items()
    }
