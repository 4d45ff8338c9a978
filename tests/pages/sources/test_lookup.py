"""The page that explains why a URL is not in the index."""

from __future__ import annotations

import pytest
from flask import Flask

from app.clock import now
from app.models import SourcePage
from tests.callers import Tenant, page
from tests.pages.people import Person
from tests.pages.sources.test_views import URL, change_run, leave_out, make_source


def test_url_can_be_looked_up_on_the_sources_page(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    leave_out(tenant, source, http_404=1)
    person.go(f"/api/sites/{tenant.site_id}/sources")

    person.press("Look up", url=" www.example.com/http_404/0 ")

    assert "This page was skipped Not found" in person.page.text
    assert "Correct the links that lead there." in person.page.text
    assert person.page.one("input", name="url").attributes["value"] == " www.example.com/http_404/0 "


def test_lookup_of_an_indexed_url_links_to_the_stored_page(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, url=f"{URL}hours"))
    person.go(f"/api/sites/{tenant.site_id}/sources/lookup?url={URL}hours")
    person.follow("View the stored page")
    assert person.page.one("h1").text == "Page 1"


def test_lookup_and_report_link_a_duplicate_to_its_original(app: Flask, person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    leave_out(tenant, source, duplicate=1)
    with app.extensions["runtime"].database.write() as session:
        for path, document_id in (("duplicate/0", None), ("twin", f"{URL}twin")):
            reason = None if document_id else "duplicate"
            known = {"document_id": document_id, "reason": reason, "text_digest": b"1", "fetched_at": now()}
            session.add(SourcePage(source_id=source["id"], url=URL + path, **known))

    person.go(f"/api/sites/{tenant.site_id}/sources/lookup?url={URL}duplicate/0")
    assert f"The same text is indexed as {URL}twin" in person.page.text
    person.go(f"/api/sites/{tenant.site_id}/sources/{source['id']}/runs/{source['last_run']['id']}")
    assert f"with duplicate text: same text as {URL}twin" in person.page.text


@pytest.mark.parametrize("asked", ["http://", "ftp://example.com"])
def test_lookup_of_an_invalid_url_shows_the_error_and_preserves_the_input(
    person: Person, tenant: Tenant, asked: str
) -> None:
    person.go(f"/api/sites/{tenant.site_id}/sources/lookup?url={asked}")
    assert person.response.status_code == 400
    assert person.alerts == ["The URL must be a web address, such as https://www.example.com."]
    assert person.page.one("input", name="url").attributes["value"] == asked


def test_dead_links_are_listed_and_can_be_downloaded(app: Flask, person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    leave_out(tenant, source, http_404=1, http_410=1, robots=1)
    path = f"/api/sites/{tenant.site_id}/sources/{source['id']}"
    person.go(f"{path}/dead-links")
    assert "This source hasn’t been crawled yet." in person.page.text
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now(), indexed=1)
    person.go(path)

    person.follow("Dead links")

    links = [URL + "http_404/0", URL + "http_410/0"]
    assert [link.text for link in person.page.all("a") if link.text.startswith(URL + "http_")] == links
    assert [cell.text for cell in person.page.all("td")][::2] == ["404", "410"]
    person.follow("Download CSV")
    assert person.response.headers["Content-Disposition"] == f'attachment; filename="dead-links-{source["id"]}.csv"'
    assert person.response.get_data(as_text=True).splitlines()[1].startswith(f"{URL}http_404/0,404,")
