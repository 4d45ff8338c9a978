"""GET and PUT /sites/{id}/search-settings, and POST /sites/{id}/search-settings/preview."""

from __future__ import annotations

from typing import Any

import pytest

from app.services.usage import quota
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.responses import assert_error


def put(tenant: Tenant, **settings: Any) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    assert response.status_code == 200, response.get_json()


def test_new_site_has_default_search_settings(tenant: Tenant) -> None:
    answer = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()

    assert answer == {
        "settings": {
            "language": None, "synonyms": [], "stop_words": None, "pinned": [], "hidden": [], "weights": {},
            "suggestions_hidden": [], "distinct": None, "preferred": None, "rules": [], "boosts": [],
            "rank_field": None, "recency": None, "no_results_links": [], "no_results_popular": 0,
            "learn_from_clicks": False, "answers": False, "semantic": False, "ask": False, "ask_instructions": "",
        }
    }  # fmt: skip


def test_settings_are_normalized_and_absent_fields_reset_to_defaults(tenant: Tenant) -> None:
    put(tenant, language="de", weights={"title": 2})
    put(tenant, synonyms=[["car", "automobile"]], suggestions_hidden=["  Evil   CORP ", "*casino*"])

    answer = tenant.browser.get(f"/sites/{tenant.site_id}/search-settings").get_json()

    assert answer["settings"]["language"] is None
    assert answer["settings"]["synonyms"] == [["car", "automobile"]]
    assert answer["settings"]["weights"] == {}
    assert answer["settings"]["suggestions_hidden"] == ["evil corp", "*casino*"]


def test_one_way_synonyms_are_stored_as_sent_and_apply_in_one_direction(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tablet"), page(2, title="iPad"))
    synonyms = [["car", "automobile"], {"from": "tablet", "to": ["ipad"]}]

    put(tenant, synonyms=synonyms)
    tenant.settle()

    answer = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()
    assert answer["settings"]["synonyms"] == synonyms
    assert sorted(tenant.found_ids("tablet")) == ["page-1", "page-2"]
    assert tenant.found_ids("ipad") == ["page-2"]


def test_synonyms_apply_to_the_next_search(tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Bread"))
    assert tenant.found_ids("car") == []

    put(tenant, synonyms=[["car", "automobile"]])
    tenant.settle()

    assert tenant.found_ids("car") == ["page-1"]


def test_pinned_documents_come_first(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours and hours of hours"), page(3, title="Contact"))

    put(tenant, pinned=[{"query": "  Hours ", "ids": ["page-3"]}])

    assert tenant.found_ids("hours")[0] == "page-3"
    assert sorted(tenant.found_ids("hours")) == ["page-1", "page-2", "page-3"]


def test_hidden_documents_are_not_returned_for_that_query(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours of work"))

    put(tenant, hidden=[{"query": "  Hours ", "ids": ["page-2"]}])

    assert tenant.found_ids("HOURS") == ["page-1"]
    assert sorted(tenant.found_ids("hour")) == ["page-1", "page-2"]


def test_unknown_document_ids_in_settings_cause_a_warning(tenant: Tenant) -> None:
    tenant.index(page(1))
    settings = {
        "pinned": [{"query": "a", "ids": ["page-1", "gone"]}],
        "hidden": [{"query": "a", "ids": ["gone", "page-9"]}],
    }

    answer = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings).get_json()

    assert answer["warnings"] == [
        {"code": "unknown_document", "message": "No document has the ID gone."},
        {"code": "unknown_document", "message": "No document has the ID page-9."},
    ]
    settings["pinned"][0]["ids"] = settings["hidden"][0]["ids"] = ["page-1"]
    assert "warnings" not in tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings).get_json()


def test_weights_change_which_field_ranks_higher(tenant: Tenant) -> None:
    tenant.index(
        page("title", title="Harbour", content="Nothing of that kind."),
        page("content", title="Something", content="The harbour, the old harbour and the new harbour."),
    )
    assert tenant.found_ids("harbour")[0] == "page-title"

    put(tenant, weights={"title": 0.01, "content": 10})

    has_weights = tenant.app.extensions["runtime"].engines.default.name != "meilisearch"
    assert tenant.found_ids("harbour")[0] == ("page-content" if has_weights else "page-title")


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"language": "xx"}, "language"),
    ({"synonyms": [["alone"]]}, "synonyms[0]"),
    ({"synonyms": [["a", 5]]}, "synonyms[0][1]"),
    ({"synonyms": "a,b"}, "synonyms"),
    ({"synonyms": ["a,b"]}, "synonyms[0]"),
    ({"synonyms": [{"from": "a"}]}, "synonyms[0].to"),
    ({"synonyms": [{"from": "", "to": ["b"]}]}, "synonyms[0].from"),
    ({"synonyms": [{"from": "a", "to": []}]}, "synonyms[0].to"),
    ({"synonyms": [{"from": "a", "to": ["b"], "both": True}]}, "synonyms[0].both"),
    ({"stop_words": [""]}, "stop_words[0]"),
    ({"pinned": [{"query": "x"}]}, "pinned[0].ids"),
    ({"pinned": [{"query": " ", "ids": ["a"]}]}, "pinned[0].query"),
    ({"hidden": [{"query": "x", "ids": []}]}, "hidden[0].ids"),
    ({"suggestions_hidden": "casino"}, "suggestions_hidden"),
    ({"suggestions_hidden": ["x", " "]}, "suggestions_hidden[1]"),
    ({"suggestions_hidden": ["é" * 257]}, "suggestions_hidden[0]"),
    ({"suggestions_hidden": [f"text {number}" for number in range(501)]}, "suggestions_hidden"),
    ({"weights": {"title": 11}}, "weights.title"),
    ({"weights": {"titel": 1}}, "weights.titel"),
    ({"synonym": []}, "synonym"),
]


@pytest.mark.parametrize(("body", "field"), MISTAKES)
def test_invalid_settings_return_400_naming_the_field_and_change_nothing(
    tenant: Tenant, body: dict[str, Any], field: str
) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=body)

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == field
    unchanged = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    assert unchanged["language"] is None
    assert unchanged["synonyms"] == []


def test_another_accounts_search_settings_return_404(tenant: Tenant, stranger: Tenant) -> None:
    path = f"/sites/{stranger.site_id}/search-settings"

    assert tenant.private.get(path).status_code == 404
    assert tenant.private.put(path, json={}).status_code == 404


def ask(tenant: Tenant, **body: Any) -> dict[str, Any]:
    response = tenant.private.post(f"/sites/{tenant.site_id}/search-settings/preview", json=body)
    assert response.status_code == 200, response.get_json()
    answer: dict[str, Any] = response.get_json()
    return answer


def test_preview_shows_the_effect_of_settings_and_saves_nothing(tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Bread"))
    automobile = {"id": "page-1", "title": "Automobile repair"}

    pinned = {"pinned": [{"query": "car", "ids": ["page-1"]}]}
    answer = ask(tenant, settings=pinned, queries=["car", " Bread"])

    bread = [{"id": "page-2", "title": "Bread"}]
    assert answer == {
        "queries": [
            {"query": "car", "before": [], "after": [automobile], "changed": True},
            {"query": " Bread", "before": bread, "after": bread, "changed": False},
        ]
    }
    assert tenant.found_ids("car") == []
    assert tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]["pinned"] == []


def test_preview_without_queries_uses_the_most_frequent_recent_ones(tenant: Tenant) -> None:
    events = tenant.app.extensions["runtime"].events
    tenant.index(page(1, title="Bread"))
    assert ask(tenant, settings={}) == {"queries": []}
    for query in ("bread", "rolls", "bread"):
        tenant.find(query)
    events.flush()

    assert [each["query"] for each in ask(tenant, settings={})["queries"]] == ["bread", "rolls"]


def test_preview_uses_no_quota_and_is_not_in_analytics(tenant: Tenant) -> None:
    tenant.index(page(1, title="Bread"))

    ask(tenant, settings={}, queries=["bread"])

    tenant.app.extensions["runtime"].events.flush()
    analytics = tenant.private.get(f"/api/analytics?site_id={tenant.site_id}").get_json()
    assert analytics["total_searches"] == 0
    assert tenant.search.get("/v1/client-info").get_json()["limits"]["used_today"] == 0


def test_preview_warns_of_unknown_document_ids(tenant: Tenant) -> None:
    tenant.index(page(1))
    settings = {"pinned": [{"query": "a", "ids": ["gone", "page-1"]}]}

    answer = ask(tenant, settings=settings, queries=["a"])

    assert answer["warnings"] == [{"code": "unknown_document", "message": "No document has the ID gone."}]


@pytest.mark.parametrize(("body", "field"), MISTAKES)
def test_preview_rejects_invalid_settings_like_saving_does(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    saved = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=body)
    response = tenant.private.post(f"/sites/{tenant.site_id}/search-settings/preview", json={"settings": body})

    assert response.status_code == 400
    (detail, *_), (known, *_) = response.get_json()["details"], saved.get_json()["details"]
    assert detail == {**known, "field": f"settings.{field}"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "settings"),
        ({"settings": {}, "queries": []}, "queries"),
        ({"settings": {}, "queries": ["a"] * 51}, "queries"),
        ({"settings": {}, "queries": ["a" * 410] * 10}, "queries"),
        ({"settings": {}, "queries": ["a", " "]}, "queries[1]"),
        ({"settings": {}, "queries": ["é" * 257]}, "queries[0]"),
        ({"settings": {}, "query": "a"}, "query"),
    ],
)
def test_preview_with_invalid_queries_returns_400_naming_the_field(
    tenant: Tenant, body: dict[str, Any], field: str
) -> None:
    response = tenant.private.post(f"/sites/{tenant.site_id}/search-settings/preview", json=body)

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == field


def test_preview_fails_for_paused_or_foreign_sites_and_during_engine_outages(
    tenant: Tenant, stranger: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, body = f"/sites/{tenant.site_id}/search-settings/preview", {"settings": {}, "queries": ["a"]}
    assert_error(stranger.private.post(path, json=body), 404, "site_not_found")
    with monkeypatch.context() as patch:
        engine = tenant.app.extensions["runtime"].engines.default
        patch.setattr(engine, "search", _away)
        assert_error(tenant.private.post(path, json=body), 503, "search_engine_unavailable")
    tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False})
    assert_error(tenant.private.post(path, json=body), 403, "site_inactive")


def _away(*_: Any) -> None:
    raise BackendUnavailable("The search engine does not answer.")


def test_previews_are_limited_per_day_separately_for_keys_and_members(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "SETTINGS_PREVIEW_LIMIT", 2)
    path, body = f"/sites/{tenant.site_id}/search-settings/preview", {"settings": {}, "queries": ["a", "b"]}

    assert [tenant.private.post(path, json=body).status_code for _ in range(3)] == [200, 200, 429]
    assert [tenant.browser.post(path, json=body).status_code for _ in range(3)] == [200, 200, 429], (
        "keys must use up their own limits"
    )


def test_previews_have_their_own_limit_per_minute(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "SETTINGS_PREVIEW_RATE", 2)
    path = f"/sites/{tenant.site_id}/search-settings/preview"

    for caller in (tenant.private, tenant.browser):
        for queries in (["a"], ["a", "b"]):
            assert caller.post(path, json={"settings": {}, "queries": queries}).status_code == 200
        rejected = caller.post(path, json={"settings": {}, "queries": ["a"]})
        body = assert_error(rejected, 429, "rate_limit_exceeded")
        assert body["message"].startswith("More than 2 previews per minute; try again in")
        assert 0 < int(rejected.headers["Retry-After"]) <= 60
    assert tenant.private.get(f"/sites/{tenant.site_id}").status_code == 200


def test_single_query_previews_of_members_share_the_limit_of_tried_searches(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "SETTINGS_PREVIEW_LIMIT", 0)
    monkeypatch.setattr(quota, "PREVIEW_LIMIT", 2)
    path, body = f"/sites/{tenant.site_id}/search-settings/preview", {"settings": {}, "queries": ["a"]}

    assert [tenant.browser.post(path, json=body).status_code for _ in range(3)] == [200, 200, 429]


RULE = {
    "id": "spring",
    "when": {"query": "boats", "match": "contains", "filters": "lang = en", "from": "2024-03-01", "to": "2024-04-01"},
    "do": {
        "pin": ["page-1"], "hide": ["page-2"], "boost": {"filters": "kind = manual", "rank": -2},
        "filters": "lang = en", "replace": "ships", "redirect": "/fleet",
        "notice": {"text": "Closed on Monday.", "url": "https://example.com/"},
    },
    "enabled": False,
}  # fmt: skip


def test_rules_boosts_and_links_are_returned_as_saved(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    written = {
        "rules": [RULE, {"id": "always", "do": {"replace": "x"}}],
        "boosts": [{"path": "/docs/*", "rank": 2}, {"filters": "kind = manual", "rank": -5}],
        "rank_field": "rank",
        "recency": {"half_life_days": 30},
        "no_results_links": [{"text": "All boats", "url": "/boats"}],
    }

    put(tenant, **written)

    settings = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    always = {"id": "always", "when": {"match": "is"}, "do": {"replace": "x"}, "enabled": True}
    assert settings["rules"] == [RULE, always]
    assert settings["recency"] == {"field": "date", "half_life_days": 30}
    assert {name: settings[name] for name in ("boosts", "rank_field", "no_results_links")} == {
        name: written[name] for name in ("boosts", "rank_field", "no_results_links")
    }


@pytest.mark.parametrize(
    ("settings", "field", "code"),
    [
        ({"rules": [{"id": "a", "do": {}}]}, "rules[0].do", "required"),
        ({"rules": [{"id": "a"}]}, "rules[0].do", "required"),
        ({"rules": [{"id": "a", "do": {"replace": "b"}}] * 2}, "rules[1].id", "duplicate"),
        ({"rules": [{"id": f"{at}", "do": {"replace": "b"}} for at in range(201)]}, "rules", "too_long"),
        ({"rules": [{"id": "a", "do": {"pin": []}}]}, "rules[0].do.pin", "too_short"),
        ({"rules": [{"id": "a", "do": {"pin": ["x"] * 51}}]}, "rules[0].do.pin", "too_long"),
        ({"rules": [{"id": "a", "do": {"filters": "kind ="}}]}, "rules[0].do.filters", "invalid_filter"),
        ({"rules": [{"id": "a", "do": {"filters": "date > soon"}}]}, "rules[0].do.filters", "invalid_filter"),
        ({"boosts": [{"rank": 1, "filters": "price > cheap"}]}, "boosts[0].filters", "invalid_filter"),
        ({"rules": [{"id": "a", "do": {"redirect": "javascript:alert(1)"}}]}, "rules[0].do.redirect", "invalid_url"),
        ({"rules": [{"id": "a", "do": {"redirect": "//evil.example"}}]}, "rules[0].do.redirect", "invalid_url"),
        ({"rules": [{"id": "a", "do": {"notice": {"url": "/"}}}]}, "rules[0].do.notice.text", "required"),
        ({"rules": [{"id": "a", "do": {"boost": {"rank": 1}}}]}, "rules[0].do.boost.filters", "required"),
        ({"rules": [{"id": "a", "when": {"match": "like"}, "do": {"replace": "b"}}]}, "rules[0].when.match",
         "invalid_choice"),
        ({"rules": [{"id": "a", "when": {"from": "soon"}, "do": {"replace": "b"}}]}, "rules[0].when.from",
         "invalid_date"),
        ({"rules": [{"id": "a", "when": {"from": "2024-02-01", "to": "2024-02-01"}, "do": {"replace": "b"}}]},
         "rules[0].when.to", "out_of_range"),
        ({"boosts": [{"rank": 1}]}, "boosts[0]", "required"),
        ({"boosts": [{"rank": 1, "path": "/a", "filters": "a = b"}]}, "boosts[0]", "required"),
        ({"boosts": [{"rank": 6, "path": "/a"}]}, "boosts[0].rank", "out_of_range"),
        ({"boosts": [{"rank": 1, "path": "docs"}]}, "boosts[0].path", "invalid"),
        ({"boosts": [{"rank": 1, "path": "/" + "*a" * 11}]}, "boosts[0].path", "too_many"),
        ({"boosts": [{"rank": 1, "path": "/*a*" + "b" * 247}]}, "boosts[0].path", "too_long"),
        ({"boosts": [{"rank": 1, "path": "/*" + "ж" * 250}]}, "boosts[0].path", "too_long"),
        ({"suggestions_hidden": ["*a" * 11]}, "suggestions_hidden[0]", "too_many"),
        ({"rank_field": "a b"}, "rank_field", "invalid_name"),
        ({"recency": {"half_life_days": 0}}, "recency.half_life_days", "out_of_range"),
        ({"no_results_links": [{"text": "a", "url": "/"}] * 6}, "no_results_links", "too_long"),
        ({"no_results_popular": 6}, "no_results_popular", "out_of_range"),
        ({"no_results_popular": -1}, "no_results_popular", "out_of_range"),
        ({"no_results_popular": True}, "no_results_popular", "type"),
        ({"synonyms": [[f"{at}-{number}" for number in range(26)] for at in range(400)]}, "synonyms", "too_long"),
        ({"synonyms": [{"from": "a", "to": [f"{at}-{number}" for number in range(25)]} for at in range(400)]},
         "synonyms", "too_long"),
        ({"rules": [{"id": f"{at}", "when": {"query": "one two three four five six", "match": "words"},
                     "do": {"replace": "a"}} for at in range(170)]}, "rules", "too_long"),
        ({"rules": [{"id": f"{at}", "do": {"pin": [f"{at}-{number}" for number in range(45)], "hide": ["a"] * 6}}
                    for at in range(20)]}, "rules", "too_long"),
        ({"rules": [{"id": "a", "do": {"filters": f"kind IN [{', '.join(map(str, range(401)))}]"}}],
          "boosts": [{"rank": 1, "filters": "price 1 TO 2 OR NOT kind EXISTS"} for _ in range(34)]},
         "rules", "too_long"),
        ({"no_results_links": [{"text": "a", "url": "mailto:a@example.com"}]}, "no_results_links[0].url",
         "invalid_url"),
    ],
)  # fmt: skip
def test_invalid_rule_boost_or_link_is_rejected_naming_the_field(
    tenant: Tenant, settings: dict[str, Any], field: str, code: str
) -> None:
    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings)

    assert response.status_code == 400
    assert [(each["field"], each["code"]) for each in response.get_json()["details"]] == [(field, code)]


def test_settings_update_with_a_stale_etag_returns_412(tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    read = tenant.private.get(path).headers["ETag"]
    mine = tenant.private.put(path, json={"distinct": "mine"}, headers={"If-Match": read})
    assert mine.status_code == 200

    theirs = tenant.browser.put(path, json={"distinct": "theirs"}, headers={"If-Match": read})

    assert_error(theirs, 412, "changed_meanwhile")
    assert theirs.headers["ETag"] == mine.headers["ETag"] == tenant.private.get(path).headers["ETag"] != read
    assert tenant.private.get(path).get_json()["settings"]["distinct"] == "mine"

    fresh = theirs.headers["ETag"]
    again = tenant.browser.put(path, json={"distinct": "theirs"}, headers={"If-Match": f'"other", W/{fresh}'})
    assert again.status_code == 200


@pytest.mark.parametrize("headers", [{}, {"If-Match": "*"}])
def test_settings_update_without_a_specific_etag_overwrites(tenant: Tenant, headers: dict[str, str]) -> None:
    put(tenant, distinct="first")
    path = f"/sites/{tenant.site_id}/search-settings"

    assert tenant.private.put(path, json={"distinct": "second"}, headers=headers).status_code == 200
    assert tenant.private.get(path).get_json()["settings"]["distinct"] == "second"
