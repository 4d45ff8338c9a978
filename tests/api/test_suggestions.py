"""GET /v1/suggest."""

from __future__ import annotations

from typing import Any

import pytest

from app.models import QueryWindow
from app.services.search.suggestions import FrequentQueryCache
from backends.errors import BackendUnavailable, ReplyTooLarge
from tests import shared_servers
from tests.callers import ApiClient, Tenant, page


def searched(tenant: Tenant, *, missed: int = 0, **visitors: int) -> None:
    """Say of queries how many visitors searched them with results in 30 days."""
    with tenant.app.extensions["runtime"].database.write() as session:
        for query, found in visitors.items():
            session.merge(
                QueryWindow(
                    scope=tenant.site_id,
                    query=query,
                    **{f"{kind}_{days}": 0 for kind in ("searches", "zero_results") for days in (7, 30, 90)},
                    found_visitors_30=found,
                    missed_visitors_30=missed,
                )
            )


def suggest(client: ApiClient, q: str | None = None, **parameters: Any) -> list[dict[str, Any]]:
    """Ask for suggestions, which must work."""
    wanted = parameters if q is None else {"q": q, **parameters}
    response = client.get("/v1/suggest", query_string=wanted)
    assert response.status_code == 200, response.get_json()
    found: list[dict[str, Any]] = response.get_json()["suggestions"]
    return found


def texts(client: ApiClient, q: str | None = None, **parameters: Any) -> list[str]:
    return [each["text"] for each in suggest(client, q, **parameters)]


def test_queries_come_first_by_visitors_and_then_titles(tenant: Tenant) -> None:
    tenant.index(page(1, title="Winter  opening", url="/winter"), page(2, title="Opening of the bridge"), page(3))
    searched(tenant, **{"opening hours": 4, "open data": 9, "reopen": 20})

    assert suggest(tenant.search, "  OPEN") == [
        {"text": "open data", "kind": "query"},
        {"text": "opening hours", "kind": "query"},
        {"text": "Opening of the bridge", "kind": "title", "url": "/pages/2"},
        {"text": "Winter opening", "kind": "title", "url": "/winter"},
    ]


def test_what_fewer_than_three_visitors_searched_is_never_shown(tenant: Tenant) -> None:
    tenant.index(page(1, title="Something else"))
    searched(tenant, **{"salary of john": 2, "salary table": 3}, missed=50)

    assert texts(tenant.search, "salary") == ["salary table"]
    assert texts(tenant.search) == ["salary table"]


def test_a_query_is_suggested_once_three_sessions_made_it_with_results(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"))
    made = [("opening hours", f"visitor-{number}") for number in range(3)]
    made += [("opening", "one visitor"), ("hours", "one visitor"), ("hours", "another"), ("ope hour", "one visitor")]
    made += [("nowhere", f"visitor-{number}") for number in range(9)]
    for text, session in made:
        tenant.find(text, session_id=session)
    for _ in range(9):
        tenant.find("opening hours page")  # Nobody knows whether these are one visitor.
        tenant.find("hours", session_id="one visitor")
    tenant.app.extensions["runtime"].events.flush()

    assert texts(tenant.search) == ["opening hours"]


@pytest.mark.parametrize("q", [None, "", "  "])
def test_where_nothing_was_typed_the_most_frequent_queries_are_shown(tenant: Tenant, q: str | None) -> None:
    tenant.index(page(1))
    searched(tenant, hours=3, tickets=7)

    assert suggest(tenant.search, q) == [{"text": "tickets", "kind": "query"}, {"text": "hours", "kind": "query"}]


def test_there_are_eight_unless_another_number_is_asked_for(tenant: Tenant) -> None:
    tenant.index(*(page(number, title=f"Ticket number {number}") for number in range(30)))
    searched(tenant, **{f"tickets {number}": 3 for number in range(6)})

    kinds = [each["kind"] for each in suggest(tenant.search, "tick")]

    assert kinds == ["query"] * 6 + ["title"] * 2
    assert [len(suggest(tenant.search, "tick", limit=limit)) for limit in (1, 6, 20)] == [1, 6, 20]


def test_a_deleted_page_is_suggested_no_more(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tram timetable"), page(2, title="Tram map"))
    assert sorted(texts(tenant.search, "tram")) == ["Tram map", "Tram timetable"]

    tenant.private.delete("/api/v1/index/destroy?id=page-1")

    assert texts(tenant.search, "tram") == ["Tram map"]


def test_queries_of_a_site_whose_documents_are_all_gone_are_not_suggested(tenant: Tenant) -> None:
    searched(tenant, hours=9)

    assert texts(tenant.search, "ho") == []


def test_a_long_title_is_cut(tenant: Tenant) -> None:
    tenant.index(page(1, title="Regulation " + "x" * 300))

    (title,) = texts(tenant.search, "reg")

    assert title == "Regulation " + "x" * 188 + "…"


def test_no_search_is_charged_and_none_is_in_the_analytics(tenant: Tenant) -> None:
    tenant.index(page(1))
    for _ in range(3):
        suggest(tenant.search, "page")

    tenant.app.extensions["runtime"].events.flush()
    assert tenant.private.get("/v1/client-info").get_json()["limits"]["used_today"] == 0
    assert tenant.private.get("/api/analytics").get_json()["total_searches"] == 0


def test_it_goes_on_when_the_searches_of_the_day_are_used_up(tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.set_plan("pro", searches_per_day=1)
    tenant.find("page")
    assert tenant.search.get("/v1/search?q=page").status_code == 429

    assert texts(tenant.search, "page") == ["Page 1"]


def test_a_request_with_a_search_key_counts_in_the_requests_of_the_account(tenant: Tenant) -> None:
    before = int(tenant.search.get("/v1/suggest").headers["X-RateLimit-Remaining"])
    after = int(tenant.search.get("/v1/search?q=x").headers["X-RateLimit-Remaining"])

    assert before - after == 1


# --- who may


@pytest.mark.parametrize("kind", ["search", "private"])
def test_search_and_private_keys_may_ask(tenant: Tenant, kind: str) -> None:
    assert suggest(tenant.client(kind), "x") == []


def test_a_public_key_is_told_what_to_do_instead(tenant: Tenant) -> None:
    response = tenant.public.get("/v1/suggest?q=x")

    assert response.status_code == 403
    assert response.get_json()["error"] == "insufficient_permission"
    assert "/v1/client-info" in response.get_json()["message"]


def test_nobody_and_a_session_are_401(tenant: Tenant) -> None:
    assert ApiClient(tenant.app).get("/v1/suggest?q=x").status_code == 401
    assert tenant.browser.get("/v1/suggest?q=x").status_code == 401


def test_a_stranger_sees_nothing_of_another_account(tenant: Tenant, stranger: Tenant) -> None:
    tenant.index(page(1, title="Secret plan"))
    searched(tenant, **{"secret plan": 9})
    stranger.index(page(1, title="Secretary"))

    assert texts(stranger.private, "secret") == ["Secretary"]
    for kind in ("search", "private"):
        response = stranger.client(kind).get(f"/v1/suggest?q=secret&site_id={tenant.site_id}")
        assert (response.status_code, response.get_json()["error"]) == (404, "site_not_found")


def test_a_private_key_may_name_a_site_of_its_account_and_a_search_key_only_its_own(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]
    tenant.private.post("/api/v1/index/bulk", json={"site_id": other["id"], "documents": [page(1, title="Elsewhere")]})

    assert texts(tenant.private, "else", site_id=other["id"]) == ["Elsewhere"]
    assert texts(tenant.private, "else") == []
    assert tenant.search.get(f"/v1/suggest?q=else&site_id={other['id']}").status_code == 403


def test_a_paused_site_suggests_nothing(tenant: Tenant) -> None:
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    response = tenant.search.get("/v1/suggest?q=x")

    assert (response.status_code, response.get_json()["error"]) == (403, "site_inactive")


# --- without its parts


def test_without_the_engine_and_without_the_database_it_is_unavailable(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tenant.app.extensions["runtime"]
    tenant.index(page(1))

    def be_away(*args: object) -> None:
        raise BackendUnavailable("The search engine does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(part.engines.current, "find_titles", be_away)
        response = tenant.search.get("/v1/suggest?q=page")
        assert (response.status_code, response.get_json()["error"]) == (503, "search_engine_unavailable")
        assert tenant.search.get("/v1/suggest").status_code == 200  # Nothing was typed: no title is looked for.
    part.suggester.frequent_queries = FrequentQueryCache(part.database)
    with shared_servers.database_away(tenant.app):
        response = tenant.search.get("/v1/suggest?q=page")
        assert (response.status_code, response.get_json()["error"]) == (503, "database_unavailable")
    assert texts(tenant.search, "page") == ["Page 1"]


def test_it_goes_on_without_counters(tenant: Tenant) -> None:
    tenant.index(page(1))
    with shared_servers.counters_away(tenant.app):
        assert texts(tenant.search, "page") == ["Page 1"]


def test_an_index_that_was_lost_is_built_again(tenant: Tenant) -> None:
    tenant.index(page(1))
    engine = tenant.app.extensions["runtime"].engines.current
    for index in engine.list_indexes():
        engine.delete_index(index)

    assert texts(tenant.search, "page") == ["Page 1"]


def test_documents_that_are_too_large_for_an_engines_answer_are_named(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer_too_much(*args: object) -> None:
        raise ReplyTooLarge

    monkeypatch.setattr(tenant.app.extensions["runtime"].engines.current, "find_titles", answer_too_much)

    response = tenant.search.get("/v1/suggest?q=page")

    assert (response.status_code, response.get_json()["error"]) == (400, "answer_too_large")


# --- parameters


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("q=" + "x" * 513, "q"),
        ("q=a%00b", "q"),
        ("q=%ff", "query string"),
        ("limit=0", "limit"),
        ("limit=21", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("site_id=abc", "site_id"),
    ],
)
def test_bad_parameters_are_named(ann: Tenant, query: str, field: str) -> None:
    response = ann.search.get(f"/v1/suggest?{query}")

    assert response.status_code == 400
    assert response.get_json()["error"] == "validation_failed"
    assert [detail["field"] for detail in response.get_json()["details"]] == [field]


def test_an_unknown_parameter_is_a_warning(ann: Tenant) -> None:
    answer = ann.search.get("/v1/suggest?q=x&fuzzy=1&limit=3").get_json()

    assert answer["warnings"] == [{"code": "unknown_parameter", "field": "fuzzy"}]
    assert "warnings" not in ann.search.get("/v1/suggest?q=x").get_json()


@pytest.mark.parametrize("q", ["\u202e\u202dabc", "x" * 512, "日" * 170, "\u0301" * 256, "a " * 256, "%", "\\n", "😀"])
def test_any_text_is_taken(ann: Tenant, q: str) -> None:
    assert suggest(ann.search, q) == []
