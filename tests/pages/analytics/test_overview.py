"""The analytics overview page."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.callers import Tenant, page
from tests.pages.people import Person
from tests.services.inbox.test_items import count, missed

ANALYTICS = "/api/analytics"


def figures(app: Flask, person: Person) -> dict[str, str]:
    app.extensions["runtime"].events.flush()
    person.go(ANALYTICS)
    shown = person.page.one("dl", class_="figures")
    return dict(
        zip(
            (each.text for each in shown.all("dt")),
            (each.text for each in shown.all("dd", class_="value")),
            strict=True,
        )
    )


def listed(person: Person, name: str) -> list[list[str]]:
    section = person.page.one("section", **{"aria-labelledby": f"{name}-title"})
    return [[cell.text for cell in row.all("th") + row.all("td")] for row in section.one("tbody").all("tr")]


def test_average_response_time_is_shown_only_if_measured(app: Flask, person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    assert figures(app, person)["Average response time"] == "–"
    logged = tenant.public.post("/api/v1/search-log", json={"query": "page", "results_count": 1})
    assert logged.status_code == 200
    assert figures(app, person) == {
        "Searches": "1",
        "Unique queries": "1",
        "Searches without results": "0%",
        "Average response time": "–",
    }
    assert tenant.browser.get(ANALYTICS).get_json()["avg_response_time_ms"] == 0

    tenant.find("page")

    shown = figures(app, person)
    assert shown["Searches"] == "2"
    assert shown["Average response time"] == f"{tenant.browser.get(ANALYTICS).get_json()['avg_response_time_ms']} ms"


def test_searches_without_results_are_listed_and_link_to_the_query_page(
    app: Flask, person: Person, tenant: Tenant
) -> None:
    tenant.index(page(1))
    tenant.find("page")
    tenant.find("zeppelin <b>")
    app.extensions["runtime"].events.flush()
    person.go(f"{ANALYTICS}?site_id={tenant.site_id}&period=7d")

    assert listed(person, "top_queries") == [
        ["page", "1", "… Never suggest"],
        ["zeppelin <b>", "1", "… Never suggest"],
    ]
    assert listed(person, "zero_result_queries") == [["zeppelin <b>", "1"]]
    link = person.page.one("section", **{"aria-labelledby": "zero_result_queries-title"}).one("a")
    address = f"/api/analytics/query?site_id={tenant.site_id}&period=7d&q=zeppelin%20%3Cb%3E"
    assert link.attributes["href"] == address


def test_full_list_of_queries_can_be_sorted_and_paginated(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.find("page")
    tenant.app.extensions["runtime"].events.flush()
    for number in range(60):
        missed(tenant, f"query {number:02}", 1, 1 + number)
    person.go(f"{ANALYTICS}?site_id={tenant.site_id}")
    assert len(listed(person, "zero_result_queries")) == 10

    (link,) = [a for a in person.page.all("a") if a.attributes.get("aria-label") == "No results: show all"]
    person.go(ANALYTICS + link.attributes["href"])
    assert person.page.one("h1").text == "No results"

    def queries() -> list[str]:
        return [row.one("th").text for row in person.page.one("tbody").all("tr")]

    assert queries()[0] == "query 59"
    person.go(ANALYTICS + person.page.first("a", "Query").attributes["href"])
    assert queries()[0] == "query 00"
    assert person.page.all("th", aria_sort="ascending")[0].text.startswith("Query")
    person.go(ANALYTICS + person.page.first("a", "Next").attributes["href"])
    assert queries()[-1] == "query 59"
    person.press("Show", period="7d")
    assert person.page.one("h1").text == "No results"


def test_click_lists_are_shown_only_if_clicks_are_reported(person: Person, tenant: Tenant) -> None:
    tenant.find("page")
    tenant.app.extensions["runtime"].events.flush()
    count(tenant, "unclicked", searches=4, found_visitors=4)
    person.go(f"{ANALYTICS}?site_id={tenant.site_id}")

    assert "No clicks were reported in this period." in person.page.text
    assert not person.page.has(lambda found: found.attributes.get("id") == "no_click_queries-title")


@pytest.mark.parametrize(("query", "offered"), [("", "Go to sites"), ("?site_id={site}", "Add the search box")])
def test_overview_without_searches_links_to_the_next_step(
    person: Person, tenant: Tenant, query: str, offered: str
) -> None:
    person.go(ANALYTICS + query.format(site=tenant.site_id))

    assert "No searches in this period" in person.page.text
    person.follow(offered)
    assert person.response.status_code == 200


def test_empty_list_links_back_to_analytics(person: Person, tenant: Tenant) -> None:
    person.go(f"{ANALYTICS}?site_id={tenant.site_id}&list=partial_queries")

    assert "Nothing to list" in person.page.text
    person.follow("Back to analytics")
    assert person.page.one("h1").text == "Analytics"
