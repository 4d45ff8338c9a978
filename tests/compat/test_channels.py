"""Each search API is a separate channel in analytics, metrics, and the request log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from tests.callers import ApiClient, Tenant, page
from tests.compat.test_agents import message, open_site
from tests.gateway.callers import Gateway
from tests.responses import assert_ok

CHANNEL_REQUESTS = {
    "api": ("GET", "/v1/search", "search.search"),
    "gateway": ("POST", "/engine/indexes/", "engine.search_index"),
    "google": ("GET", "/customsearch/v1", "custom_search.custom_search"),
    "algolia": ("POST", "/1/indexes/any/query", "algolia.search_one_index"),
    "agent": ("POST", "/mcp", "agents_call"),
}


def test_searches_of_each_api_are_counted_in_a_separate_channel(
    tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    tenant.index(page(1))
    open_site(tenant)
    token = tenant.tokens["search"]
    key = {"X-Algolia-API-Key": token}
    before = _counted(tenant)
    noon = datetime(2031, 5, 14, 12, tzinfo=UTC)

    with time_machine.travel(noon, tick=False) as clock:
        tenant.find("page")
        assert ApiClient(tenant.app).get(f"/customsearch/v1?key={token}&q=page").status_code == 200
        assert (
            ApiClient(tenant.app).post("/1/indexes/any/query", json={"query": "page"}, headers=key).status_code == 200
        )
        Gateway(tenant).search(q="page")
        asked = message("tools/call", {"name": "search", "arguments": {"query": "page"}})
        assert_ok(tenant.public.post("/mcp", json=asked))
        clock.shift(timedelta(hours=1))
        tenant.app.extensions["runtime"].events.flush()
        channels = assert_ok(tenant.private.get("/api/analytics"))["channels"]
        only = assert_ok(tenant.private.get("/api/analytics?channel=google"))

    assert {each["channel"]: each["searches"] for each in channels} == dict.fromkeys(CHANNEL_REQUESTS, 1)
    assert (only["total_searches"], [each["query"] for each in only["top_queries"]]) == (1, ["page"])
    after = _counted(tenant)
    for method, path, endpoint in CHANNEL_REQUESTS.values():
        assert after[method, endpoint] - before.get((method, endpoint), 0) == 1
        assert any(
            record.getMessage().startswith(f"{method} ") and path in record.getMessage() for record in caplog.records
        )


def _counted(tenant: Tenant) -> dict[tuple[str, str], float]:
    """Return the number of requests answered with status 200, by method and endpoint."""
    response = ApiClient(tenant.app).get("/metrics", environ_overrides={"REMOTE_ADDR": "127.0.0.1"})
    lines = [line for line in response.get_data(as_text=True).splitlines() if line.startswith("http_requests_total{")]
    return {
        (line.split('method="')[1].split('"')[0], line.split('endpoint="')[1].split('"')[0]): float(
            line.rsplit(" ", 1)[1]
        )
        for line in lines
        if 'status="200"' in line
    }
