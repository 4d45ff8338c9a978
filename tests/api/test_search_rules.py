"""Rules of the search settings, and their effect on search responses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.gateway.callers import Gateway


def put(tenant: Tenant, **settings: Any) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert response.status_code == 200, response.get_json()


def rule(do: dict[str, Any], id: str = "a", enabled: bool = True, **when: Any) -> dict[str, Any]:
    return {"id": id, "when": when, "do": do, "enabled": enabled}


def holding(tenant: Tenant, q: str) -> list[str]:
    rules: list[str] = tenant.find(q).get("rules", [])
    return rules


@pytest.fixture
def gateway(tenant: Tenant) -> Gateway:
    return Gateway(tenant)


@pytest.mark.parametrize(
    ("match", "query", "holds", "holds_not"),
    [
        ("is", "Opening  Hours", ["opening hours", " OPENING hours "], ["opening", "opening hours today"]),
        ("starts", "open", ["open", "opening hours"], ["reopen", "we open"]),
        ("contains", "pen", ["open", "a pen"], ["pn"]),
        ("words", "boat rental", ["rental boats", "rent a boat: rentals of boats", "“Boat” rental"], ["boat", "rent"]),
        ("words", "été", ["ete", "etes"], ["etc"]),
    ],
)
def test_rule_matches_queries_by_its_match_mode(
    tenant: Tenant, match: str, query: str, holds: list[str], holds_not: list[str]
) -> None:
    tenant.index(page(1))
    put(tenant, rules=[rule({"redirect": "/"}, query=query, match=match)])

    assert [q for q in holds + holds_not if holding(tenant, q)] == holds


def test_rule_with_word_match_applies_once_across_languages(tenant: Tenant) -> None:
    tenant.index(page(1, title="Boats", kind="a"), page(2, title="Boats", kind="b"))
    boost = {"filters": "kind = b", "rank": 1}
    put(
        tenant,
        rules=[
            rule({"boost": boost}, "one", query="boats rentals", match="words"),
            rule({"redirect": "/"}, "two", query="boat", match="words"),
        ],
    )

    assert holding(tenant, "rent a boat: rentals of boats") == ["one", "two"]
    found = tenant.private.get("/v1/search?q=boats+rental&explain=true").get_json()["results"]["hits"]
    assert {hit["id"]: hit["_explain"]["rank"] for hit in found} == {"page-1": 0, "page-2": 1}


def test_only_the_first_48_words_of_a_query_are_matched(tenant: Tenant) -> None:
    tenant.index(page(1))
    put(tenant, rules=[rule({"redirect": "/"}, query="boat", match="words")])
    others = [f"w{number}" for number in range(60)]

    assert holding(tenant, " ".join([*others[:47], "boats"])) == ["a"]
    assert holding(tenant, " ".join([*others[:48], "boats"])) == []


def test_word_match_uses_the_sites_language(tenant: Tenant) -> None:
    tenant.index(page(1))
    rules = [rule({"redirect": "/"}, query="Häuser", match="words")]

    put(tenant, rules=rules, language="de")
    assert holding(tenant, "neues Haus") == ["a"]

    put(tenant, rules=rules, language="en")
    assert holding(tenant, "neues Haus") == []
    assert holding(tenant, "neue häuser") == ["a"]


def test_rule_without_a_query_always_applies_unless_disabled(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    put(tenant, rules=[rule({"pin": ["page-2"]}, "on"), rule({"pin": ["page-1"]}, "off", enabled=False)])

    assert holding(tenant, "anything") == ["on"]
    assert tenant.find("*")["hits"][0]["id"] == "page-2"


def test_rule_applies_from_its_start_until_before_its_end(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant.index(page(1))
    when = {"from": "2024-03-01", "to": "2024-03-02T12:00:00+02:00"}
    put(tenant, rules=[{"id": "a", "when": when, "do": {"redirect": "/"}}])
    found = []
    for moment in ("2024-02-29T23:59:59", "2024-03-01T00:00:00", "2024-03-02T09:59:59", "2024-03-02T10:00:00"):
        at = datetime.fromisoformat(f"{moment}+00:00")
        monkeypatch.setattr("app.services.search.site_queries.now", lambda at=at: at)
        found.append(bool(holding(tenant, "hello")))

    assert found == [False, True, True, False]


def test_rule_with_a_filter_applies_when_the_search_filter_includes_its_conditions(
    tenant: Tenant, gateway: Gateway
) -> None:
    tenant.index(page(1, lang="en", kind="x"), page(2, lang="de"))
    put(tenant, rules=[rule({"redirect": "/"}, filters="lang = en AND NOT kind = x")])

    def holds(*conditions: str) -> bool:
        return "rules" in gateway.search("page", filter=list(conditions))

    assert holds("NOT   kind='x' AND date > 2020-01-01 AND (lang = 'en')")
    assert holds("lang = en", "NOT kind = x")
    assert not holds("lang = en")
    assert not holds("lang = en OR NOT kind = x")
    assert not holds("kind = x AND lang = en")
    assert not holds()


def test_matching_rules_apply_in_order_and_the_first_redirect_and_notice_win(tenant: Tenant) -> None:
    tenant.index(*(page(at, title="Boats", content="Boats", kind="a" if at % 2 else "b") for at in range(1, 7)))
    put(
        tenant,
        pinned=[{"query": "boats", "ids": ["page-6"]}],
        hidden=[{"query": "boats", "ids": ["page-5"]}],
        rules=[
            rule({"pin": ["page-4", "page-2"], "redirect": "/first"}, "one", query="boats"),
            rule({"hide": ["page-2"], "notice": {"text": "First", "url": "/n"}}, "two", query="boat", match="starts"),
            rule({"pin": ["page-3"], "redirect": "/second", "notice": {"text": "Second"}}, "three"),
            rule({"hide": ["page-1"]}, "other", query="ships"),
        ],
    )

    results = tenant.find("Boats")

    assert [hit["id"] for hit in results["hits"]] == ["page-6", "page-4", "page-3", "page-1"]
    assert results["rules"] == ["one", "two", "three"]
    assert results["redirect"] == "/first"
    assert results["notice"] == {"text": "First", "url": "/n"}


def test_pinned_documents_of_rules_respect_search_and_rule_filters(tenant: Tenant) -> None:
    tenant.index(page(1, kind="a"), page(2, kind="b"), page(3, kind="b"))
    put(tenant, rules=[rule({"pin": ["page-1", "page-3"], "filters": "kind = b"}), rule({"filters": "nope = 1"}, "b")])

    assert tenant.found_ids("page") == ["page-3", "page-2"]
    assert tenant.found_ids("page", filters=tenant.equals("kind", "a")) == []


def test_rule_can_replace_the_query(tenant: Tenant) -> None:
    tenant.index(page(1, title="Vessels"), page(2, title="Boats"))
    put(
        tenant,
        pinned=[{"query": "ships", "ids": ["page-2"]}, {"query": "vessels", "ids": ["gone"]}],
        rules=[rule({"replace": "vessels"}, query="ships"), rule({"replace": "boats"}, "b", query="vessels")],
    )

    results = tenant.find("Ships")

    assert [hit["id"] for hit in results["hits"]] == ["page-2", "page-1"]
    assert results["query"] == "Ships"
    assert results["rules"] == ["a"]


def test_rule_can_boost_documents(tenant: Tenant) -> None:
    tenant.index(*(page(at, title="Boats", content="Boats", kind=f"k{at}") for at in range(1, 4)))
    put(tenant, rules=[rule({"boost": {"filters": "kind = k3", "rank": 2}}, query="boats")])

    assert tenant.found_ids("boats")[0] == "page-3"
    assert tenant.found_ids("boat")[0] == "page-1"


def test_analytics_count_the_original_query_when_a_rule_replaces_it(tenant: Tenant) -> None:
    tenant.index(page(1, title="Vessels"))
    put(tenant, rules=[rule({"replace": "vessels"}, query="ships")])
    tenant.find("ships")
    tenant.app.extensions["runtime"].events.flush()

    answer = tenant.private.get("/api/analytics").get_json()
    assert [each["query"] for each in answer["top_queries"]] == ["ships"]


def test_gateway_returns_rules_redirect_notice_and_links(tenant: Tenant, gateway: Gateway) -> None:
    tenant.index(page(1, title="Boats"), page(2, title="Ships"))
    put(
        tenant,
        rules=[rule({"pin": ["page-2"], "redirect": "/b", "notice": {"text": "Hello"}}, query="boats")],
        no_results_links=[{"text": "All", "url": "/all"}],
    )

    found = gateway.search("boats")
    assert [hit["id"] for hit in found["hits"]] == ["page-2", "page-1"]
    assert (found["rules"], found["redirect"], found["notice"]) == (["a"], "/b", {"text": "Hello"})
    assert "no_results_links" not in found
    assert gateway.search("zeppelin")["no_results_links"] == [{"text": "All", "url": "/all"}]


def test_no_results_links_are_returned_only_when_nothing_matches(tenant: Tenant) -> None:
    tenant.index(page(1, title="Boats"))
    assert "no_results_links" not in tenant.find("zeppelin")

    put(tenant, no_results_links=[{"text": "All", "url": "/all"}])

    assert tenant.find("zeppelin")["no_results_links"] == [{"text": "All", "url": "/all"}]
    assert "no_results_links" not in tenant.find("boats")
    assert not {"rules", "redirect", "notice"} & set(tenant.find("boats"))


def test_settings_preview_shows_the_effect_of_rules_and_boosts(tenant: Tenant) -> None:
    tenant.index(*(page(at, title="Boats", content="Boats", kind=f"k{at}") for at in range(1, 4)))
    settings = {
        "rules": [rule({"pin": ["page-3"]}, query="boat", match="contains"), rule({"pin": ["nobody"]}, "b", query="x")],
        "boosts": [{"filters": "kind = k2", "rank": 1}],
    }

    path = f"/sites/{tenant.site_id}/search-settings/preview"
    answer = tenant.private.post(path, json={"settings": settings, "queries": ["boats"]}).get_json()

    assert [each["id"] for each in answer["queries"][0]["after"]] == ["page-3", "page-2", "page-1"]
    assert answer["queries"][0]["changed"]
    assert [each["code"] for each in answer["warnings"]] == ["unknown_document"]
    assert tenant.found_ids("boats")[0] == "page-1"
