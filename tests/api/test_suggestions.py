"""GET /v1/suggest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.clock import now
from app.models import QueryDay
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS, RUN_CODES
from app.services.search.suggestions import MAX_CHECKS, FrequentQueryCache
from backends.errors import BackendUnavailable, ResponseTooLarge
from tests import shared_servers
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.gateway.callers import Gateway


def searched(tenant: Tenant, *, missed: int = 0, **visitors: int) -> None:
    """Record how many visitors searched each query with results."""
    with tenant.app.extensions["runtime"].database.write() as session:
        for query, found in visitors.items():
            session.merge(
                QueryDay(
                    site_id=tenant.site_id,
                    day=to_microseconds(now()) // DAY_MICROSECONDS,
                    query=query,
                    searches=found,
                    zero_results=0,
                    visitors=found,
                    found_visitors=found,
                    missed_visitors=missed,
                    last_run=to_microseconds(now()) * 8 + RUN_CODES["all"],
                )
            )


def suggest(client: ApiClient, q: str | None = None, **parameters: Any) -> list[dict[str, Any]]:
    """Return the suggestions of a request that must succeed."""
    wanted = parameters if q is None else {"q": q, **parameters}
    response = client.get("/v1/suggest", query_string=wanted)
    assert response.status_code == 200, response.get_json()
    found: list[dict[str, Any]] = response.get_json()["suggestions"]
    return found


def texts(client: ApiClient, q: str | None = None, **parameters: Any) -> list[str]:
    return [each["text"] for each in suggest(client, q, **parameters)]


def test_suggestions_are_queries_by_visitors_and_then_titles(tenant: Tenant) -> None:
    tenant.index(page(1, title="Winter  opening", url="/winter"), page(2, title="Opening of the bridge"), page(3))
    searched(tenant, **{"opening hours": 4, "open data": 9, "reopen": 20})

    assert suggest(tenant.search, "  OPEN") == [
        {"text": "open data", "kind": "query"},
        {"text": "opening hours", "kind": "query"},
        {"text": "Opening of the bridge", "kind": "title", "url": "/pages/2"},
        {"text": "Winter opening", "kind": "title", "url": "/winter"},
    ]


def test_queries_of_fewer_than_three_visitors_are_never_suggested(tenant: Tenant) -> None:
    tenant.index(page(1, title="Something else"))
    searched(tenant, **{"salary of john": 2, "salary table": 3}, missed=50)

    assert texts(tenant.search, "salary") == ["salary table"]
    assert texts(tenant.search) == ["salary table"]


def test_query_is_suggested_after_three_sessions_searched_it_with_results(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"))
    made = [("opening hours", f"visitor-{number}") for number in range(3)]
    made += [("opening", "one visitor"), ("hours", "one visitor"), ("hours", "another"), ("ope hour", "one visitor")]
    made += [("nowhere", f"visitor-{number}") for number in range(9)]
    for text, session in made:
        tenant.find(text, session_id=session)
    for _ in range(9):
        tenant.find("opening hours page")  # Without session IDs, these may all be one visitor.
        tenant.find("hours", session_id="one visitor")
    tenant.app.extensions["runtime"].events.flush()

    assert texts(tenant.search) == ["opening hours"]


def logged(tenant: Tenant, query: str, *addresses: str, results: int = 5) -> None:
    """Log searches by visitors at these IP addresses, as sent directly to the engine."""
    for number, address in enumerate(addresses):
        response = tenant.public.post(
            "/api/v1/search-log",
            json={"query": query, "results_count": results, "session_id": f"session-{number}"},
            environ_overrides={"REMOTE_ADDR": address},
        )
        assert response.status_code == 200, response.get_json()
    tenant.app.extensions["runtime"].events.flush()


ADDRESSES = ("198.51.100.1", "198.51.100.2", "2001:db8::1")


def test_session_ids_sent_with_public_keys_do_not_count_as_visitors(tenant: Tenant) -> None:
    tenant.index(page(1, title="Buy at Evil Corp"))
    logged(tenant, "buy at evil corp", *["198.51.100.1"] * 9)
    gateway = Gateway(tenant)
    for number in range(9):
        gateway.send({"q": "buy at evil"}, headers={"X-Search-Session": f"invented-{number}"})
    tenant.app.extensions["runtime"].events.flush()

    assert [each["kind"] for each in suggest(tenant.search, "buy")] == ["title"]


def test_three_ip_addresses_count_as_three_visitors_and_an_ipv6_network_as_one(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"))
    logged(tenant, "opening", *(f"2001:db8::{number}" for number in range(1, 9)), "198.51.100.1")
    logged(tenant, "hours", *ADDRESSES)

    assert texts(tenant.search) == ["hours"]


@pytest.mark.parametrize("session_id", [None, "one visitor"])
def test_visitor_returning_on_many_days_counts_once(app: Flask, session_id: str | None) -> None:
    with time_machine.travel(datetime(2026, 3, 10, 12, tzinfo=UTC), tick=False) as clock:
        tenant = register_tenant(app, "days@example.com")
        tenant.index(page(1, title="Opening hours"))
        for _ in range(40):
            if session_id is None:
                Gateway(tenant).search("opening hours")
            else:
                tenant.find("opening hours", session_id=session_id)
            app.extensions["runtime"].events.flush()
            clock.shift(timedelta(days=1))

        assert [each["kind"] for each in suggest(tenant.search, "opening hours")] == ["title"]


def test_query_is_suggested_only_if_its_last_search_matched_fully(tenant: Tenant) -> None:
    for number in range(3):
        tenant.find("tram timetable", session_id=f"visitor-{number}")
    tenant.app.extensions["runtime"].events.flush()
    tenant.index(page(1, title="Tram"))
    suggester = tenant.app.extensions["runtime"].suggester

    def suggested_after(*documents: dict[str, Any]) -> list[str]:
        tenant.index(*documents)
        tenant.find("tram timetable", session_id="visitor-1")
        tenant.app.extensions["runtime"].events.flush()
        suggester.frequent_queries = FrequentQueryCache(tenant.app.extensions["runtime"].database)
        return texts(tenant.search)

    assert suggested_after(page(1, title="Tram")) == []
    assert suggested_after(page(1, title="Tram timetable")) == ["tram timetable"]
    assert suggested_after(page(1, title="Bus")) == []


def test_misspelled_query_is_never_suggested(tenant: Tenant) -> None:
    tenant.index(page(1, title="Commit message"))
    for number in range(5):
        assert tenant.find("comit message", session_id=f"visitor-{number}")["matched"] == "corrected"
        tenant.find("commit message", session_id=f"visitor-{number}")
    logged(tenant, "comit messages", *ADDRESSES)

    assert texts(tenant.search) == ["commit message"]


def test_logged_query_is_suggested_only_if_it_finds_documents_here(tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"))
    logged(tenant, "opening hours", *ADDRESSES)
    logged(tenant, "buy at evil corp", *ADDRESSES)
    logged(tenant, "opening evil", *ADDRESSES)
    logged(tenant, "hours", *ADDRESSES, results=0)

    assert texts(tenant.search) == ["hours", "opening hours"]
    assert tenant.private.get("/v1/client-info").get_json()["limits"]["used_today"] == 0


def test_one_request_verifies_a_limited_number_of_logged_queries(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1, title="Opening hours"))
    with tenant.app.extensions["runtime"].database.write() as session:
        for number in range(MAX_CHECKS + 1):
            query = "opening hours" if number == MAX_CHECKS else f"bogus {number:02}"
            day = to_microseconds(now()) // DAY_MICROSECONDS
            counts = {"searches": 3, "zero_results": 3, "visitors": 99 - number}
            session.add(QueryDay(site_id=tenant.site_id, day=day, query=query, **counts))
    engine = tenant.app.extensions["runtime"].engines.default
    asked = []
    search = engine.search
    monkeypatch.setattr(engine, "search", lambda *args: asked.append(args) or search(*args))

    assert [texts(tenant.search) for _ in range(3)] == [[], ["opening hours"], ["opening hours"]]
    assert len(asked) == MAX_CHECKS + 1


@pytest.mark.parametrize(
    ("hidden", "left"),
    [
        ([], ["opening day", "opening hours", "Opening of the bridge"]),
        (["  OPENING  hours "], ["opening day", "Opening of the bridge"]),
        (["opening"], ["opening day", "opening hours", "Opening of the bridge"]),
        (["*hours"], ["opening day", "Opening of the bridge"]),
        (["opening*", "x"], []),
        (["*of*", "o*day"], ["opening hours"]),
        (["*"], []),
    ],
)
def test_hidden_texts_are_not_suggested_from_the_next_request_on(
    tenant: Tenant, hidden: list[str], left: list[str]
) -> None:
    tenant.index(page(1, title="Opening of the bridge"))
    searched(tenant, **{"opening hours": 3, "opening day": 4})
    assert len(texts(tenant.search, "opening")) == 3

    response = tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"suggestions_hidden": hidden})

    assert response.status_code == 200, response.get_json()
    assert texts(tenant.search, "opening") == left  # From the next request on.


def test_hidden_titles_are_replaced_by_other_titles(tenant: Tenant) -> None:
    tenant.index(*(page(number, title=f"Ticket {'sale' if number < 5 else 'office'} {number}") for number in range(10)))
    tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"suggestions_hidden": ["ticket sale*"]})

    assert len(texts(tenant.search, "ticket", limit=5)) == 5
    assert not any("sale" in text for text in texts(tenant.search, "ticket", limit=20))


def test_suggested_titles_respect_the_search_filters(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tram timetable", section="visit"), page(2, title="Tram accident", section="news"))
    searched(tenant, **{"tram stop": 3})

    assert texts(tenant.search, "tram", filters=tenant.equals("section", "visit")) == ["tram stop", "Tram timetable"]
    response = tenant.search.get("/v1/suggest", query_string={"q": "tram", "filters": "section = = x"})
    assert (response.status_code, response.get_json()["error"]) == (400, "invalid_filter")


@pytest.mark.parametrize(
    ("filter", "titles"),
    [
        ('section = "visit"', ["Tram timetable"]),
        (["section = news"], ["Tram accident"]),
        ([["section = news", "section = visit"]], ["Tram accident", "Tram timetable"]),
        ("", ["Tram accident", "Tram timetable"]),
    ],
)
def test_gateway_suggestions_respect_the_filter(tenant: Tenant, filter: Any, titles: list[str]) -> None:
    tenant.index(page(1, title="Tram timetable", section="visit"), page(2, title="Tram accident", section="news"))

    response = Gateway(tenant).client.post("/engine/suggest", json={"q": "tram", "filter": filter})

    assert response.status_code == 200, response.get_json()
    assert sorted(each["text"] for each in response.get_json()["suggestions"]) == titles


def test_gateway_suggestions_with_an_invalid_filter_return_400(tenant: Tenant) -> None:
    response = Gateway(tenant).client.get("/engine/suggest", query_string={"q": "tram", "filter": "section = = x"})

    assert (response.status_code, response.get_json()["code"]) == (400, "invalid_search_filter")


@pytest.mark.parametrize("q", [None, "", "  "])
def test_empty_input_suggests_the_most_frequent_queries(tenant: Tenant, q: str | None) -> None:
    tenant.index(page(1))
    searched(tenant, hours=3, tickets=7)

    assert suggest(tenant.search, q) == [{"text": "tickets", "kind": "query"}, {"text": "hours", "kind": "query"}]


def test_suggestions_are_limited_to_eight_by_default(tenant: Tenant) -> None:
    tenant.index(*(page(number, title=f"Ticket number {number}") for number in range(30)))
    searched(tenant, **{f"tickets {number}": 3 for number in range(6)})

    kinds = [each["kind"] for each in suggest(tenant.search, "tick")]

    assert kinds == ["query"] * 6 + ["title"] * 2
    assert [len(suggest(tenant.search, "tick", limit=limit)) for limit in (1, 6, 20)] == [1, 6, 20]


def test_deleted_page_is_no_longer_suggested(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tram timetable"), page(2, title="Tram map"))
    assert sorted(texts(tenant.search, "tram")) == ["Tram map", "Tram timetable"]

    tenant.private.delete("/api/v1/index/destroy?id=page-1")

    assert texts(tenant.search, "tram") == ["Tram map"]


def test_queries_are_not_suggested_for_a_site_without_documents(tenant: Tenant) -> None:
    searched(tenant, hours=9)

    assert texts(tenant.search, "ho") == []


def test_long_title_is_truncated(tenant: Tenant) -> None:
    tenant.index(page(1, title="Regulation " + "x" * 300))

    (title,) = texts(tenant.search, "reg")

    assert title == "Regulation " + "x" * 188 + "…"


def test_suggestions_use_no_quota_and_are_not_in_analytics(tenant: Tenant) -> None:
    tenant.index(page(1))
    for _ in range(3):
        suggest(tenant.search, "page")

    tenant.app.extensions["runtime"].events.flush()
    assert tenant.private.get("/v1/client-info").get_json()["limits"]["used_today"] == 0
    assert tenant.private.get("/api/analytics").get_json()["total_searches"] == 0


def test_suggestions_continue_when_the_daily_search_quota_is_used_up(tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.set_plan("pro", searches_per_day=1)
    tenant.find("page")
    assert tenant.search.get("/v1/search?q=page").status_code == 429

    assert texts(tenant.search, "page") == ["Page 1"]


def test_suggestions_with_a_search_key_count_towards_its_rate_limit(tenant: Tenant) -> None:
    before = int(tenant.search.get("/v1/suggest").headers["X-RateLimit-Remaining"])
    after = int(tenant.search.get("/v1/search?q=x").headers["X-RateLimit-Remaining"])

    assert before - after == 1


# --- permissions


@pytest.mark.parametrize("kind", ["search", "private"])
def test_search_and_private_keys_can_get_suggestions(tenant: Tenant, kind: str) -> None:
    assert suggest(tenant.client(kind), "x") == []


def test_public_key_gets_403_pointing_to_client_info(tenant: Tenant) -> None:
    response = tenant.public.get("/v1/suggest?q=x")

    assert response.status_code == 403
    assert response.get_json()["error"] == "insufficient_permission"
    assert "/v1/client-info" in response.get_json()["message"]


def test_suggestions_without_an_api_key_return_401(tenant: Tenant) -> None:
    assert ApiClient(tenant.app).get("/v1/suggest?q=x").status_code == 401
    assert tenant.browser.get("/v1/suggest?q=x").status_code == 401


def test_suggestions_exclude_other_accounts(tenant: Tenant, stranger: Tenant) -> None:
    tenant.index(page(1, title="Secret plan"))
    searched(tenant, **{"secret plan": 9})
    stranger.index(page(1, title="Secretary"))

    assert texts(stranger.private, "secret") == ["Secretary"]
    for kind in ("search", "private"):
        response = stranger.client(kind).get(f"/v1/suggest?q=secret&site_id={tenant.site_id}")
        assert (response.status_code, response.get_json()["error"]) == (404, "site_not_found")


def test_private_keys_may_choose_a_site_but_search_keys_may_not(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]
    tenant.private.post("/api/v1/index/bulk", json={"site_id": other["id"], "documents": [page(1, title="Elsewhere")]})

    assert texts(tenant.private, "else", site_id=other["id"]) == ["Elsewhere"]
    assert texts(tenant.private, "else") == []
    assert tenant.search.get(f"/v1/suggest?q=else&site_id={other['id']}").status_code == 403


def test_suggestions_of_a_paused_site_return_403(tenant: Tenant) -> None:
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    response = tenant.search.get("/v1/suggest?q=x")

    assert (response.status_code, response.get_json()["error"]) == (403, "site_inactive")


# --- outages


def test_suggestions_return_503_without_the_engine_or_database(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tenant.app.extensions["runtime"]
    tenant.index(page(1))

    def be_away(*args: object, **wishes: object) -> None:
        raise BackendUnavailable("The search engine does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(part.engines.default, "find_titles", be_away)
        response = tenant.search.get("/v1/suggest?q=page")
        assert (response.status_code, response.get_json()["error"]) == (503, "search_engine_unavailable")
        assert tenant.search.get("/v1/suggest").status_code == 200  # Without a query, no titles are searched.
    part.suggester.frequent_queries = FrequentQueryCache(part.database)
    with shared_servers.database_away(tenant.app):
        response = tenant.search.get("/v1/suggest?q=page")
        assert (response.status_code, response.get_json()["error"]) == (503, "database_unavailable")
    assert texts(tenant.search, "page") == ["Page 1"]


def test_suggestions_continue_without_counters(tenant: Tenant) -> None:
    tenant.index(page(1))
    with shared_servers.counters_away(tenant.app):
        assert texts(tenant.search, "page") == ["Page 1"]


def test_lost_index_is_rebuilt_for_suggestions(tenant: Tenant) -> None:
    tenant.index(page(1))
    engine = tenant.app.extensions["runtime"].engines.default
    for index in engine.list_indexes():
        engine.delete_index(index)

    assert texts(tenant.search, "page") == ["Page 1"]


def test_oversized_engine_response_returns_answer_too_large(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer_too_much(*args: object, **wishes: object) -> None:
        raise ResponseTooLarge

    monkeypatch.setattr(tenant.app.extensions["runtime"].engines.default, "find_titles", answer_too_much)

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
def test_invalid_suggestion_parameters_return_400_naming_the_field(ann: Tenant, query: str, field: str) -> None:
    response = ann.search.get(f"/v1/suggest?{query}")

    assert response.status_code == 400
    assert response.get_json()["error"] == "validation_failed"
    assert [detail["field"] for detail in response.get_json()["details"]] == [field]


def test_unknown_suggestion_parameter_causes_a_warning(ann: Tenant) -> None:
    answer = ann.search.get("/v1/suggest?q=x&fuzzy=1&limit=3").get_json()

    assert answer["warnings"] == [{"code": "unknown_parameter", "field": "fuzzy"}]
    assert "warnings" not in ann.search.get("/v1/suggest?q=x").get_json()


@pytest.mark.parametrize("q", ["\u202e\u202dabc", "x" * 512, "日" * 170, "\u0301" * 256, "a " * 256, "%", "\\n", "😀"])
def test_suggestions_accept_any_unicode_text(ann: Tenant, q: str) -> None:
    assert suggest(ann.search, q) == []
