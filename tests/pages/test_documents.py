"""The pages of a site's stored documents: listing, lookup, removal, and export."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from app.runtime import Runtime
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.pages.markup import Element
from tests.pages.people import Person, person_of


@pytest.fixture
def person(tenant: Tenant) -> Person:
    return person_of(tenant)


def pages_of(tenant: Tenant) -> str:
    return f"/sites/{tenant.site_id}/documents"


def titles(person: Person) -> list[str]:
    if not person.page.all("tbody"):
        return []
    return [row.one("th").text for row in person.page.one("tbody").all("tr")]


def send_from(tenant: Tenant, source: str, *numbers: int) -> None:
    sync = tenant.private.post("/api/v1/sync", json={"source": source}).get_json()["sync"]["id"]
    body = {"documents": [page(number) for number in numbers]}
    assert tenant.private.post(f"/api/v1/index/bulk?sync={sync}", json=body).status_code == 200


def test_pages_are_listed_with_sources_most_recently_changed_first(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1))
    send_from(tenant, "wordpress", 2)

    person.go(pages_of(tenant))

    assert titles(person) == ["Page 2", "Page 1"]
    rows = [[cell.text for cell in row.all("td")] for row in person.page.one("tbody").all("tr")]
    assert [row[:2] for row in rows] == [["/pages/2", "API, wordpress"], ["/pages/1", "API"]]
    person.go(f"{pages_of(tenant)}?source=wordpress")
    assert titles(person) == ["Page 2"]


def test_page_list_shows_clicks_of_28_days_and_leads_to_pinning(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1), page(2, url="https://other.example.com/2?a=b"))
    assert "Clicks" not in person.go(pages_of(tenant)).text
    for query in ("page", "pages"):
        tenant.find(query, session_id="visitor")
        tenant.app.extensions["runtime"].events.flush()
        click = {"query": query, "id": "page-1", "session_id": "visitor"}
        assert tenant.private.post("/api/v1/click", json=click).status_code == 200
    tenant.app.extensions["runtime"].events.flush()

    person.go(pages_of(tenant))

    clicks = {row.one("th").text: row.all("td", data_label="Clicks in 28 days")[0].text for row in rows_of(person)}
    assert clicks == {"Page 1": "2", "Page 2": "0"}
    paths = {row.one("th").text: row.all("td")[0].text for row in rows_of(person)}
    assert paths == {"Page 1": "/pages/1", "Page 2": "https://other.example.com/2?a=b"}
    person.follow("Pin or hide")
    assert person.page.one("h1").text == "Try the search"


def rows_of(person: Person) -> list[Element]:
    return person.page.one("tbody").all("tr")


def test_page_list_is_paginated(tenant: Tenant, person: Person) -> None:
    for start in range(0, 45, 15):
        tenant.index(*map(page, range(start, start + 15)))
    seen: list[str] = []
    person.go(pages_of(tenant))
    for _ in range(2):
        seen += titles(person)
        person.go(person.page.one("a", rel="next").attributes["href"])
    seen += titles(person)

    assert len(seen) == len(set(seen)) == 45
    assert not person.page.all("a", rel="next")
    newest = next(link for link in person.page.all("a") if link.text == "Newest")
    person.go(newest.attributes["href"])
    assert titles(person) == seen[:20]


@pytest.mark.parametrize(("query", "expected"), [
    ("page-2", ["Page 2"]), ("/pages/2", ["Page 2"]), ("tram", ["Page 1"]), ("zeppelin", []), ("x" * 600, []),
    ("/nowhere", []), ("  page-1 ", ["Page 1"]), ("https://www.example.com/", []), ("\x00", ["Page 1", "Page 2"]),
])  # fmt: skip
def test_page_can_be_looked_up_by_id_url_or_words(
    tenant: Tenant, person: Person, query: str, expected: list[str]
) -> None:
    tenant.index(page(1, content="Take the tram."), page(2, content="nothing"))

    person.call("GET", pages_of(tenant), query_string={"q": query})

    assert person.response.status_code == 200
    assert sorted(titles(person)) == expected or titles(person)[:1] == expected


def test_lookup_is_not_recorded_as_a_search(app: Flask, tenant: Tenant, person: Person) -> None:
    tenant.index(page(1))
    person.go(f"{pages_of(tenant)}?q=page")
    used = tenant.search.get("/v1/search?q=x").get_json()["remaining_quota"]["used_today"]

    assert used == 1
    app.extensions["runtime"].events.flush()
    assert tenant.private.get("/api/analytics").get_json()["total_searches"] == 1


def test_lookup_finds_hidden_pages(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1), page(2))
    settings = {"hidden": [{"query": "content", "ids": ["page-1"]}]}
    assert tenant.browser.put(f"/sites/{tenant.site_id}/search-settings", json=settings).status_code == 200
    assert tenant.found_ids("content") == ["page-2"]

    person.go(f"{pages_of(tenant)}?q=content")

    assert sorted(titles(person)) == ["Page 1", "Page 2"]


def test_lookup_by_id_works_without_the_engine(
    app: Flask, tenant: Tenant, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1))
    part: Runtime = app.extensions["runtime"]

    def away(*args: object, **kwargs: object) -> None:
        raise BackendUnavailable("away")

    monkeypatch.setattr(part.engines.default, "search", away)
    person.go(f"{pages_of(tenant)}?q=page-1")

    assert titles(person) == ["Page 1"]
    assert "look up pages only by ID" in person.page.one("main").text


def test_page_shows_all_stored_fields(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1, title="<i>One</i>", price=5, tags=["a", "b"], date="2024-05-01"))
    person.go(pages_of(tenant))
    person.go(person.page.one("tbody").one("th").one("a").attributes["href"])

    assert person.page.one("h1").text == "<i>One</i>"
    shown = {row.one("th").text: row.one("td").text for row in person.page.one("tbody").all("tr")}
    assert shown == {"id": "page-1", "url": "/pages/1", "price": "5", "tags": "a, b", "date": "2024-05-01"}
    assert "The content of page 1." in person.page.one("main").text
    assert "POST /api/v1/index/bulk" in person.page.one("main").text
    current = [link.text for link in person.page.all("a") if "aria-current" in link.attributes]
    assert "Pages" in current


def test_page_shows_the_titles_of_its_sections(tenant: Tenant, person: Person) -> None:
    sections = [
        {"anchor": "a", "title": "Opening hours", "level": 2, "start": 0},
        {"anchor": "b", "title": "Prices", "level": 2, "start": 9},
    ]
    tenant.index(page(1, content="Open now. Cheap.", sections=sections))

    person.go(f"{pages_of(tenant)}?id=page-1")

    shown = {row.one("th").text: row.one("td").text for row in person.page.one("tbody").all("tr")}
    assert shown["sections"] == "Opening hours, Prices"


def test_page_is_removed_after_confirmation(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1), page(2))
    person.go(f"{pages_of(tenant)}?id=page-1")

    person.press("Remove page")

    assert person.response.status_code == 200
    assert "Page removed." in person.page.one("main").text
    assert titles(person) == ["Page 2"]
    assert tenant.found_ids("page") == ["page-2"]


def test_missing_pages_and_sites_of_other_accounts_return_404(tenant: Tenant, stranger: Tenant, person: Person) -> None:
    stranger.index(page(1))
    theirs = pages_of(stranger)
    for path in (f"{pages_of(tenant)}?id=page-1", f"{pages_of(tenant)}?id=%00", theirs, f"{theirs}?id=page-1",
                 f"{theirs}/export"):  # fmt: skip
        assert person.call("GET", path).status_code == 404, path
    form = {"_method": "DELETE", "id": "page-1", "csrf_token": tenant.browser.csrf_token}
    assert person.call("POST", theirs, data=form).status_code == 404
    assert person.call("POST", pages_of(tenant), data=form).status_code == 404
    assert person.call("POST", pages_of(tenant), data={**form, "csrf_token": ""}).status_code == 403
    assert person.call("GET", f"{pages_of(tenant)}?cursor=x").status_code == 400
    assert stranger.found_ids("page") == ["page-1"]


def test_export_contains_every_page_or_those_of_one_source(tenant: Tenant, person: Person) -> None:
    tenant.index(page(1), page(2))
    send_from(tenant, "shop", 3)
    person.go(f"{pages_of(tenant)}?source=shop")
    link = next(link for link in person.page.all("a") if link.text == "Export as JSON Lines")
    response = person.call("GET", link.attributes["href"])
    assert [json.loads(line)["id"] for line in response.get_data(as_text=True).splitlines()] == ["page-3"]

    response = person.call("GET", f"{pages_of(tenant)}/export")

    assert len(response.get_data(as_text=True).splitlines()) == 3
    assert response.headers["Content-Disposition"] == f'attachment; filename="site-{tenant.site_id}.jsonl"'
