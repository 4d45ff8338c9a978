"""GET /v1/popular."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import delete
from werkzeug.test import TestResponse

from app.clock import now
from app.models import SearchClick
from app.models.base import from_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.visitors import KEY_DAYS, NETWORK_BITS
from app.services.search.popular_pages import LIFETIME, MAX_CANDIDATES, MAX_ENTRIES
from tests import shared_servers
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.gateway.callers import Gateway
from tests.responses import assert_error, assert_ok

NOON = from_microseconds((KEY_DAYS * 760 + 15) * DAY_MICROSECONDS) + timedelta(hours=12)
"""A time in the middle of a key period."""


@pytest.fixture(autouse=True)
def clock() -> Any:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def click(tenant: Tenant, number: int, *visitors: int | None, at: datetime | None = None) -> None:
    """Store clicks on a page. Visitors below 100 are on networks of their own; None is an unknown visitor."""
    with tenant.app.extensions["runtime"].database.write() as session:
        for position, visitor in enumerate(visitors):
            session.add(
                SearchClick(
                    site_id=tenant.site_id,
                    search_key=hash((number, visitor, position, at)) & (2**62 - 1),
                    query="word",
                    document_id=f"page-{number}",
                    position=1,
                    occurred_at=at or now(),
                    visitor=None if visitor is None else visitor << NETWORK_BITS,
                )
            )


def popular(client: ApiClient, **parameters: Any) -> list[str]:
    """Return the IDs of popular pages; fail if the response is not a success."""
    return [each["id"] for each in assert_ok(ask(client, **parameters))["pages"]]


def ask(client: ApiClient, **parameters: Any) -> TestResponse:
    return client.get("/v1/popular", query_string=parameters)


def test_popular_pages_are_the_pages_that_most_visitors_clicked(tenant: Tenant) -> None:
    tenant.index(page(1, title="Hours", excerpt="When we are open."), page(2, title="Tickets"), page(3))
    click(tenant, 1, 1, 2, 3)
    click(tenant, 2, 1, 2, 3, 4)

    assert assert_ok(ask(tenant.public))["pages"] == [
        {"id": "page-2", "title": "Tickets", "url": "/pages/2", "excerpt": ""},
        {"id": "page-1", "title": "Hours", "url": "/pages/1", "excerpt": "When we are open."},
    ]


@pytest.mark.parametrize("kind", ["public", "search", "private"])
def test_keys_of_every_type_get_popular_pages(tenant: Tenant, kind: str) -> None:
    tenant.index(page(1))
    click(tenant, 1, 1, 2, 3)
    assert popular(tenant.client(kind)) == ["page-1"]


def test_page_with_fewer_than_three_different_visitors_is_not_popular(tenant: Tenant) -> None:
    tenant.index(page(1), page(2), page(3))
    click(tenant, 1, 1, 1, 1, 2, 2, 2)
    click(tenant, 2, None, None, None, None)
    click(tenant, 3, 7, 8, None, 8)

    assert popular(tenant.public) == []


def test_visitors_of_one_network_are_one_visitor(tenant: Tenant) -> None:
    tenant.index(page(1))
    network = 5 << NETWORK_BITS
    with tenant.app.extensions["runtime"].database.write() as session:
        for number in range(5):
            session.add(
                SearchClick(
                    site_id=tenant.site_id, search_key=number, query="word", document_id="page-1", position=1,
                    occurred_at=now(), visitor=network + number,
                )
            )  # fmt: skip
    assert popular(tenant.public) == []


def test_clicks_that_visitors_report_make_a_page_popular(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    for visitor in range(3):
        body = {"id": "page-1", "query": "word", "session_id": f"visitor-{visitor}"}
        assert_ok(tenant.search.post("/api/v1/click", json=body))
        assert_ok(tenant.public.post("/api/v1/click", json={**body, "id": "page-2"}))
    tenant.app.extensions["runtime"].events.flush()

    assert popular(tenant.public) == ["page-1"], "with a public key, visitors are told apart by their IP addresses"


def test_one_visitor_whose_id_changes_with_the_key_period_is_not_three(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    for number in range(3):
        click(tenant, 1, 10 + number, at=NOON - timedelta(days=KEY_DAYS * number))
        click(tenant, 2, *(20 + 10 * number + each for each in range(3)), at=NOON - timedelta(days=KEY_DAYS * number))

    assert popular(tenant.public, period=90) == ["page-2"]


def test_only_clicks_of_the_period_count(tenant: Tenant) -> None:
    tenant.index(page(1), page(2), page(3))
    midnight = NOON.replace(hour=0)
    click(tenant, 1, 1, 2, 3, at=midnight - timedelta(days=6))
    click(tenant, 2, 1, 2, 3, at=midnight - timedelta(days=6, microseconds=1))
    click(tenant, 3, 1, 2, 3)

    assert set(popular(tenant.public)) == {"page-1", "page-3"}
    assert popular(tenant.public, period=1) == ["page-3"]
    assert len(popular(tenant.public, period=8)) == 3


def test_deleted_pages_are_not_listed_and_make_room_for_others(tenant: Tenant) -> None:
    tenant.index(*(page(number) for number in range(1, 7)))
    for number in range(1, 7):
        click(tenant, number, *range(12 - number))
    assert_ok(tenant.private.delete("/api/v1/index/destroy?id=page-1"))

    assert popular(tenant.public) == ["page-2", "page-3", "page-4", "page-5"]
    assert popular(tenant.public, limit=1) == ["page-2"]
    assert popular(tenant.public, limit=10) == [f"page-{number}" for number in range(2, 7)]


def test_filters_apply_to_popular_pages(tenant: Tenant) -> None:
    tenant.index(page(1, section="news"), page(2, section="help"))
    for number in (1, 2):
        click(tenant, number, 1, 2, 3)

    assert popular(tenant.public, filters=tenant.equals("section", "help")) == ["page-2"]
    assert_error(ask(tenant.public, filters="AND"), 400, "invalid_filter")


def test_filters_are_checked_even_if_no_page_is_popular(tenant: Tenant) -> None:
    tenant.index(page(1))
    assert_error(ask(tenant.public, filters="AND"), 400, "invalid_filter")
    assert popular(tenant.public) == []


def test_rules_for_every_search_hide_popular_pages(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    for number in (1, 2):
        click(tenant, number, 1, 2, 3)
    rule = {"id": "hidden", "when": {}, "do": {"hide": ["page-1"]}}
    assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}/search-settings", json={"rules": [rule]}))

    assert popular(tenant.public) == ["page-2"]


def test_site_without_documents_has_no_popular_pages(tenant: Tenant) -> None:
    click(tenant, 1, 1, 2, 3)
    assert popular(tenant.public) == []


def test_clicks_of_another_site_do_not_count(app: Flask, tenant: Tenant) -> None:
    stranger = register_tenant(app, "stranger@example.com")
    for each in (tenant, stranger):
        each.index(page(1))
    click(stranger, 1, 1, 2, 3)

    assert popular(tenant.public) == []
    assert popular(stranger.public) == ["page-1"]
    assert_error(ask(tenant.private, site_id=stranger.site_id), 404, "site_not_found")


def test_paused_site_has_no_popular_pages(tenant: Tenant) -> None:
    assert_ok(tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False}))
    assert_error(ask(tenant.public), 403, "site_inactive")


@pytest.mark.parametrize(
    ("field", "value"),
    [("limit", "0"), ("limit", "11"), ("period", "0"), ("period", "91"), ("filters", "x" * 2001), ("site_id", "x")],
)
def test_invalid_parameters_are_rejected(tenant: Tenant, field: str, value: str) -> None:
    assert_error(ask(tenant.public, **{field: value}), 400, "validation_failed", field=field)


def test_clicks_are_read_at_most_every_five_minutes(tenant: Tenant, clock: Any) -> None:
    tenant.index(page(1))
    assert popular(tenant.public) == []
    click(tenant, 1, 1, 2, 3)
    clock.shift(LIFETIME - timedelta(seconds=1))
    assert popular(tenant.public) == []
    clock.shift(timedelta(seconds=1))
    assert popular(tenant.public) == ["page-1"]
    with tenant.app.extensions["runtime"].database.write() as session:
        session.execute(delete(SearchClick))
    assert popular(tenant.public) == ["page-1"]
    clock.shift(timedelta(seconds=-1))
    assert popular(tenant.public) == [], "a clock that was set back must not keep an entry for longer"


def test_number_of_cached_lists_and_of_looked_up_pages_is_limited(tenant: Tenant) -> None:
    tenant.index(page(1))
    for number in range(MAX_CANDIDATES + 5):
        click(tenant, number, 1, 2, 3)
    pages = tenant.app.extensions["runtime"].popular_pages
    assert len(pages._clicked_ids(tenant.site_id, 7)) == MAX_CANDIDATES
    for days in range(MAX_ENTRIES + 5):
        pages._clicked_ids(-1 - days, 1)
    assert len(pages._entries) == MAX_ENTRIES


def test_response_may_be_cached_by_the_browser_for_five_minutes(tenant: Tenant) -> None:
    answer = ask(tenant.public)

    assert answer.headers["Cache-Control"] == "private, max-age=300"
    assert answer.headers["Vary"] == "Authorization"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert ask(tenant.public, limit=0).headers["Cache-Control"] == "no-store"


def test_popular_pages_are_not_charged(tenant: Tenant) -> None:
    tenant.set_plan("free", searches_per_day=1)
    for _ in range(3):
        assert popular(tenant.search) == []
    assert_ok(tenant.search.get("/v1/search?q=word"))
    assert popular(tenant.search) == []


def allow_links(tenant: Tenant, number: int, **settings: Any) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    assert_ok(tenant.browser.put(path, json={"no_results_popular": number, **settings}))


def test_search_without_results_offers_popular_pages_only_if_the_owner_allows_it(tenant: Tenant) -> None:
    tenant.index(page(1, title="Hours"), page(2, title=""), page(3))
    click(tenant, 1, 1, 2, 3, 4)
    click(tenant, 2, 1, 2, 3)
    assert "no_results_links" not in tenant.find("zeppelin")

    allow_links(tenant, 5, no_results_links=[{"text": "All", "url": "/all"}])

    links = [
        {"text": "All", "url": "/all"},
        {"text": "Hours", "url": "/pages/1"},
        {"text": "/pages/2", "url": "/pages/2"},
    ]
    assert tenant.find("zeppelin")["no_results_links"] == links
    assert Gateway(tenant).send({"q": "zeppelin"}).get_json()["no_results_links"] == links
    assert "no_results_links" not in tenant.find("hours")
    allow_links(tenant, 1)
    assert tenant.find("zeppelin")["no_results_links"] == links[1:2]


def test_popular_pages_of_a_search_match_its_filters(tenant: Tenant) -> None:
    tenant.index(page(1, section="news"), page(2, section="help"))
    for number in (1, 2):
        click(tenant, number, 1, 2, 3)
    allow_links(tenant, 5)

    found = tenant.find("zeppelin", filters=tenant.equals("section", "help"))
    assert [link["url"] for link in found["no_results_links"]] == ["/pages/2"]
    found = Gateway(tenant).send({"q": "zeppelin", "filter": "section = news"}).get_json()
    assert [link["url"] for link in found["no_results_links"]] == ["/pages/1"]


def test_search_without_results_succeeds_while_clicks_cannot_be_read(tenant: Tenant) -> None:
    tenant.index(page(1))
    allow_links(tenant, 5, no_results_links=[{"text": "All", "url": "/all"}])
    tenant.find("page")

    with shared_servers.database_away(tenant.app):
        assert tenant.find("zeppelin")["no_results_links"] == [{"text": "All", "url": "/all"}]
