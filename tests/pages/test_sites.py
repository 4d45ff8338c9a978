"""The forms for sites."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app.pages.sites import FIRST_SEARCHES
from tests.callers import Tenant, page
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import Person, person_of, register_person


def test_new_site_shows_next_steps(app: Flask) -> None:
    ann = register_person(app, "ann@example.com")
    ann.follow("Add a site")
    response = ann.send("Add site", name=" Museum ", url="https://Museum.Example.com/start")
    assert response.status_code == 303
    ann.go(response.headers["Location"])
    assert ann.notice.startswith("Site added.")
    ann.follow("The API Send pages from your server.")
    commands = [found.raw_text for found in ann.page.all("code")]
    assert any(text.startswith('curl "http://localhost/api/v1/index/bulk?site_id=') for text in commands)
    ann.follow("Museum")
    assert ann.page.one("h1").text == "Museum Active"
    commands = [found.raw_text for found in ann.page.all("code")]
    (lines,) = (text for text in commands if text.startswith('<div id="site-search"></div>\n<script src='))
    ann.follow("View and customize")
    assert lines in [found.raw_text for found in ann.page.all("code")], "the key must be shown each time"
    ann.follow("Keys")
    assert ann.page.one("ul", class_="rows").one("h2").text == "Search box Active"


def test_invalid_site_form_keeps_input(person: Person) -> None:
    person.go("/sites/create")
    response = person.send("Add site", name="Museum", url="museum")
    assert response.status_code == 400
    assert person.problem_of("url") == "URL must be a web address, such as https://www.example.com."
    assert person.page.one("input", name="name").attributes["value"] == "Museum"
    assert person.page.one("input", name="url").attributes["value"] == "museum"
    person.press("Add site", url="https://museum.example.com")
    assert person.notice.startswith("Site added.")


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("digital.gov", "https://digital.gov"),
        (" digital.gov/guides?a=b#c ", "https://digital.gov/guides?a=b#c"),
        ("//digital.gov/", "https://digital.gov/"),
        ("localhost.example:8080/x", "https://localhost.example:8080/x"),
        ("münchen.de", "https://münchen.de"),
        ("http://digital.gov", "http://digital.gov"),
    ],
)
def test_site_url_can_be_entered_without_https(person: Person, tenant: Tenant, typed: str, url: str) -> None:
    person.go("/sites/create")
    assert person.page.one("input", name="url").attributes["type"] == "text", "browsers would not accept it as a URL"
    person.press("Add site", name="Digital", url=typed)
    assert person.notice.startswith("Site added.")
    assert tenant.browser.get("/sites").get_json()["sites"][-1]["url"] == url
    path = person.path.partition("/sources")[0]
    person.go(f"{path}/edit")
    person.press("Save", url=typed)
    assert tenant.browser.get(path).get_json()["site"]["url"] == url
    rejected = tenant.browser.post("/sites", json={"name": "Digital", "url": typed.strip()})
    assert rejected.status_code == (201 if typed == url else 400), "searches by programs are counted without merging"


@pytest.mark.parametrize(
    "typed", ["museum", "ann@digital.gov", "mailto:ann@digital.gov", "ftp://digital.gov", "javascript:alert(1.1)",
              "https//digital.gov", "digital.gov:port", "two words.gov", "digital..gov", "/\\digital.gov", "."],
)  # fmt: skip
def test_invalid_site_url_is_rejected_and_preserved_in_the_form(person: Person, typed: str) -> None:
    person.go("/sites/create")
    assert person.send("Add site", name="Digital", url=typed).status_code == 400
    assert person.problem_of("url") == "URL must be a web address, such as https://www.example.com."
    assert person.page.one("input", name="url").attributes["value"] == typed


WAY_OUT = "To add another, delete one or ask the operator of this service for a larger plan."


def test_site_form_submitted_at_the_limit_preserves_input(tenant: Tenant, person: Person) -> None:
    person.go("/sites/create")
    tenant.set_plan("free")
    response = person.send("Add site", name="Second", url="https://second.example.com")
    assert response.status_code == 403
    assert person.alerts == ["The plan allows 1 site; delete one or change the plan."]
    assert person.page.one("input", name="name").attributes["value"] == "Second"


def test_site_form_is_replaced_by_advice_at_the_limit(tenant: Tenant, person: Person) -> None:
    person.go("/sites")
    assert "You have 1 of the 10 sites your plan allows." in person.page.text
    assert person.page.first("a", "Add a site").attributes["href"] == "/sites/create"

    tenant.set_plan("free")

    person.go("/sites")
    assert f"You have 1 site, the maximum your plan allows. {WAY_OUT}" in person.page.text
    assert "/sites/create" not in {found.attributes["href"] for found in person.page.all("a")}
    person.go("/sites/create")
    assert f"You have 1 site, the maximum your plan allows. {WAY_OUT}" in person.page.text
    assert person.page.one("main").all("form") == []


def test_plan_without_a_site_limit_shows_no_limit(tenant: Tenant, person: Person) -> None:
    tenant.set_plan("business")
    person.go("/sites")
    assert "You have 1 site; your plan sets no limit." in person.page.text
    person.go("/dashboard")
    meters = [found.text for found in person.page.all("div", class_="meter")]
    assert meters[3].startswith("Sites 1, no limit")
    assert "unlimited" not in person.page.text


def test_dashboard_warns_about_used_up_searches_but_not_about_full_sites_and_keys(
    tenant: Tenant, person: Person
) -> None:
    tenant.set_plan("pro", sites=1, keys=3, searches_per_day=2, documents=2)
    tenant.index(page(1), page(2))
    tenant.find("page")
    tenant.find("page")
    person.go("/dashboard")
    bars = {found.attributes["aria-label"]: found.attributes.get("class", "") for found in person.page.all("progress")}
    assert bars == {
        "Searches today": "full", "Searches this month": "", "Indexed pages": "full", "Sites": "", "API keys": "",
    }  # fmt: skip
    assert "Limit reached: searches are rejected until 00:00 UTC." in person.page.text


def test_editing_a_site_preserves_unchanged_fields(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/edit")
    person.press("Save", name="Renamed")
    assert person.notice == "Site saved."
    site = tenant.browser.get(f"/sites/{tenant.site_id}").get_json()["site"]
    assert (site["name"], site["url"], site["active"]) == ("Renamed", tenant.site["url"], True)


def test_unchecking_active_pauses_the_site(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}"
    person.go(f"{path}/edit")
    box = person.page.one("input", type="checkbox", name="active")
    assert "checked" in box.attributes
    values = {"_method": "PUT", "csrf_token": tenant.browser.csrf_token, "name": "x", "active": "false"}
    person.call("POST", path, data=values)
    assert tenant.browser.get(path).get_json()["site"]["active"] is False
    person.go(f"{path}/edit")
    assert "checked" not in person.page.one("input", type="checkbox", name="active").attributes


def test_paused_site_rejects_searches_until_it_is_resumed(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}")
    person.press("Pause site")
    assert "Site paused" in person.notice
    assert tenant.search.get("/v1/search?q=x").get_json()["error"] == "site_inactive"
    person.press("Resume site")
    assert person.notice == "Site resumed."
    assert tenant.search.get("/v1/search?q=x").status_code == 200


def test_deleted_site_rejects_searches_and_can_be_restored(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}")
    person.press("Delete site", name="Pages")
    assert person.path == "/sites?notice=site-deleted"
    assert "No sites yet" in person.page.text
    assert tenant.search.get("/v1/search?q=x").get_json()["error"] == "site_inactive"
    person.go("/dashboard")
    assert "Recently deleted" in person.page.text
    person.press("Restore")
    assert person.path == f"/sites/{tenant.site_id}?notice=site-restored"
    assert "Recently deleted" not in person.go("/sites").text
    assert tenant.search.get("/v1/search?q=x").status_code == 200


@pytest.mark.parametrize("name", ["", "pages", "<b>Pages</b>"])
def test_deleting_a_site_requires_its_exact_name(person: Person, tenant: Tenant, name: str) -> None:
    person.go(f"/sites/{tenant.site_id}")
    person.press("Delete site", name=name)
    assert "Please correct this:" in person.page.text
    assert tenant.search.get("/v1/search?q=x").status_code == 200


def test_site_can_be_deleted_permanently(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}")
    person.press("Delete site", name="Pages", purge="true")
    assert person.path == "/sites?notice=site-purged"
    assert "Recently deleted" not in person.page.text
    assert tenant.search.get("/v1/search?q=x").status_code == 401


def test_site_list_is_paginated(person: Person, tenant: Tenant) -> None:
    for number in range(5):
        tenant.browser.post("/sites", json={"name": f"Site {number}", "url": "https://www.example.com"})
    person.go("/sites?limit=4")
    assert len(person.page.one("ul", class_="rows").all("h2")) == 4
    person.go("/sites" + person.page.first("a", "Next").attributes["href"])
    assert [found.text for found in person.page.one("ul", class_="rows").all("h2")] == [
        "Site 3 Active",
        "Site 4 Active",
    ]
    assert "Sites 5 to 6 of 6" in person.page.text
    person.go("/sites" + person.page.first("a", "Previous").attributes["href"])
    assert len(person.page.one("ul", class_="rows").all("h2")) == 4


def test_public_url_is_used_in_the_code_to_paste(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, public_url="https://search.example.org"))
    try:
        ann = register_person(app, "ann@example.com")
        ann.go("/sites/create")
        ann.press("Add site", name="Museum", url="https://museum.example.com")
        ann.follow("Museum")
        assert 'src="https://search.example.org/widget.js"' in ann.page.text
        assert "http://localhost" not in ann.page.text
    finally:
        close_app(app)


def test_additional_domains_are_entered_one_per_line(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}"
    person.go(f"{path}/edit")
    person.press("Save", domains="https://blog.example.org/\n\n https://shop.example.net/ \n")
    assert tenant.private.get(path).get_json()["site"]["domains"] == [
        "https://blog.example.org/",
        "https://shop.example.net/",
    ]
    assert "https://blog.example.org/" in person.page.text

    person.go(f"{path}/edit")
    response = person.send("Save", domains="https://blog.example.org/\nshop.example.net")
    assert response.status_code == 400
    assert person.problem_of("domains") == "“shop.example.net” must be a web address, such as https://www.example.com."

    person.go(f"{path}/edit")
    person.press("Save", domains="")
    assert tenant.private.get(path).get_json()["site"]["domains"] == []


def test_every_site_page_belongs_to_one_of_five_tabs(person: Person, tenant: Tenant) -> None:
    site, api = f"/sites/{tenant.site_id}", f"/api/sites/{tenant.site_id}"
    pages = {
        "Overview": [site],
        "Content": [f"{site}/documents", f"{api}/sources", f"{site}/import", f"{api}/sources/lookup?url=example.com"],
        "Search box": [f"{site}/box", f"{api}/keys"],
        "Search settings": [f"{site}/search-settings", f"{site}/try"],
        "Analytics": [f"/api/analytics?site_id={tenant.site_id}", f"/api/analytics/inbox?site_id={tenant.site_id}"],
    }
    for tab, addresses in pages.items():
        for address in addresses:
            links = person.go(address).one("nav", aria_label="Site").all("a")
            assert [link.text for link in links] == list(pages)
            assert [link.text for link in links if "aria-current" in link.attributes] == [tab], address


def test_first_searches_from_a_page_are_celebrated(app: Flask, tenant: Tenant) -> None:
    person = person_of(tenant)
    tenant.index(page(1))
    tenant.find("page")
    app.extensions["runtime"].events.flush()
    assert not person.go(f"/sites/{tenant.site_id}").all("section", id="first-searches")

    seen = tenant.public.get("/v1/client-info", headers={"Origin": "https://www.example.com"})
    assert seen.status_code == 200
    app.extensions["runtime"].keys_last_used.flush()

    moment = person.go(f"/sites/{tenant.site_id}").one("section", id="first-searches")
    assert "The search box on www.example.com works" in moment.text
    for number in range(FIRST_SEARCHES):
        tenant.find(f"page {number}")
    app.extensions["runtime"].events.flush()
    assert not person.go(f"/sites/{tenant.site_id}").all("section", id="first-searches")
