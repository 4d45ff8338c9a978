"""Daily rates, clicked pages, channels, and referring pages in analytics."""

from __future__ import annotations

from itertools import repeat

import pytest

from app.models import ClickLessons
from app.pages.analytics.charts import draw_rates
from app.services.analytics.reports import DayCount
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway
from tests.responses import assert_ok
from tests.services.analytics.conftest import TODAY

BOX = {"X-Search-Channel": "box", "X-Search-Page": "/docs/start"}


@pytest.fixture
def searched(tenant: Tenant) -> Tenant:
    """Searches from the search box, another gateway client, and the API; only the first has a click."""
    tenant.index(page(1, title="Tram"))
    gateway = Gateway(tenant, visitors=repeat("198.51.100.1"))
    gateway.send({"q": "tram"}, headers=BOX)
    gateway.send(
        {"q": "nothing"}, headers={"X-Search-Session": "other", "Referer": "https://www.example.com/about?x=1"}
    )
    tenant.find("tram stop")
    fields = {"query": "tram", "id": "page-1", "position": 1}
    assert_ok(tenant.public.post("/api/v1/click", json=fields, headers=BOX))
    tenant.app.extensions["runtime"].events.flush()
    return tenant


def shown(tenant: Tenant, **parameters: str) -> str:
    query = {"site_id": str(tenant.site_id), **parameters}
    response = tenant.browser.get("/api/analytics", query_string=query, headers={"Accept": "text/html"})
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_data(as_text=True)


def told(tenant: Tenant, **parameters: str) -> dict[str, object]:
    return assert_ok(tenant.private.get("/api/analytics", query_string={"site_id": tenant.site_id, **parameters}))


def test_searches_are_counted_by_channel_and_page(searched: Tenant) -> None:
    answer = told(searched)

    assert answer["channels"] == [
        {"channel": "api", "searches": 1, "zero_results": 0, "clicks": 0},
        {"channel": "box", "searches": 1, "zero_results": 0, "clicks": 1},
        {"channel": "gateway", "searches": 1, "zero_results": 1, "clicks": 0},
    ]
    assert answer["pages"] == [
        {"page": "/about", "searches": 1, "zero_results": 1, "zero_result_rate": 1.0},
        {"page": "/docs/start", "searches": 1, "zero_results": 0, "zero_result_rate": 0.0},
    ]
    assert answer["clicked_pages"] == [
        {"site_id": searched.site_id, "id": "page-1", "title": "Tram", "clicks": 1, "average_position": 1.0}
    ]


def test_analytics_can_be_filtered_by_channel(searched: Tenant) -> None:
    answer = told(searched, channel="box")

    assert (answer["total_searches"], answer["clicks"], answer["unique_queries"]) == (1, 1, 1)
    assert answer["top_queries"] == [{"query": "tram", "count": 1}]
    assert len(answer["channels"]) == 3
    assert [each["page"] for each in answer["pages"]] == ["/docs/start"]
    csv = searched.private.get("/api/analytics?channel=box", headers={"Accept": "text/csv"}).get_data(as_text=True)
    assert "top_queries,tram,1,1,1.0,1.0" in csv
    assert "clicked_pages,page-1,1,1,,1.0" in csv
    assert "pages,/docs/start,1,,," in csv
    assert "nothing" not in csv


def test_analytics_can_be_limited_to_any_date_range(searched: Tenant) -> None:
    today = told(searched)["to"]

    one_day = told(searched, **{"from": today, "to": today})
    assert (one_day["total_searches"], len(one_day["series"])) == (3, 1)
    long_ago = told(searched, **{"from": "2020-02-01", "to": "2020-02-29"})
    assert (long_ago["total_searches"], len(long_ago["series"])) == (0, 29)
    assert (long_ago["from"], long_ago["to"]) == ("2020-02-01", "2020-02-29")
    query = {"site_id": searched.site_id, "q": "tram", "from": today}
    assert assert_ok(searched.private.get("/api/analytics/query", query_string=query))["searches"] == 1


@pytest.mark.parametrize(
    "parameters",
    [{"from": "2020-02-30"}, {"from": "20200201"}, {"from": "2020-03-01", "to": "2020-02-01"}, {"to": "2020-02-01"},
     {"from": "2000-01-01", "to": "2020-01-01"}, {"channel": "fax"}],
)  # fmt: skip
def test_invalid_date_ranges_and_channels_return_400(tenant: Tenant, parameters: dict[str, str]) -> None:
    assert tenant.private.get("/api/analytics", query_string=parameters).status_code == 400


def test_analytics_page_shows_channels_pages_and_date_filters(searched: Tenant) -> None:
    whole = shown(searched)

    for text in (
        "Clicked pages",
        "Pages that visitors searched from",
        "/docs/start",
        "/about",
        "Channel",
        "Searches per hour",
    ):
        assert text in whole
    of_box = shown(searched, channel="box")
    assert "/about" not in of_box
    assert "channel=box" in of_box
    dated = shown(searched, **{"from": "2020-02-01", "to": "2020-02-29"})
    assert "No searches in this period" in dated
    assert 'value="2020-02-29"' in dated


def test_days_without_searches_leave_gaps_in_the_chart_lines() -> None:
    days = [DayCount(TODAY, *numbers) for numbers in ((10, 1, 0, 0), (0, 0, 0, 0), (4, 1, 1, 1), (4, 2, 0, 0))]

    empty, clicked = draw_rates(days, has_clicks=True).lines

    assert empty.path == "M0 80.0H10M25 50.0L35 0.0"
    assert clicked.path == "M0 100.0H10M25 50.0L35 100.0"
    assert empty.summary == "Without results: 10% to 50% of a day’s searches."


def test_single_day_rate_is_not_written_as_a_range() -> None:
    (empty,) = draw_rates([DayCount(TODAY, 4, 1, 0, 0)], has_clicks=False).lines

    assert empty.summary == "Without results: 25% of a day’s searches."


def test_pages_beyond_the_limit_are_not_listed_but_their_searches_count(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.analytics.rollups.MAX_PAGES", 2)
    for number in range(4):
        log = {"query": f"query {number}", "results_count": 1}
        headers = {"X-Search-Channel": "box", "X-Search-Page": f"/{number}?token=secret"}
        assert_ok(tenant.public.post("/api/v1/search-log", json=log, headers=headers))
        tenant.app.extensions["runtime"].events.flush()

    answer = told(tenant)

    assert [each["page"] for each in answer["pages"]] == ["/0", "/1"]
    assert answer["channels"][0]["searches"] == 4


def test_buttons_toggle_learning_from_clicks_and_reset_learned_changes(searched: Tenant) -> None:
    path = f"/sites/{searched.site_id}/learned-clicks"
    settings = f"/sites/{searched.site_id}/search-settings"
    assert "Start learning from clicks" in shown(searched)

    def send(**fields: str) -> None:
        form = {"csrf_token": searched.browser.csrf_token, **fields}
        assert searched.browser.client.post(path, data=form).status_code == 303

    send(learn="true")
    assert assert_ok(searched.private.get(settings))["settings"]["learn_from_clicks"] is True
    assert "Reset learned changes" in shown(searched)
    send(_method="DELETE")
    with searched.app.extensions["runtime"].database.read() as session:
        assert session.get_one(ClickLessons, searched.site_id).clicks_since is not None
    send(learn="false")
    assert assert_ok(searched.private.get(settings))["settings"]["learn_from_clicks"] is False
