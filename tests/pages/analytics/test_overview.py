"""The page of analytics."""

from __future__ import annotations

from flask import Flask

from tests.callers import Tenant, page
from tests.pages.people import Person


def _facts(app: Flask, person: Person) -> dict[str, str]:
    app.extensions["runtime"].events.flush()
    person.go("/api/analytics")
    facts = person.page.one("dl", class_="facts")
    return dict(zip((f.text for f in facts.all("dt")), (f.text for f in facts.all("dd")), strict=True))


def test_no_mean_response_is_shown_where_none_was_measured(app: Flask, person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    assert _facts(app, person)["Average response time"] == "–"
    logged = tenant.public.post("/api/v1/search-log", json={"query": "page", "results_count": 1})
    assert logged.status_code == 200
    assert _facts(app, person) == {"Searches": "1", "Unique queries": "1", "Average response time": "–"}
    assert tenant.browser.get("/api/analytics").get_json()["avg_response_time_ms"] == 0

    tenant.find("page")

    facts = _facts(app, person)
    assert facts["Searches"] == "2"
    assert (
        facts["Average response time"]
        == f"{tenant.browser.get('/api/analytics').get_json()['avg_response_time_ms']} ms"
    )
