"""Quotas and rate limits of the gateway."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
import time_machine
from sqlalchemy import select

from app.counters.values import CountersUnavailable
from app.models import Account, SearchEvent, Site
from app.services.access.credentials import credential_change
from app.services.usage.quota import ADDRESS_LIMIT, BOX_FACTOR, VISITOR_LIMIT
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway, VisitorClient, assert_engine_error, used_today


def limit(tenant: Tenant, **limits: int) -> None:
    """Set limits for the account, as the operator's command does."""
    part = tenant.app.extensions["runtime"]
    with credential_change(part.database, part.counters, tenant.account_id) as session:
        account = session.get(Account, tenant.account_id)
        assert account is not None
        account.limit_overrides = limits


def report(tenant: Tenant, count: int, kind: str = "private") -> None:
    body = {"operation": "search", "count": count, "index": tenant.site["index"]}
    assert tenant.client(kind).post("/v1/report-usage", json=body).status_code == 200


def many_visitors(tenant: Tenant) -> Gateway:
    """Return a gateway client whose requests each come from a different IP address."""
    return Gateway(tenant, visitors=map("2001:db8:0:{:x}::1".format, count()))


# --- charges


def test_each_distinct_text_of_a_request_is_charged(tenant: Tenant) -> None:
    tenant.index(page(1, author="Ann"))
    gateway = many_visitors(tenant)
    charges = []
    before = 0
    for send in (
        lambda: gateway.send({"q": "page"}),
        lambda: gateway.get(q="page"),
        lambda: gateway.multi({"q": ""}, {"q": "page"}, {"q": "other"}),
        lambda: gateway.multi(*({"q": f"query {number}"} for number in range(10))),
        lambda: gateway.multi({"q": "page"}, {"q": "PAGE", "limit": 0}, {"q": "pag"}),
        lambda: gateway.facet(facetName="author", q="page"),
        lambda: gateway.facet(facetName="author", q="page", queries=[]),
        lambda: gateway.send({"q": "*"}),
        lambda: gateway.send({}),
        lambda: gateway.send({"q": "  "}),
        lambda: gateway.send({"q": None}),
        lambda: gateway.get(),
        lambda: gateway.multi({}, {"q": ""}),
        lambda: gateway.multi(),
        lambda: gateway.facet(facetName="author", facetQuery="a"),
        lambda: gateway.client.get("/engine/health"),
    ):
        assert send().status_code == 200
        after = used_today(tenant)
        charges.append(after - before)
        before = after

    assert charges == [1, 1, 2, 10, 1, 1, 1, 1] + [0] * 8


def test_several_texts_are_charged_together_or_not_at_all(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=3)
    gateway = many_visitors(tenant)
    texts = [{"q": text} for text in ("harbour", "lighthouse", "ferry", "pier")]

    assert_engine_error(gateway.multi(*texts), 429, "rate_limit_exceeded")
    assert used_today(tenant) == 0
    assert gateway.multi(*texts[:3]).status_code == 200
    assert used_today(tenant) == 3


def test_each_text_of_a_multi_search_counts_towards_the_request_limit(tenant: Tenant) -> None:
    limit(tenant, requests_per_minute=3)
    gateway = many_visitors(tenant)
    texts = [{"q": text} for text in ("harbour", "lighthouse", "ferry", "pier")]

    assert_engine_error(gateway.multi(*texts), 429, "rate_limit_exceeded")
    assert used_today(tenant) == 0
    tenant.app.extensions["runtime"].counters.reset_all()
    assert gateway.multi(*texts[:3]).status_code == 200
    assert_engine_error(gateway.send({"q": "pier"}), 429, "rate_limit_exceeded")


def test_several_texts_typed_at_once_are_charged_once_each(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    for text, other in (("ha", "li"), ("harb", "light"), ("harbour", "lighthouse")):
        assert gateway.multi({"q": text}, {"q": other}, {"q": text, "limit": 0}).status_code == 200

    assert used_today(tenant) == 2
    assert gateway.multi({"q": "ferry"}, {"q": "pier", "filter": "nowhere = 1"}).status_code == 400
    assert used_today(tenant) == 2


def test_multi_search_with_too_many_texts_is_rejected_before_counting(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    reservations: list[object] = []
    counters = tenant.app.extensions["runtime"].counters
    consume = counters.consume

    def record(*args: Any, **kwargs: Any) -> Any:
        # On a slow machine, the request's CPU time is counted, too.
        reservations.extend([kwargs["reserve"]] if kwargs.get("reserve") else [])
        return consume(*args, **kwargs)

    counters.consume = record

    response = gateway.multi(*({"q": f"query {number}"} for number in range(10_000)))

    assert response.status_code == 400
    assert len(reservations) <= 10
    assert used_today(tenant) == 0


def test_failed_requests_are_not_charged(tenant: Tenant) -> None:
    tenant.index(page(1))
    gateway = Gateway(tenant)

    for response in (
        gateway.send({"q": "x", "limit": -1}),
        gateway.send({"q": "x", "filter": "nowhere = 1"}),
        gateway.send({"q": "x"}, index="site_999"),
        gateway.multi({"q": "x"}, {"q": "x", "sort": ["nowhere:asc"]}),
        gateway.facet(facetName="nowhere", q="x"),
        gateway.get(q="x", wrong="1"),
        gateway.client.call("PUT", f"/engine/indexes/{gateway.index}/search", json={"q": "x"}),
    ):
        assert response.status_code >= 400
    assert used_today(tenant) == 0


def test_head_and_options_are_not_charged(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    path = f"/engine/indexes/{gateway.index}/search?q=page"

    head = gateway.client.call("HEAD", path)
    options = gateway.client.call("OPTIONS", path)
    tenant.search.call("OPTIONS", "/v1/search?q=page")

    assert (head.status_code, head.data) == (200, b"")
    assert options.status_code == 200
    assert used_today(tenant) == 0


def test_reported_searches_are_first_offset_by_searches_counted_at_the_gateway(tenant: Tenant) -> None:
    gateway = many_visitors(tenant)
    for _ in range(3):
        gateway.search("page")

    seen = [used_today(tenant)]
    for searches in (1, 2, 4):
        report(tenant, searches)
        seen.append(used_today(tenant))
    gateway.search("page")
    seen.append(used_today(tenant))
    tenant.find("page")
    seen.append(used_today(tenant))

    assert seen == [3, 3, 3, 7, 7, 8]


def test_reports_with_a_public_key_cannot_exhaust_the_daily_quota(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    gateway.search("page")
    for _ in range(5):
        report(tenant, 10, "public")

    assert used_today(tenant) == 1 + 10


@pytest.mark.parametrize("place", [0, 1])
def test_multi_search_during_a_counter_outage_is_charged_later(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    runtime = tenant.app.extensions["runtime"]
    gateway = Gateway(tenant)
    consume, calls = runtime.counters.consume, count()

    def fail_from(*args: Any, **kwargs: Any) -> Any:
        if next(calls) >= place:
            raise CountersUnavailable("away")
        return consume(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(runtime.counters, "consume", fail_from)
        assert gateway.multi({"q": "harbour"}, {"q": "ferry"}, {"q": "pier"}).status_code == 200
    assert used_today(tenant) == place

    runtime.late_charges.settle()
    assert used_today(tenant) == 3


# --- a query being typed is one search


START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def typed(text: str) -> list[str]:
    """Return the queries of a search box while a visitor types."""
    return [text[: end + 1] for end in range(1, len(text))]


def test_query_being_typed_is_charged_once_and_not_rate_limited(tenant: Tenant) -> None:
    limit(tenant, requests_per_minute=6, searches_per_day=4)
    gateway = Gateway(tenant)
    with time_machine.travel(START, tick=False) as clock:
        for query in ("harbour cruise", "opening hours", "tickets", "lighthouse tour"):
            for text in typed(query):
                assert gateway.send({"q": text}).status_code == 200
                clock.shift(0.26)
        used = used_today(tenant)

    assert used == 4


@pytest.mark.parametrize(
    ("requests", "charged"),
    [
        ([("har", 0), ("harb", 29), ("harbour", 30)], 1),
        ([("har", 0), ("harb", 31)], 2),
        ([("harbour", 0), ("harb", 5), ("harbor", 5)], 1),
        ([("harbour", 0), ("hat", 1)], 2),
        ([("Harbour ", 0), ("hárbour", 1), ("harbour", 1)], 3),
        ([(" HARBOUR", 0), ("harbour", 1)], 1),
        ([("har", 0), ("", 1), ("harb", 1)], 1),
        ([("har", 0), ("", 1), ("ship", 1)], 2),
        ([("har", 0)] + [("har", 20)] * 7, 2),
    ],
    ids=["extends", "pause", "shortens", "other", "accents", "normal form", "emptied", "starts over", "two minutes"],
)
def test_request_extending_or_shortening_a_query_within_30_seconds_continues_the_search(
    tenant: Tenant, requests: list[tuple[str, int]], charged: int
) -> None:
    gateway = Gateway(tenant)
    with time_machine.travel(START, tick=False) as clock:
        for text, seconds in requests:
            clock.shift(seconds)
            assert gateway.send({"q": text}).status_code == 200
        used = used_today(tenant)

    assert used == charged


def test_pages_and_filters_of_a_query_are_the_same_search(tenant: Tenant) -> None:
    tenant.index(page(1, author="Ann"))
    gateway = Gateway(tenant)

    gateway.search("page")
    gateway.search("page", page=2)
    gateway.search("page", filter="author = Ann")
    assert gateway.facet(facetName="author", q="page").status_code == 200
    assert gateway.multi({"q": "page"}, {"q": "page", "limit": 0}).status_code == 200

    assert used_today(tenant) == 1


def test_one_search_covers_at_most_60_requests(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    with time_machine.travel(START, tick=False):
        for _ in range(61):
            gateway.search("page")
        used = used_today(tenant)

    assert used == 2


def test_started_search_can_be_continued_after_the_quota_is_exhausted(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=1)
    gateway = Gateway(tenant)
    with time_machine.travel(START, tick=False):
        gateway.search("har")
        gateway.search("harbour")
        rejected = gateway.send({"q": "ship"})
        gateway.search("harbour cruise")
        used = used_today(tenant)

    assert_engine_error(rejected, 429, "rate_limit_exceeded")
    assert used == 1


def test_visitors_with_other_ip_addresses_or_keys_are_charged_separately(tenant: Tenant) -> None:
    for gateway in (Gateway(tenant), Gateway(tenant, kind="search", field="engine_key")):
        gateway.search("page")
    elsewhere = VisitorClient(tenant.app, Gateway(tenant).token, iter(["192.0.2.7"]))
    assert elsewhere.post(f"/engine/indexes/{tenant.site['index']}/search", json={"q": "page"}).status_code == 200

    assert used_today(tenant) == 3


def test_search_is_refunded_when_all_its_requests_failed(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    bad = {"q": "harbour", "filter": "nowhere = 1"}
    with time_machine.travel(START, tick=False):
        gateway.send(bad)
        after_failure = used_today(tenant)
        gateway.search("harb")
        gateway.send(bad)
        used = used_today(tenant)

    assert (after_failure, used) == (0, 1)


def test_searches_rejected_by_plan_limits_are_reported_to_the_owner(tenant: Tenant) -> None:
    def rejected() -> int:
        answer = tenant.private.get("/dashboard").get_json()
        return int(answer["usage"]["refused_searches_this_month"])

    limit(tenant, searches_per_day=1)
    gateway = many_visitors(tenant)
    gateway.search("page")
    assert gateway.send({"q": "page"}).status_code == 429
    assert tenant.search.get("/v1/search?q=page").status_code == 429
    by_quota = rejected()
    limit(tenant, requests_per_minute=1)
    tenant.app.extensions["runtime"].counters.reset_all()
    gateway.search("page")
    assert gateway.send({"q": "page"}).status_code == 429
    tenant.app.extensions["runtime"].counters.reset_all()

    assert (by_quota, rejected()) == (2, 3)


# --- analytics


def queries(tenant: Tenant) -> dict[str, int]:
    tenant.app.extensions["runtime"].events.flush()
    answer = tenant.private.get("/api/analytics?period=7d").get_json()
    return {entry["query"]: entry["count"] for entry in answer["top_queries"]}


def test_gateway_records_searches_with_keystrokes_merged(tenant: Tenant) -> None:
    tenant.index(page(1))
    gateway = Gateway(tenant)
    for text in typed("page"):
        gateway.search(text)
    gateway.multi({"q": "tour"}, {"q": "tour", "limit": 0}, {"q": ""})

    assert queries(tenant) == {"page": 1, "tour": 1}


def test_search_log_entry_of_the_same_session_does_not_count_twice(tenant: Tenant) -> None:
    tenant.index(page(1))
    Gateway(tenant).send({"q": "page"}, headers={"X-Search-Session": "s1"})
    for session in ("s1", "s2"):
        entry = {"query": "Page", "results_count": 1, "session_id": session}
        assert tenant.public.post("/api/v1/search-log", json=entry).status_code == 200

    assert queries(tenant) == {"page": 2}


@pytest.mark.parametrize(
    ("value", "counted"), [("false", {}), ("FALSE", {}), ("true", {"page": 1}), ("no", {"page": 1})]
)
def test_analytics_header_excludes_a_search_from_analytics(tenant: Tenant, value: str, counted: dict[str, int]) -> None:
    Gateway(tenant).send({"q": "page"}, headers={"X-Search-Analytics": value})

    assert queries(tenant) == counted


def test_overlong_session_id_is_ignored(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    for session, text in (("x" * 65, "pa"), ("x" * 65, "page"), ("x" * 64, "to"), ("y" * 64, "tour")):
        gateway.send({"q": text}, headers={"X-Search-Session": session})

    assert queries(tenant) == {"page": 1, "to": 1, "tour": 1}


# --- daily search quota


def test_exhausted_search_quota_returns_429_until_midnight(tenant: Tenant) -> None:
    tenant.index(page(1))
    with time_machine.travel(datetime(2026, 3, 1, 23, 0, tzinfo=UTC), tick=False) as clock:
        limit(tenant, searches_per_day=2)
        gateway = many_visitors(tenant)
        for _ in range(2):
            gateway.search("page")

        for response in (
            gateway.send({"q": "page"}), gateway.get(q="page"), gateway.multi({}, {"q": "page"}),
            gateway.facet(facetName="author", q="page"),
        ):  # fmt: skip
            assert_engine_error(response, 429, "rate_limit_exceeded")
            assert response.headers["Retry-After"] == "3600"
            assert response.headers["X-RateLimit-Limit"] == "2"
            assert response.headers["X-RateLimit-Remaining"] == "0"
            assert int(response.headers["X-RateLimit-Reset"]) == int(clock_end().timestamp())
        assert gateway.search()["estimatedTotalHits"] == 1, "a search without a text must be free"
        assert_engine_error(gateway.send({"q": "page", "limit": -1}), 400, "invalid_search_limit")
        assert used_today(tenant) == 2

        clock.move_to(clock_end())
        gateway.search("page")


def clock_end() -> datetime:
    return datetime(2026, 3, 2, tzinfo=UTC)


def test_gateway_and_search_api_share_the_daily_quota(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=3)
    gateway = many_visitors(tenant)

    gateway.search("page")
    tenant.find("page")
    gateway.search("page")

    assert gateway.send({"q": "page"}).status_code == 429
    assert tenant.search.get("/v1/search?q=page").status_code == 429


def test_concurrent_searches_succeed_exactly_up_to_the_quota(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=20)
    gateway = many_visitors(tenant)

    def send(number: int) -> int:
        body: dict[str, Any] = {"q": "page"} if number % 3 else {"q": "page", "limit": -1}
        return gateway.send(body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(90)))

    assert {status: statuses.count(status) for status in (200, 400, 429)} == {200: 20, 400: 30, 429: 40}
    assert used_today(tenant) == 20


# --- requests


def test_rate_limit_headers_show_the_window_with_the_fewest_requests_left(tenant: Tenant) -> None:
    gateway = Gateway(tenant)  # the client-info request with the public key was the first of the minute
    own = int(tenant.search.get("/v1/client-info").headers["X-RateLimit-Remaining"])

    response = gateway.send({"q": "x"})

    assert response.headers["X-RateLimit-Limit"] == str(VISITOR_LIMIT)
    assert response.headers["X-RateLimit-Remaining"] == str(VISITOR_LIMIT - 2)
    assert int(tenant.search.get("/v1/client-info").headers["X-RateLimit-Remaining"]) == own - 1


def test_visitor_above_the_rate_limit_gets_429_and_others_are_not_affected(tenant: Tenant) -> None:
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False):
        gateway = Gateway(tenant)
        statuses = [gateway.send({"limit": 0}).status_code for _ in range(VISITOR_LIMIT)]

        assert statuses == [200] * (VISITOR_LIMIT - 1) + [429]
        response = gateway.send({"q": "x"})
        assert_engine_error(response, 429, "rate_limit_exceeded")
        assert response.headers["Retry-After"] == "60"
        other = VisitorClient(tenant.app, gateway.token, iter(["192.0.2.7"]))
        assert other.post(f"/engine/indexes/{gateway.index}/search", json={}).status_code == 200
        assert used_today(tenant) == 0


def test_gateway_searches_have_a_bucket_separate_from_the_owner_and_the_search_box(tenant: Tenant) -> None:
    limit(tenant, requests_per_minute=5)
    gateway = Gateway(tenant)

    statuses = [gateway.send({}).status_code for _ in range(6)]

    assert statuses == [200, 200, 200, 200, 200, 429]
    assert tenant.public.get("/v1/client-info").status_code == 200
    assert tenant.private.get("/v1/client-info").status_code == 200


def test_suggestions_use_the_search_box_bucket_not_the_search_bucket(tenant: Tenant) -> None:
    limit(tenant, requests_per_minute=2)
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False):
        gateway = many_visitors(tenant)  # the client-info request with the public key was the first of the minute

        statuses = [gateway.client.get("/engine/suggest?q=x").status_code for _ in range(20)]

        assert statuses == [200] * (2 * BOX_FACTOR - 1) + [429]
        assert [gateway.send({"q": "x"}).status_code for _ in range(3)] == [200, 200, 429]
        assert used_today(tenant) == 2
        assert tenant.private.get("/dashboard").get_json()["usage"]["refused_searches_this_month"] == 1


def test_suggestions_count_towards_the_visitor_limit_and_are_not_charged(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=1)
    with time_machine.travel(datetime(2026, 3, 1, tzinfo=UTC), tick=False):
        gateway = Gateway(tenant)
        gateway.search("page")

        statuses = [
            gateway.client.post("/engine/suggest", json={"q": "page"}).status_code for _ in range(VISITOR_LIMIT)
        ]

        assert statuses == [200] * (VISITOR_LIMIT - 2) + [429, 429]
        assert used_today(tenant) == 1


def test_callers_without_a_valid_key_are_limited_by_ip_address(tenant: Tenant) -> None:
    nobody = VisitorClient(tenant.app, "forged")
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1), tick=False):
        statuses = [nobody.get("/engine/indexes/site_1/search").status_code for _ in range(ADDRESS_LIMIT + 1)]

        assert statuses == [403] * ADDRESS_LIMIT + [429]
        response = VisitorClient(tenant.app, None).get("/engine/nowhere")
        assert_engine_error(response, 429, "rate_limit_exceeded")
        Gateway(tenant).search("page")


# --- without counters


@pytest.fixture
def without_counters(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    tenant.index(page(1))
    gateway = Gateway(tenant)

    def be_away(*args: Any, **kwargs: Any) -> None:
        raise CountersUnavailable("away")

    counters = tenant.app.extensions["runtime"].counters
    for method in ("consume", "peek", "refund"):
        monkeypatch.setattr(counters, method, be_away)
    return gateway


def test_gateway_searches_continue_without_counters(without_counters: Gateway) -> None:
    gateway = without_counters

    assert gateway.ids("page") == ["page-1"]
    assert gateway.get(q="page").status_code == 200
    assert gateway.multi({"q": "page"}).status_code == 200
    assert gateway.facet(facetName="author", q="page").status_code == 200
    assert gateway.client.post("/engine/suggest", json={"q": "page"}).status_code == 200
    assert_engine_error(gateway.send({"q": "x", "limit": -1}), 400, "invalid_search_limit")


def test_revoked_engine_keys_stay_revoked_without_counters(tenant: Tenant, without_counters: Gateway) -> None:

    part = tenant.app.extensions["runtime"]
    with part.database.write() as session:
        site = session.get(Site, tenant.site_id)
        assert site is not None
        site.public_epoch += 1

    assert_engine_error(without_counters.send({"q": "x"}), 403, "invalid_api_key")


def test_analytics_record_whether_a_document_matched_every_word(tenant: Tenant) -> None:
    tenant.index(page(1, title="Ships of the harbour"))
    gateway = Gateway(tenant)
    for text in ("ships zeppelin", "tour", "harbuor", "ships"):
        gateway.search(text)
    part = tenant.app.extensions["runtime"]
    part.events.flush()

    with part.database.read() as session:
        told = {event.query: event.matched for event in session.scalars(select(SearchEvent))}
    assert told == {"ships zeppelin": "some", "tour": "some", "harbuor": "corrected", "ships": "all"}
