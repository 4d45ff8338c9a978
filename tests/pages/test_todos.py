"""The to-do list on a site's overview and on the dashboard."""

from __future__ import annotations

import pytest
from flask import Flask

from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.pages.people import Person
from tests.pages.sources.test_views import make_source


def _todos(person: Person, path: str) -> list[str]:
    return [found.text for each in person.go(path).all("ul", class_="todos") for found in each.all("li")]


def _miss(app: Flask, tenant: Tenant, query: str, visitors: int) -> None:
    for visitor in range(visitors):
        tenant.find(query, session_id=f"visitor-{visitor}")
    app.extensions["runtime"].events.flush()


def test_todo_list_is_empty_without_problems(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))

    assert _todos(person, f"/sites/{tenant.site_id}") == _todos(person, "/dashboard") == []


def test_query_without_results_is_listed_with_its_visitors_until_it_has_results(
    app: Flask, person: Person, tenant: Tenant
) -> None:
    tenant.index(page(1))
    _miss(app, tenant, "zeppelin", 2)
    told = (
        f"Visitors searched {tenant.site['name']} for “zeppelin” without finding what they wanted (2 visitors). Review"
    )

    assert told in _todos(person, f"/sites/{tenant.site_id}")
    assert told in _todos(person, "/dashboard")
    tenant.index(page(2, title="Zeppelin"))
    assert _todos(person, f"/sites/{tenant.site_id}") == []


def test_missed_query_without_sessions_is_listed_with_its_searches(app: Flask, person: Person, tenant: Tenant) -> None:
    """Visitors cannot be distinguished if a server searches for them without a session ID."""
    tenant.index(page(1))
    for _ in range(3):
        tenant.find("zeppelin")
    app.extensions["runtime"].events.flush()
    assert _todos(person, "/dashboard") == [
        f"Visitors searched {tenant.site['name']} for “zeppelin” without finding what they wanted (3 searches). Review"
    ]


def test_reached_quota_and_queued_run_are_listed_most_severe_first(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    tenant.set_plan("pro", documents=2)
    source = make_source(tenant)

    quota = "Indexed pages: 2 of 2. Limit reached: new pages are rejected. View plans"
    assert _todos(person, "/dashboard") == [quota, f"{source['url']} is about to be crawled. View progress"]
    # Above them, the site's own page says that its first crawl starts.
    assert _todos(person, f"/sites/{tenant.site_id}") == [quota]


def test_todo_list_reports_an_unavailable_engine(
    app: Flask, person: Person, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    _miss(app, tenant, "zeppelin", 1)

    def away(*_: object, **__: object) -> None:
        raise BackendUnavailable("away")

    monkeypatch.setattr("app.services.inbox.search_now", away)

    (told,) = _todos(person, f"/sites/{tenant.site_id}")
    assert "The search engine isn’t responding" in told


def _search_until_rejected(tenant: Tenant, count: int) -> None:
    statuses = [
        tenant.search.get("/v1/search", query_string={"q": f"hours {number}"}).status_code for number in range(count)
    ]
    assert 429 in statuses


def test_searches_rejected_by_the_limit_per_minute_are_listed_with_a_remedy(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.set_plan("pro", requests_per_minute=4)
    _search_until_rejected(tenant, 6)  # Sending the page was the first of four requests.

    (told,) = _todos(person, "/dashboard")
    assert told.startswith("3 searches rejected in the last 7 days, because your plan allows 4 requests per minute.")
    assert told.endswith("otherwise, choose a larger plan. View plans")
    assert _todos(person, f"/sites/{tenant.site_id}") == [told]


def test_searches_beyond_the_daily_limit_are_listed_only_as_its_quota(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.set_plan("pro", searches_per_day=2)
    _search_until_rejected(tenant, 4)

    (told,) = _todos(person, "/dashboard")
    assert told.startswith("Searches today: 2 of 2.")
