"""Numbers reported by different parts of the service agree."""

from __future__ import annotations

import time

import pytest

from tests.callers import page
from tests.patience import PATIENCE_SECONDS
from tests.server import Server
from tests.service.clients import Answer, Caller, Customer, register, together

pytestmark = pytest.mark.service


def test_reported_numbers_agree_after_a_mixed_concurrent_run(servers: list[Server]) -> None:
    kinds = ("public", "search", "private")
    customer = register(servers, f"agreement-{time.monotonic_ns()}@example.com", kinds)
    customer.private.must("POST", "/api/v1/index/bulk", {"documents": [page(number) for number in range(40)]})
    info = customer.with_key("public").must("GET", "/v1/client-info")
    gateway = Caller(servers, info["engine_public_key"])

    def act(number: int) -> Answer:
        turn = number % 5
        if turn == 0:
            return customer.search.call("GET", f"/v1/search?q=page+{number}")
        if turn == 1:
            return gateway.call("POST", f"/engine/indexes/{info['index']}/search", {"q": "page"})
        if turn == 2:
            report = {"operation": "search", "count": 5, "index": info["index"]}
            return customer.search.call("POST", "/v1/report-usage", report)
        if turn == 3:
            return customer.with_key("public").call(
                "POST", "/api/v1/search-log", {"query": "logged", "results_count": 3}
            )
        return customer.search.call("GET", "/v1/search?q=zyzzyva")

    answers = together(16, 150, act)
    assert {answer.status for answer in answers} == {200}
    searches, through_gateway, reported, logged, misses = 30, 30, 150, 30, 30

    last = customer.search.must("GET", "/v1/search?q=page")
    used = searches + misses + 1 + max(through_gateway, reported)
    assert last["remaining_quota"]["used_today"] == used
    assert customer.with_key("public").must("GET", "/v1/client-info")["limits"]["used_today"] == used
    dashboard = customer.session.must("GET", "/dashboard")
    assert dashboard["usage"]["searches_this_month"] == used
    assert dashboard["usage"]["indexed_pages"] == 40 == last["results"]["estimatedTotalHits"]
    assert customer.session.must("GET", "/sites")["sites"][0]["indexed_pages"] == 40
    assert dashboard["apiKeyCount"] == 3 == customer.session.must("GET", f"/api/sites/{customer.site_id}/keys")["total"]

    analytics = analytics_with(customer, searches + through_gateway + misses + logged + 1)
    assert analytics["zero_result_queries"] == [{"query": "zyzzyva", "count": misses}]
    assert {"query": "logged", "count": logged} in analytics["top_queries"]
    assert sum(day["searches"] for day in analytics["series"]) == analytics["total_searches"]
    assert sum(day["zero_results"] for day in analytics["series"]) == misses
    of_site = customer.session.must("GET", f"/api/analytics?site_id={customer.site_id}")
    assert of_site["total_searches"] == analytics["total_searches"]


def analytics_with(customer: Customer, total: int) -> dict:
    """Return the account's analytics when all events are counted, usually within two seconds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        analytics: dict = customer.session.must("GET", "/api/analytics?period=7d")
        if analytics["total_searches"] >= total or time.monotonic() > deadline:
            assert analytics["total_searches"] == total
            return analytics
        time.sleep(0.1)
