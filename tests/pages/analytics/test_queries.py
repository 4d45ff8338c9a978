"""The analytics page of one query."""

from __future__ import annotations

from typing import Any

import pytest

from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.pages.people import Person
from tests.responses import assert_ok

QUERY = "/api/analytics/query"


@pytest.fixture
def museum(tenant: Tenant) -> Tenant:
    """A site whose visitors search for opening hours."""
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours of work"))
    return tenant


def search(tenant: Tenant, query: str, *clicks: tuple[str, int]) -> None:
    tenant.find(query)
    for document_id, position in clicks:
        body = {"query": query, "id": document_id, "position": position}
        assert_ok(tenant.public.post("/api/v1/click", json=body))
    tenant.app.extensions["runtime"].events.flush()


def figures(person: Person) -> dict[str, str]:
    shown = person.page.one("dl", class_="figures")
    values = shown.all("dd", class_="value")
    return {label.text: value.text for label, value in zip(shown.all("dt"), values, strict=True)}


def show(person: Person, tenant: Tenant, query: str, **parameters: str) -> None:
    person.call("GET", QUERY, query_string={"site_id": tenant.site_id, "q": query, **parameters})


def test_query_page_shows_searches_clicks_and_current_results(person: Person, museum: Tenant) -> None:
    search(museum, "Hours", ("page-2", 2), ("gone", 1))

    show(person, museum, " HOURS ")

    assert person.page.one("h1").text == "“hours”"
    assert figures(person) == {
        "Searches": "1",
        "Results now": "2 pages",
        "Clicks": "2",
        "Searches with a click": "100%",
        "Average position of clicks": "1.5",
    }
    clicked = person.page.one("section", **{"aria-labelledby": "clicked-title"})
    rows = [[cell.text for cell in row.all("th") + row.all("td")] for row in clicked.one("tbody").all("tr")]
    assert sorted(rows) == [["Hours of work", "1", "2.0"], ["gone (removed)", "1", "1.0"]]
    now = person.page.one("section", **{"aria-labelledby": "now-title"})
    assert {item.text for item in now.all("li")} == {"Opening hours", "Hours of work"}


def test_query_page_shows_the_clicked_sections(person: Person, museum: Tenant) -> None:
    for session, anchor in (("s", "<b>"), ("t", "<b>"), ("u", "prices"), ("v", None)):
        body = {"query": "hours", "id": "page-2", "session_id": session, "anchor": anchor}
        assert_ok(museum.public.post("/api/v1/click", json=body))
    museum.app.extensions["runtime"].events.flush()

    show(person, museum, "hours")

    clicked = person.page.one("section", **{"aria-labelledby": "clicked-title"})
    assert [item.text for item in clicked.all("li")] == ["#<b>: 2", "#prices: 1"]


def test_query_page_offers_the_same_remedies_as_the_inbox(person: Person, museum: Tenant) -> None:
    search(museum, "zeppelin")
    show(person, museum, "zeppelin")
    assert "No results. Add a synonym that your pages use, or pin a page." in person.page.text

    person.follow("Add a synonym")
    assert person.page.one("h1").text == "Add a synonym for “zeppelin”"
    show(person, museum, "zeppelin")
    person.press("Ignore in the inbox")
    assert "“zeppelin” is ignored." in person.page.text
    show(person, museum, "zeppelin")
    person.press("Show in the inbox again")
    assert "“zeppelin” is no longer ignored." in person.page.text


def test_query_page_marks_pinned_results(person: Person, museum: Tenant) -> None:
    pinned = [{"query": "work", "ids": ["page-1"]}]
    museum.private.put(f"/sites/{museum.site_id}/search-settings", json={"pinned": pinned})

    show(person, museum, "work")

    assert "Opening hours Pinned" in [item.text for item in person.page.all("li")]


def test_query_page_reports_that_there_are_no_searches(person: Person, museum: Tenant) -> None:
    show(person, museum, "hours", period="7d")

    assert "No searches in this period" in person.page.text
    assert figures(person)["Searches with a click"] == "–"


def test_query_page_shows_everything_else_if_the_engine_is_unavailable(
    person: Person, museum: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(museum, "hours")

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise BackendUnavailable

    monkeypatch.setattr(museum.app.extensions["runtime"].searcher, "run", fail)
    show(person, museum, "hours")

    assert person.response.status_code == 200
    assert figures(person)["Searches"] == "1"
    assert figures(person)["Results now"] == "–"
    assert "The search engine is unavailable." in person.page.text


@pytest.mark.parametrize("query", ["", "site_id=1", "q=x", "site_id=1&q=%20", "site_id=1&q=x&period=1d"])
def test_query_page_with_invalid_parameters_returns_400(person: Person, museum: Tenant, query: str) -> None:
    person.call("GET", f"{QUERY}?{query}")
    assert person.response.status_code == 400


def test_query_page_for_another_accounts_site_returns_404(person: Person, museum: Tenant, stranger: Tenant) -> None:
    show(person, stranger, "hours")
    assert person.response.status_code == 404
