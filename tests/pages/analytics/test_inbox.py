"""The inbox page."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.callers import Tenant, page, register_browser
from tests.pages.people import Person, person_of
from tests.services.inbox.test_items import missed

INBOX = "/api/analytics/inbox"


def queries(person: Person) -> list[str]:
    found = person.page.all("ol", class_="rows inbox")
    return [link.text for link in found[0].all("a") if "/query?" in link.attributes["href"]] if found else []


def test_inbox_is_a_tab_of_analytics_and_defaults_to_the_first_site(person: Person, tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 3)

    person.go(f"/sites/{tenant.site_id}")
    person.go(person.page.one("nav", aria_label="Site").first("a", "Analytics").attributes["href"])
    person.follow("Inbox")
    assert queries(person) == ["zeppelin"]
    assert "3 visitors found nothing (3 searches)." in person.page.text

    person.go(INBOX)
    assert person.path.endswith(f"?site_id={tenant.site_id}")


def test_query_can_be_ignored_and_restored_with_one_button(person: Person, tenant: Tenant) -> None:
    missed(tenant, "zeppelin", 3)
    missed(tenant, "a <b> & “c”", 1)
    person.go(f"{INBOX}?site_id={tenant.site_id}")
    assert queries(person) == ["zeppelin", "a <b> & “c”"]

    person.press("Ignore")
    assert queries(person) == ["a <b> & “c”"]
    assert "“zeppelin” is ignored." in person.page.text

    person.press("Undo")
    assert queries(person) == ["zeppelin", "a <b> & “c”"]
    assert "“zeppelin” is no longer ignored." in person.page.text

    person.press("Ignore")
    person.go(f"{INBOX}?site_id={tenant.site_id}")
    person.follow("Ignored queries")
    assert queries(person) == ["zeppelin"]
    person.press("Show again")
    assert queries(person) == ["zeppelin", "a <b> & “c”"]


def test_long_inbox_is_paginated_for_the_same_site(person: Person, tenant: Tenant) -> None:
    for number in range(25):
        missed(tenant, f"query {number:02}", 1)
    person.go(f"{INBOX}?site_id={tenant.site_id}")

    person.go(INBOX + person.page.first("a", "Next").attributes["href"])
    assert queries(person) == [f"query {number:02}" for number in range(20, 25)]
    person.go(INBOX + person.page.first("a", "Previous").attributes["href"])
    assert len(queries(person)) == 20


def test_notice_appears_only_for_real_queries(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    missed(tenant, "zeppelin", 3)

    for done, query in [("pin", "call 555 0100"), ("ignored", "zeppelin"), ("else", "zeppelin"), ("pin", "\x00")]:
        person.call("GET", INBOX, query_string={"site_id": tenant.site_id, "done": done, "q": query})
        assert person.response.status_code == 200
        assert not person.page.has(lambda found: "notice" in found.attributes.get("class", "")), (done, query)


class TestEmpty:
    """An empty inbox suggests the next step."""

    def test_inbox_without_a_site_offers_to_add_one(self, app: Flask) -> None:
        browser, _ = register_browser(app, "new@example.com")
        person = person_of(browser)
        person.go(INBOX)
        assert person.page.first("a", "Add a site").attributes["href"] == "/sites/create"

    def test_inbox_reports_that_there_are_no_searches(self, person: Person, tenant: Tenant) -> None:
        person.go(f"{INBOX}?site_id={tenant.site_id}")
        assert "No searches yet" in person.page.text

    def test_inbox_reports_that_all_queries_are_resolved(self, person: Person, tenant: Tenant) -> None:
        tenant.index(page(1))
        missed(tenant, "page", 3)
        person.go(f"{INBOX}?site_id={tenant.site_id}")
        assert "Nothing left to do" in person.page.text
        assert len(person.page.all("svg", class_="drawing")) == 1
        assert "If you report clicks" in person.page.text

    @pytest.mark.parametrize("query", ["ignored=true", "offset=5"])
    def test_empty_part_of_the_inbox_links_back_to_the_full_inbox(
        self, person: Person, tenant: Tenant, query: str
    ) -> None:
        missed(tenant, "zeppelin", 3)
        person.go(f"{INBOX}?site_id={tenant.site_id}&{query}")
        assert queries(person) == []
        back = [
            link
            for link in person.page.one("main").all("a")
            if link.text in ("Back to the inbox", "Back to the first page")
        ]
        person.go(back[0].attributes["href"])
        assert queries(person) == ["zeppelin"]


def test_inbox_of_another_account_returns_404(tenant: Tenant, stranger: Tenant) -> None:
    eve = person_of(stranger)
    eve.go(f"{INBOX}?site_id={tenant.site_id}")
    assert eve.response.status_code == 404
