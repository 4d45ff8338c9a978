"""The page to try a site's search: results as in any search, but free and excluded from analytics."""

from __future__ import annotations

import pytest
from flask import Flask

from app.services.accounts import accounts
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.pages.people import Person
from tests.responses import assert_error

SECTIONS = ("news", "visit", "shop \"A\" 'b' \\")


@pytest.fixture
def harbour(tenant: Tenant) -> Tenant:
    """A customer with 25 pages."""
    tenant.index(
        *(
            page(
                number,
                title=f"Harbour {number}",
                content=f"The ships of the harbour, part {number}.",
                section=SECTIONS[number % 3],
                tags=["sail", "steam"] if number % 2 else ["wood"],
                author="Ann Lee",
                price=number,
            )
            for number in range(25)
        )
    )
    return tenant


def _used(tenant: Tenant) -> int:
    used: int = tenant.search.get("/v1/client-info").get_json()["limits"]["used_today"]
    return used


def _set_quota(app: Flask, tenant: Tenant, searches: int) -> None:
    with app.extensions["runtime"].database.write() as session:
        accounts.change_plan(session, tenant.account_id, "pro", {"searches_per_day": searches})


def test_search_on_the_try_page_is_free_and_excluded_from_analytics(
    app: Flask, person: Person, harbour: Tenant
) -> None:
    person.go(f"/sites/{harbour.site_id}/try")
    assert _used(harbour) == 0
    person.press("Search", q="harbur")
    assert "25 results" in person.page.text
    assert "Searches on this page are free and don’t appear in analytics." in person.page.text
    hits = person.page.one("ol", class_="hits")
    assert len(hits.all("h2")) == 10
    assert hits.all("h2")[0].one("a").attributes["href"].startswith("https://www.example.com/pages/")
    assert {found.text.lower() for found in hits.all("mark")} == {"harbour"}
    assert _used(harbour) == 0
    app.extensions["runtime"].events.flush()
    person.go(f"/api/analytics?site_id={harbour.site_id}")
    assert "harbur" not in person.page.text


def test_search_with_a_key_on_the_try_page_counts_normally(app: Flask, harbour: Tenant) -> None:
    assert harbour.private.get(f"/sites/{harbour.site_id}/try?q=harbur").status_code == 200
    app.extensions["runtime"].events.flush()
    assert _used(harbour) == 1
    assert harbour.private.get("/api/analytics").get_json()["total_searches"] == 1


def test_document_dates_are_shown_readably(person: Person, tenant: Tenant) -> None:
    tenant.index(
        page(1, title="Harbour A", date="2024-05-01"),
        page(2, title="Harbour B", date="2024-05-01T23:30:00-01:00"),
    )
    person.go(f"/sites/{tenant.site_id}/try?q=harbour")
    times = {found.attributes["datetime"]: found.text for found in person.page.one("main").all("time")}
    assert times == {"2024-05-01": "1 May 2024", "2024-05-02T00:30:00.000Z": "2 May 2024, 00:30 UTC"}


def test_empty_search_form_uses_no_quota(person: Person, harbour: Tenant) -> None:
    for address in ("", "?q=", "?q=%20", "?f=section:news"):
        person.go(f"/sites/{harbour.site_id}/try{address}")
        assert person.response.status_code == 200
    assert _used(harbour) == 0


def test_search_results_are_paginated(person: Person, harbour: Tenant) -> None:
    person.go(f"/sites/{harbour.site_id}/try?q=harbour")
    titles = []
    for number in (1, 2, 3):
        titles += [found.text for found in person.page.one("ol", class_="hits").all("h2")]
        assert f"Page {number} of 3" in person.page.text
        if number < 3:
            person.go(f"/sites/{harbour.site_id}/try" + person.page.first("a", "Next").attributes["href"])
    assert sorted(titles) == sorted(f"Harbour {number}" for number in range(25))
    person.go(f"/sites/{harbour.site_id}/try?q=harbour&page=9")
    assert "No more results." in person.page.text


def test_results_can_be_narrowed_and_widened_with_facets(person: Person, harbour: Tenant) -> None:
    base = f"/sites/{harbour.site_id}/try"
    person.go(f"{base}?q=harbour")
    groups = [found.text for found in person.page.one("aside").all("h3")]
    assert groups == ["section", "tags"], (
        "fields with one value for all documents, or one for each, are not useful facets"
    )
    for value in SECTIONS:
        person.go(f"{base}?q=harbour")
        person.go(base + person.page.one("aside").first("a", value).attributes["href"])
        expected = sum(1 for number in range(25) if SECTIONS[number % 3] == value)
        assert f"{expected} results" in person.page.text, value
        assert person.page.one("aside").one("a", aria_current="true").text == value
    person.go(base + person.page.one("aside").first("a", "wood").attributes["href"])
    expected = sum(1 for number in range(25) if number % 3 == 2 and number % 2 == 0)
    assert f"{expected} results" in person.page.text
    person.go(base + person.page.one("p", class_="chosen").all("a")[0].attributes["href"])
    assert "13 results" in person.page.text


def test_page_reports_that_a_search_has_no_results(person: Person, harbour: Tenant) -> None:
    person.go(f"/sites/{harbour.site_id}/try?q=zeppelin")
    assert "No results for “zeppelin”" in person.page.text


@pytest.mark.parametrize(("q", "said"), [
    ("harbuor ships", "Showing results for harbour ships instead of “harbuor ships”."),
    ("harbour zeppelin", "No page contains all the words. These pages contain some of them."),
])  # fmt: skip
def test_corrected_and_missing_words_are_reported(person: Person, harbour: Tenant, q: str, said: str) -> None:
    person.go(f"/sites/{harbour.site_id}/try?q={q}")
    assert said in person.page.text
    person.go(f"/sites/{harbour.site_id}/try?q=harbour+ships")
    assert said not in person.page.text
    assert "every word" not in person.page.text


def test_try_page_reports_that_the_site_has_no_pages(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/try")
    assert "No pages yet" in person.page.text


def test_try_page_reports_that_the_site_is_paused_and_uses_no_quota(person: Person, harbour: Tenant) -> None:
    harbour.browser.put(f"/sites/{harbour.site_id}", json={"active": False})
    response = person.call("GET", f"/sites/{harbour.site_id}/try?q=harbour")
    assert response.status_code == 403
    assert "This site is paused" in person.page.text
    assert person.page.one("input", type="search").attributes["value"] == "harbour"
    assert _used(harbour) == 0


def test_try_page_works_when_the_daily_search_quota_is_used_up(app: Flask, person: Person, harbour: Tenant) -> None:
    _set_quota(app, harbour, 1)
    harbour.find("harbour")

    assert person.call("GET", f"/sites/{harbour.site_id}/try?q=harbour").status_code == 200


def test_try_page_searches_are_limited_per_day(
    app: Flask, person: Person, harbour: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.usage.quota.PREVIEW_LIMIT", 1)
    assert person.call("GET", f"/sites/{harbour.site_id}/try?q=harbour").status_code == 200
    response = person.call("GET", f"/sites/{harbour.site_id}/try?q=harbour")
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0
    assert "Search limit reached" in person.page.text
    assert person.call("GET", f"/sites/{harbour.site_id}/try").status_code == 200
    harbour.find("harbour")


def test_try_page_with_the_engine_unavailable_returns_503_and_uses_no_quota(
    app: Flask, person: Person, harbour: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise BackendUnavailable("away", retry_after=3)

    monkeypatch.setattr(app.extensions["runtime"].searcher, "run", away)
    response = person.call("GET", f"/sites/{harbour.site_id}/try?q=harbour")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "3")
    assert "The search engine is unavailable" in person.page.text
    assert _used(harbour) == 0


@pytest.mark.parametrize(
    "address",
    ["?q=x&filters=nonsense(", "?q=x&limit=1000", "?q=x&page=0", "?q=" + "x" * 600, "?q=%ff", "?q=x&f=unknown:1"],
)
def test_invalid_search_on_the_try_page_returns_400_and_uses_no_quota(
    person: Person, harbour: Tenant, address: str
) -> None:
    response = person.call("GET", f"/sites/{harbour.site_id}/try{address}")
    assert response.status_code == 400
    assert "The search failed" in person.page.text
    assert _used(harbour) == 0


def test_try_page_returns_the_search_response_as_json(harbour: Tenant) -> None:
    answer = harbour.browser.get(f"/sites/{harbour.site_id}/try?q=harbour").get_json()
    expected = harbour.search.get("/v1/search?q=harbour&limit=10&highlight=true&facets=*").get_json()
    for results in (answer["results"], expected["results"]):
        results.pop("processingTimeMs")
        assert results.pop("query_id")
    assert answer["results"] == expected["results"]
    assert answer["remaining_quota"] == {"daily_limit": 10_000, "used_today": 0, "unlimited": False}
    response = harbour.browser.get(f"/sites/{harbour.site_id}/try")
    assert_error(response, 400, "validation_failed", field="q")


def test_head_request_on_the_try_page_is_not_counted(app: Flask, harbour: Tenant) -> None:
    response = harbour.browser.call("HEAD", f"/sites/{harbour.site_id}/try?q=harbour")
    assert (response.status_code, response.data) == (200, b"")
    app.extensions["runtime"].events.flush()
    assert _used(harbour) == 0
    assert harbour.browser.get("/api/analytics").get_json()["total_searches"] == 0


def test_try_page_is_unavailable_to_other_accounts_and_search_keys(
    harbour: Tenant, stranger: Tenant, passer_by: Person
) -> None:
    path = f"/sites/{harbour.site_id}/try?q=harbour"
    assert_error(stranger.browser.get(path), 404, "site_not_found")
    assert passer_by.call("GET", path).status_code == 302
    assert_error(harbour.search.get(path), 403, "insufficient_permission")
    assert _used(harbour) == 0
    assert _used(stranger) == 0


def test_each_result_explains_its_position(person: Person, tenant: Tenant) -> None:
    tenant.index(page("a", title="Harbours", content="Ships."), page("b", title="A pier", content="Near the harbour."))
    settings = {"boosts": [{"path": "/pages/b", "rank": 2}]}
    assert tenant.browser.put(f"/sites/{tenant.site_id}/search-settings", json=settings).status_code == 200

    person.go(f"/sites/{tenant.site_id}/try?q=harbour+ships")
    assert [hit.one("details").text.count("all the words") for hit in person.page.one("ol", class_="hits").all("li")
            if hit.all("details")] == [1, 0]  # fmt: skip
    person.go(f"/sites/{tenant.site_id}/try?q=harbour")
    reasons = {hit.one("h2").text: hit.one("details").text for hit in person.page.one("ol", class_="hits").all("li")
               if hit.all("details")}  # fmt: skip

    assert "It contains all the words of the search." in reasons["Harbours"]
    assert "“harbours” in the title, another form of “harbour”." in reasons["Harbours"]
    assert "“harbour” in the content, as typed." in reasons["A pier"]
    assert "Its rank is +2." in reasons["A pier"]
    assert "1.56 (rank)" in reasons["A pier"]


def test_result_with_a_part_of_a_longer_word_explains_it(person: Person, tenant: Tenant) -> None:
    tenant.index(page("a", title="Reference", content="Call openHarbourGate."))
    person.go(f"/sites/{tenant.site_id}/try?q=harbour")
    (hit,) = [each for each in person.page.one("ol", class_="hits").all("li") if each.all("details")]
    assert "“harbour” as a part of a longer word." in hit.one("details").text
    assert "openHarbourGate" in [mark.text for mark in hit.all("mark")]


def test_pinned_result_explains_that_it_is_pinned(person: Person, tenant: Tenant) -> None:
    tenant.index(page("a", title="Harbour"))
    settings = {"pinned": [{"query": "ferry", "ids": ["page-a"]}]}
    assert tenant.browser.put(f"/sites/{tenant.site_id}/search-settings", json=settings).status_code == 200

    person.go(f"/sites/{tenant.site_id}/try?q=ferry")

    assert "It is pinned for this search." in person.page.one("ol", class_="hits").one("details").text
