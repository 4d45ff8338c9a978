"""GET /api/analytics, over HTTP with a frozen clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    with time_machine.travel(NOON, tick=False) as coordinates:
        yield coordinates


@pytest.fixture
def owner(clock: time_machine.Coordinates, app: Flask) -> Tenant:
    return register_tenant(app, "ann@example.com")


def log(
    tenant: Tenant, query: str, results: int = 1, *, at: datetime | None = None, session: str | None = None
) -> None:
    body: dict[str, Any] = {"query": query, "results_count": results}
    if at is not None:
        body["timestamp"] = at.isoformat()
    if session is not None:
        body["session_id"] = session
    assert_ok(tenant.search.post("/api/v1/search-log", json=body))


def show(tenant: Tenant, **parameters: Any) -> dict[str, Any]:
    tenant.app.extensions["runtime"].events.flush()
    return assert_ok(tenant.private.get("/api/analytics", query_string=parameters))


def test_account_without_searches_gets_zeros_and_empty_lists(owner: Tenant) -> None:
    answer = show(owner)

    series = answer.pop("series")
    assert answer == {
        "total_searches": 0,
        "unique_queries": 0,
        "avg_response_time_ms": 0,
        "mixed_searches": 0,
        "clicks": 0,
        "click_through_rate": None,
        "average_click_position": None,
        "zero_result_rate": None,
        "top_queries": [],
        "zero_result_queries": [],
        "partial_queries": [],
        "no_click_queries": [],
        "channels": [],
        "clicked_pages": [],
        "pages": [],
        "from": "2031-04-15",
        "to": "2031-05-14",
        "previous": {
            "total_searches": 0,
            "avg_response_time_ms": 0,
            "mixed_searches": 0,
            "clicks": 0,
            "click_through_rate": None,
            "average_click_position": None,
            "zero_result_rate": None,
        },
    }
    assert len(series) == 30
    assert {(day["searches"], day["zero_results"]) for day in series} == {(0, 0)}


@pytest.mark.parametrize(("period", "days"), [("7d", 7), ("28d", 28), ("30d", 30), ("90d", 90), (None, 30)])
def test_period_returns_that_many_utc_days_including_today(owner: Tenant, period: str | None, days: int) -> None:
    series = show(owner, **({} if period is None else {"period": period}))["series"]

    assert [day["date"] for day in series] == [
        (NOON.date() - timedelta(days=back)).isoformat() for back in reversed(range(days))
    ]


@pytest.mark.parametrize(
    "query", ["period=1d", "period=30", "period=", "period=30D", "site_id=x", "site_id=", "site_id=1.0"]
)
def test_analytics_with_invalid_parameters_returns_400(owner: Tenant, query: str) -> None:
    response = owner.private.get(f"/api/analytics?{query}")

    assert_error(response, 400, "validation_failed", field=query.partition("=")[0])


def test_period_includes_its_first_day_and_excludes_the_day_before(owner: Tenant) -> None:
    first = datetime(2031, 5, 8, tzinfo=UTC)
    log(owner, "inside", at=first)
    log(owner, "outside", at=first - timedelta(seconds=1))

    week, month = show(owner, period="7d"), show(owner, period="30d")

    assert week["top_queries"] == [{"query": "inside", "count": 1}]
    assert month["total_searches"] == 2


def test_searches_leave_the_period_as_days_pass(owner: Tenant, clock: time_machine.Coordinates) -> None:
    log(owner, "once")
    clock.shift(timedelta(days=6))
    assert show(owner, period="7d")["total_searches"] == 1
    clock.shift(timedelta(hours=12))
    assert show(owner, period="7d")["total_searches"] == 0
    assert show(owner, period="30d")["total_searches"] == 1


def test_searches_are_counted_with_result_counts_and_response_time(owner: Tenant) -> None:
    owner.index(page(1, title="Bicycle"))
    owner.find("bicycle")
    owner.find("  BICYCLE ")
    owner.find("nothing like it")
    log(owner, "bicycle")

    answer = show(owner)

    assert (answer["total_searches"], answer["unique_queries"]) == (4, 2)
    assert answer["top_queries"] == [{"query": "bicycle", "count": 3}, {"query": "nothing like it", "count": 1}]
    assert answer["zero_result_queries"] == [{"query": "nothing like it", "count": 1}]
    assert answer["avg_response_time_ms"] >= 0
    assert answer["series"][-1] == {
        "date": "2031-05-14", "searches": 4, "zero_results": 1, "clicks": 0, "click_through_rate": 0,
        "zero_result_rate": 0.25,
    }  # fmt: skip


def test_empty_head_invalid_and_rate_limited_searches_are_not_counted(owner: Tenant) -> None:
    owner.find("*")
    owner.search.call("HEAD", "/v1/search?q=x")
    assert_error(owner.search.get("/v1/search?q=x&limit=0"), 400, "validation_failed")
    assert_error(owner.search.get("/v1/search?q=x&filters=nowhere=1"), 400, "invalid_filter")
    owner.set_plan("pro", searches_per_day=0)
    assert_error(owner.search.get("/v1/search?q=x"), 429, "rate_limit_exceeded")

    assert show(owner)["total_searches"] == 0


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("  Red   Bicycle ", "red bicycle"),
        ("RED\tBICYCLE\n", "red bicycle"),
        ("CAFE\u0301", "caf\u00e9"),
        ("Straße", "straße"),
        ("日本", "日本"),
    ],
)
def test_queries_are_counted_in_normalized_form(owner: Tenant, written: str, normal: str) -> None:
    log(owner, written)
    log(owner, normal)

    assert show(owner)["top_queries"] == [{"query": normal, "count": 2}]


def test_query_lists_have_ten_items_sorted_by_count_then_text(owner: Tenant) -> None:
    for number in range(12):
        for _ in range(3 if number == 7 else 1):
            log(owner, f"q{number:02}", 0 if number % 2 else 1)

    answer = show(owner)

    assert [item["query"] for item in answer["top_queries"]] == [
        "q07",
        *(f"q{n:02}" for n in (0, 1, 2, 3, 4, 5, 6, 8, 9)),
    ]
    assert answer["zero_result_queries"][0] == {"query": "q07", "count": 3}
    assert [item["query"] for item in answer["zero_result_queries"]] == ["q07", "q01", "q03", "q05", "q09", "q11"]
    assert answer["unique_queries"] == 12


def test_zero_result_queries_count_only_searches_without_results(owner: Tenant) -> None:
    log(owner, "bicycle", 5)
    log(owner, "bicycle", 0)

    answer = show(owner)

    assert answer["top_queries"] == [{"query": "bicycle", "count": 2}]
    assert answer["zero_result_queries"] == [{"query": "bicycle", "count": 1}]


class TestKeystrokes:
    """Log entries of one session that extend each other's query count as one search."""

    def test_successive_keystrokes_count_as_one_search_of_the_last_query(self, owner: Tenant) -> None:
        for step, query in enumerate(["b", "bi", "bic", "bicycle"]):
            log(owner, query, 0 if query != "bicycle" else 3, at=NOON - timedelta(seconds=60 - step), session="s")

        answer = show(owner)

        assert (answer["total_searches"], answer["unique_queries"]) == (1, 1)
        assert answer["top_queries"] == [{"query": "bicycle", "count": 1}]
        assert answer["zero_result_queries"] == []
        assert (answer["series"][-1]["searches"], answer["series"][-1]["zero_results"]) == (1, 0)

    def test_repeated_query_of_one_session_counts_once(self, owner: Tenant) -> None:
        for step in range(3):
            log(owner, "bicycle", at=NOON - timedelta(seconds=60 - step), session="s")

        assert show(owner)["total_searches"] == 1

    @pytest.mark.parametrize(("seconds", "searches"), [(30, 1), (31, 2)])
    def test_keystrokes_merge_only_within_thirty_seconds(self, owner: Tenant, seconds: int, searches: int) -> None:
        log(owner, "bi", at=NOON - timedelta(seconds=seconds), session="s")
        log(owner, "bicycle", at=NOON, session="s")

        assert show(owner)["total_searches"] == searches

    def test_different_queries_and_sessions_do_not_merge(self, owner: Tenant) -> None:
        log(owner, "bi", session="s")
        log(owner, "tram", session="s")
        log(owner, "trams", session="t")
        log(owner, "tramsway")
        log(owner, "tramsways")

        assert show(owner)["total_searches"] == 5

    def test_keystrokes_are_ordered_by_timestamp(self, owner: Tenant) -> None:
        log(owner, "bicycle", at=NOON, session="s")
        log(owner, "bi", at=NOON - timedelta(seconds=5), session="s")

        assert show(owner)["top_queries"] == [{"query": "bicycle", "count": 1}]

    def test_searches_through_the_api_merge_but_each_uses_quota(
        self, owner: Tenant, clock: time_machine.Coordinates
    ) -> None:
        for query in ("b", "bi", "bicycle"):
            owner.find(query, session_id="s")
            clock.shift(1)

        assert show(owner)["top_queries"] == [{"query": "bicycle", "count": 1}]
        quota = assert_ok(owner.search.get("/v1/search?q=x"))["remaining_quota"]
        assert quota["used_today"] == 4, "each keystroke must be charged"


class TestSites:
    """Analytics of one site or of all sites of the account."""

    def test_analytics_cover_one_site_or_the_whole_account(self, owner: Tenant) -> None:
        other = owner.browser.post("/sites", json={"name": "B", "url": "https://b.example/"}).get_json()["site"]["id"]
        log(owner, "here")
        assert_ok(owner.private.get(f"/v1/search?q=there&site_id={other}"))
        assert_ok(owner.private.get(f"/v1/search?q=here&site_id={other}"))

        assert show(owner)["top_queries"] == [{"query": "here", "count": 2}, {"query": "there", "count": 1}]
        assert show(owner, site_id=owner.site_id)["top_queries"] == [{"query": "here", "count": 1}]
        assert show(owner, site_id=other)["total_searches"] == 2
        assert show(owner, site_id=other)["unique_queries"] == 2
        assert show(owner)["unique_queries"] == 2

    def test_analytics_exclude_searches_of_other_accounts(self, owner: Tenant) -> None:
        stranger = register_tenant(owner.app, "eve@example.com")
        log(stranger, "secret")

        assert show(owner)["total_searches"] == 0
        assert show(stranger)["total_searches"] == 1

    def test_purged_sites_searches_are_removed_from_analytics(self, owner: Tenant) -> None:
        log(owner, "gone")
        assert show(owner)["total_searches"] == 1

        assert_ok(owner.browser.delete(f"/sites/{owner.site_id}?purge=true"))
        owner.app.extensions["jobs"].run_all()
        owner.app.extensions["runtime"].events.flush()

        assert assert_ok(owner.browser.get("/api/analytics"))["total_searches"] == 0

    @pytest.mark.parametrize(
        "days", [{}, {"period": "7d"}, {"channel": "api"}, {"from": "2031-04-01", "to": "2031-05-13"}]
    )
    def test_deleted_sites_searches_are_hidden_until_it_is_restored(self, owner: Tenant, days: dict[str, str]) -> None:
        other = assert_ok(owner.browser.post("/sites", json={"name": "O", "url": "https://o.example/"}), 201)["site"]
        at = NOON - timedelta(days=2)
        for query, count in (("both", 1), ("only here", 1), ("none", 0)):
            log(owner, query, count, at=at)
        alone = show(owner, **days)
        key = owner.browser.post(f"/api/sites/{other['id']}/keys", json={"name": "k", "type": "search"}).get_json()
        there = ApiClient(owner.app, key["api_key"])
        for query, count in (("both", 1), ("only there", 1), ("none there", 0)):
            body = {"query": query, "results_count": count, "timestamp": at.isoformat()}
            assert_ok(there.post("/api/v1/search-log", json=body))
        together = show(owner, **days)
        assert (together["total_searches"], together["unique_queries"]) == (6, 5)

        assert_ok(owner.browser.delete(f"/sites/{other['id']}"))

        assert show(owner, **days) == alone
        assert_ok(owner.browser.post(f"/sites/{other['id']}/restore"))
        assert show(owner, **days) == together

    def test_browser_session_sees_the_same_analytics_as_a_private_key(self, owner: Tenant) -> None:
        log(owner, "bicycle")
        expected = show(owner)

        assert assert_ok(owner.browser.get("/api/analytics")) == expected


def click(tenant: Tenant, query: str, document_id: str = "page-1", **fields: Any) -> None:
    body = {"query": query, "id": document_id, **fields}
    assert_ok(tenant.search.post("/api/v1/click", json=body))


def test_analytics_report_clicks_with_rates_and_positions(owner: Tenant) -> None:
    for query, results in [("a", 1), ("a", 1), ("b", 1), ("none", 0)]:
        log(owner, query, results)
    click(owner, "a", position=1, session_id="s")
    click(owner, "a", "page-2", position=4, session_id="s")

    answer = show(owner)

    assert (answer["clicks"], answer["click_through_rate"], answer["average_click_position"]) == (2, 1 / 4, 2.5)
    assert answer["zero_result_rate"] == 1 / 4
    assert answer["no_click_queries"] == [{"query": "b", "count": 1}]
    assert answer["partial_queries"] == []


def test_click_through_rate_is_at_most_one(owner: Tenant) -> None:
    log(owner, "a")
    for session in "st":
        click(owner, "a", session_id=session)

    assert show(owner)["click_through_rate"] == 1.0


def test_previous_period_totals_are_reported(owner: Tenant, clock: time_machine.Coordinates) -> None:
    log(owner, "a")
    log(owner, "b", 0)
    click(owner, "a", position=3)
    clock.shift(timedelta(days=7))
    log(owner, "c")

    week, month = show(owner, period="7d"), show(owner)

    assert week["previous"] == {
        "total_searches": 2,
        "avg_response_time_ms": 0,
        "mixed_searches": 0,
        "clicks": 1,
        "click_through_rate": 0.5,
        "average_click_position": 3.0,
        "zero_result_rate": 0.5,
    }
    assert (week["total_searches"], week["clicks"]) == (1, 0)
    assert (month["total_searches"], month["previous"]["total_searches"]) == (3, 0)
    clock.shift(timedelta(days=7))
    assert show(owner, period="7d")["previous"]["total_searches"] == 1


@pytest.mark.parametrize("limit", [1, 12, 1000])
def test_query_lists_respect_the_limit_parameter(owner: Tenant, limit: int) -> None:
    for number in range(15):
        log(owner, f"q{number:02}", 0)

    answer = show(owner, limit=limit)

    assert len(answer["top_queries"]) == len(answer["zero_result_queries"]) == min(limit, 15)
    assert len(show(owner)["top_queries"]) == 10


@pytest.mark.parametrize("limit", ["0", "1001", "x", ""])
def test_limit_out_of_range_returns_400(owner: Tenant, limit: str) -> None:
    assert_error(owner.private.get(f"/api/analytics?limit={limit}"), 400, "validation_failed", field="limit")


def test_accept_header_text_csv_returns_the_lists_as_csv(owner: Tenant) -> None:
    log(owner, "=1+1", 0)
    log(owner, "a, b")
    click(owner, "a, b", position=2)
    show(owner)

    def get(accept: str) -> Any:
        return owner.private.get("/api/analytics", headers={"Accept": accept})

    answer = get("text/csv")
    assert answer.content_type == "text/csv; charset=utf-8"
    assert {"Accept"} <= {name.strip() for name in answer.headers["Vary"].split(",")}
    assert answer.text.split("\r\n") == [
        "list,query,count,clicks,click_through_rate,average_click_position",
        "top_queries,'=1+1,1,0,0.0,",
        'top_queries,"a, b",1,1,1.0,2.0',
        "zero_result_queries,'=1+1,1,0,0.0,",
        "clicked_pages,page-1,1,1,,2.0",
        "channels,api,2,1,,",
        "",
    ]
    for accept in (
        "*/*",
        "text/csv;q=0.5, application/json",
        "application/json, text/csv",
        "text/csv, application/json",
    ):
        assert get(accept).content_type == "application/json"
    assert get("text/csv, */*").mimetype == get("text/csv, application/json;q=0.9").mimetype == "text/csv"


class TestOneQuery:
    """GET /api/analytics/query."""

    def get(self, tenant: Tenant, **parameters: Any) -> TestResponse:
        tenant.app.extensions["runtime"].events.flush()
        query = {"site_id": tenant.site_id, "q": "bicycle", **parameters}
        return tenant.private.get("/api/analytics/query", query_string=query)

    def test_query_details_show_searches_clicks_and_current_hits_without_using_quota(self, owner: Tenant) -> None:
        owner.index(page(1, title="Bicycle"), page(2, title="Bicycle bell"))
        log(owner, "bicycle", 0)
        log(owner, "bicycle", 2)
        click(owner, "bicycle", "page-2", position=2)

        for _ in range(2):
            answer = assert_ok(self.get(owner, q=" Bicycle", period="7d"))

        series = answer.pop("series")
        assert answer == {
            "query": "bicycle",
            "searches": 2,
            "clicks": 1,
            "click_through_rate": 0.5,
            "average_click_position": 2.0,
            "clicked_documents": [
                {"id": "page-2", "title": "Bicycle bell", "clicks": 1, "average_position": 2.0, "anchors": []}
            ],
            "finds_now": 2,
        }
        assert len(series) == 7
        assert series[-1] == {"date": "2031-05-14", "searches": 2, "zero_results": 1, "clicks": 1}
        assert assert_ok(owner.private.get("/v1/client-info"))["limits"]["used_today"] == 0

    @pytest.mark.parametrize(
        ("parameters", "field"),
        [({"q": ""}, "q"), ({"q": "é" * 257}, "q"), ({"site_id": "x"}, "site_id"), ({"period": "1d"}, "period")],
    )
    def test_query_details_with_invalid_parameters_return_400(
        self, owner: Tenant, parameters: dict[str, Any], field: str
    ) -> None:
        assert_error(self.get(owner, **parameters), 400, "validation_failed", field=field)

    @pytest.mark.parametrize("field", ["q", "site_id"])
    def test_query_details_require_query_and_site_id(self, owner: Tenant, field: str) -> None:
        assert_error(self.get(owner, **{field: None}), 400, "validation_failed", field=field)

    def test_query_details_of_another_accounts_site_return_404(self, owner: Tenant, app: Flask) -> None:
        stranger = register_tenant(app, "eve@example.com")

        assert_error(self.get(owner, site_id=stranger.site_id), 404, "site_not_found")
