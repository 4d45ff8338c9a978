"""The forms and pages of sources: adding, previewing, watching, reporting, and editing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import update

from app.clock import now
from app.crawl.sources import runs
from app.models import RunPage, SourceRun
from app.plans import PlanLimits
from schemas.validation.documents import read_document
from tests.callers import Tenant, page
from tests.crawl.run.websites import Website, crawling_tenant, html, serving
from tests.pages.people import Person, person_of, register_person

URL = "https://www.example.com/"


def make_source(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    response = tenant.private.post(
        f"/api/sites/{tenant.site_id}/sources", json={"kind": "website", "url": URL, **fields}
    )
    assert response.status_code == 201, response.get_json()
    source: dict[str, Any] = response.get_json()["source"]
    return source


def path_of(source: dict[str, Any], action: str = "") -> str:
    return f"/api/sites/{source['site_id']}/sources/{source['id']}{action}"


def change_run(tenant: Tenant, source: dict[str, Any], **values: Any) -> None:
    """Update the open run of a source."""
    with tenant.app.extensions["runtime"].database.write() as session:
        session.execute(
            update(SourceRun)
            .where(SourceRun.source_id == source["id"], SourceRun.status.in_(("queued", "running")))
            .values(**values)
        )


def leave_out(tenant: Tenant, source: dict[str, Any], *, status: str = "skipped", **reasons: int) -> None:
    """Add this number of skipped pages per reason to the newest run."""
    with tenant.app.extensions["runtime"].database.write() as session:
        for reason, count in reasons.items():
            for number in range(count):
                session.add(
                    RunPage(
                        run_id=source["last_run"]["id"],
                        url=f"{URL}{reason}/{number}",
                        position=number,
                        depth=1,
                        status=status,
                        reason=reason,
                    )
                )


def test_new_site_leads_to_the_form_to_add_content(app: Flask) -> None:
    ann = register_person(app, "ann@example.com")
    ann.follow("Add a site")
    ann.press("Add site", name="Museum", url="https://museum.example.com")

    assert ann.notice == "Site added. Next: add its content."
    assert ann.page.one("h1").text == "Add your content"
    choices = [found.text.split(" ")[0:2] for found in ann.page.one("nav", class_="choices").all("strong")]
    assert choices == [["A", "website"], ["A", "sitemap"], ["A", "feed"], ["WordPress"], ["A", "file"], ["The", "API"]]
    assert ann.page.one("input", name="url").attributes["value"] == "https://museum.example.com"
    assert "The crawler doesn’t run JavaScript" in ann.page.text
    ann.press("Start")
    assert ann.notice == "Source added. The crawler is reading its pages."
    assert ann.page.one("h1").text == "https://museum.example.com/ Waiting"
    assert "Every day" in ann.page.text


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The schemes over which all URLs seem to respond; no request is sent."""
    schemes: set[str] = set()
    monkeypatch.setattr(
        "app.crawl.run.visits.visitor.responds", lambda url, *args, **kwargs: url.partition(":")[0] in schemes
    )
    return schemes


@pytest.mark.parametrize(("scheme", "notice"), [("https", None), ("http", None), ("", "doesn’t respond over https")])
def test_site_url_without_a_scheme_gets_the_scheme_that_responds(
    app: Flask, answering: set[str], scheme: str, notice: str | None
) -> None:
    answering.add(scheme)
    ann = register_person(app, "ann@example.com")
    ann.follow("Add a site")
    ann.press("Add site", name="Museum", url="museum.example.com")

    assert ann.page.one("input", name="url").attributes["value"] == f"{scheme or 'https'}://museum.example.com"
    assert ("doesn’t respond over https or http" in ann.notice) == (notice is not None)
    ann.go("/sites/1/edit")
    ann.press("Save", url="www.museum.example.com")
    assert ann.notice.startswith("Site saved")
    assert ("doesn’t respond over https or http" in ann.notice) == (notice is not None)
    assert f"{scheme or 'https'}://www.museum.example.com" in ann.page.text


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_source_url_without_a_scheme_gets_the_scheme_that_responds(
    person: Person, tenant: Tenant, answering: set[str], scheme: str
) -> None:
    answering.add(scheme)
    person.go(f"/sites/{tenant.site_id}/sources/create")
    person.press("Start", url="docs.example.com/a")

    path = person.path.partition("?")[0]
    assert tenant.private.get(path).get_json()["source"]["url"] == f"{scheme}://docs.example.com/a"


@pytest.mark.parametrize(
    ("site", "source", "proposed"),
    [
        ("https://example.com/blog", "http://www.example.com/start", "http://www.example.com/blog"),
        ("https://www.example.com", "http://www.example.com/", "http://www.example.com/"),
        ("https://www.example.com", "https://www.example.com/docs", None),
        ("https://www.example.com", "https://docs.example.com/", None),
    ],
)
def test_site_can_adopt_the_url_of_its_crawled_pages_with_one_click(
    person: Person, tenant: Tenant, site: str, source: str, proposed: str | None
) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}", json={"url": site})
    added = make_source(tenant, url=source)
    person.go(path_of(added))
    assert "Change the site’s URL" not in person.page.text
    change_run(tenant, added, status="finished", started_at=now(), finished_at=now(), indexed=3)

    person.go(path_of(added))
    if proposed is None:
        assert "Change the site’s URL" not in person.page.text
        return
    assert f"Is {proposed} the site’s URL?" in person.page.text
    person.press("Change the site’s URL")

    assert tenant.private.get(f"/sites/{tenant.site_id}").get_json()["site"]["url"] == proposed
    person.go(path_of(added))
    assert "Change the site’s URL" not in person.page.text


@pytest.mark.parametrize("site", ["http://www.example.com", "https://www.example.com"])
def test_unresponsive_url_without_a_scheme_gets_the_sites_scheme(person: Person, tenant: Tenant, site: str) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}", json={"url": site})
    for typed, url in (("docs.example.com:8080/a", None), ("https://example.com/b", "https://example.com/b")):
        person.go(f"/sites/{tenant.site_id}/sources/create")
        person.press("Start", url=typed)
        expected = url or f"{site.partition(':')[0]}://{typed}"
        assert tenant.private.get(person.path.partition("?")[0]).get_json()["source"]["url"] == expected


@pytest.mark.parametrize(
    ("kind", "address"),
    [("sitemap", "https://www.example.com/sitemap.xml"), ("feed", ""), ("wordpress", "https://www.example.com/")],
)
def test_each_source_kind_has_its_form(person: Person, tenant: Tenant, kind: str, address: str) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create?kind={kind}")
    assert person.page.one("input", name="url").attributes["value"] == address
    person.press("Start", url=address or "www.example.com/feed.xml", schedule="hourly")
    (source,) = tenant.private.get(f"/api/sites/{tenant.site_id}/sources").get_json()["sources"]
    assert (source["kind"], source["schedule"]) == (kind, "hourly")


def test_source_form_offers_rendering_only_if_a_browser_is_available(
    app: Flask, person: Person, tenant: Tenant
) -> None:
    path = f"/sites/{tenant.site_id}/sources/create"
    person.go(path)
    assert person.page.all("select", name="render") == []
    part = app.extensions["runtime"]
    part.settings = replace(part.settings, crawl_browser="/usr/bin/chromium")

    person.go(path)
    person.press("Start", url="www.example.com", render="always")

    (source,) = tenant.private.get(f"/api/sites/{tenant.site_id}/sources").get_json()["sources"]
    assert source["render"] == "always"
    person.follow("Edit")
    assert [each.text for each in person.page.one("select", name="render").all("option", selected="")] == [
        "On all pages"
    ]


def test_api_option_shows_a_sample_command(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create?kind=api")
    assert f"/api/v1/index/bulk?site_id={tenant.site_id}" in person.page.one("pre").text


def test_all_source_options_are_saved_and_shown_again_in_the_form(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create")
    person.press(
        "Start",
        url="docs.example.com/start",
        schedule="weekly",
        include="/docs/*\r\n\r\n*.html",
        exclude=" *?print=* ",
        selector_content="main",
        selector_title="",
        selector_remove=".advert, nav",
        max_pages="500",
        max_depth="3",
        headers="Cookie: key=c3RhZ2luZw\r\nX-Token:  a:b ",
    )
    path = person.path.partition("?")[0]
    source = tenant.private.get(path).get_json()["source"]
    expected = {
        "url": "https://docs.example.com/start",
        "schedule": "weekly",
        "include": ["/docs/*", "*.html"],
        "exclude": ["*?print=*"],
        "selectors": {"content": "main", "remove": ".advert, nav"},
        "max_pages": 500,
        "max_depth": 3,
    }
    assert {name: source[name] for name in expected} == expected

    person.follow("Edit")
    assert "c3RhZ2luZw" not in person.response.get_data(as_text=True)
    person.press("Save")

    assert person.notice.startswith("Source saved.")
    again = tenant.private.get(path).get_json()["source"]
    assert again == {**source, "updated_at": again["updated_at"]}


MISTAKES = {
    "url": ("https://example.org/", "The URL must be on example.com or one of its subdomains."),
    "include": ("/docs/*\n\ndocs", "Line 3 must begin with / or *, such as /blog/*."),
    "exclude": ("/*\n" * 51, "There are 51 lines; at most 50 are allowed."),
    "max_pages": ("many", "This must be a whole number, or empty for no limit."),
    "max_depth": ("-1", "This must be a whole number, or empty for no limit."),
    "headers": ("X-A: 1\nCookie", "Line 2 has no colon between name and value, as in “Cookie: staging=yes”."),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_invalid_source_form_shows_problems_next_to_fields_and_preserves_input(
    person: Person, tenant: Tenant, line_end: str
) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create")
    typed = {name: text.replace("\n", line_end) for name, (text, _) in MISTAKES.items()}
    for name in ("url", "rest"):
        sent = {n: t for n, t in typed.items() if (n == "url") == (name == "url")}
        person.go(f"/sites/{tenant.site_id}/sources/create")
        assert person.send("Start", selector_title="h1", **sent).status_code == 400
        for field in sent:
            assert person.problem_of(field) == MISTAKES[field][1], field
        assert person.page.one("input", name="selector_title").attributes["value"] == "h1"
        if name == "rest":
            assert person.page.one("textarea", name="include").raw_text.removeprefix("\n") == MISTAKES["include"][0]
            assert "open" in person.page.one("form", class_="card form").all("details")[0].attributes
    assert tenant.private.get(f"/api/sites/{tenant.site_id}/sources").get_json()["total"] == 0


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ("Host: x", "Line 1: the header Host is set by the crawler and cannot be changed."),
        ("X-A: 1\n\nBad name: x", "Line 3: the header Bad name is not a valid header name."),
        ("X-A:", "Line 1 has no value after the colon."),
        ("X-A: 1\nx-a: 2", "The headers must not contain x-a twice."),
        ("\n".join(f"X-{n}: 1" for n in range(6)), "There are 6 headers; at most 5 are allowed."),
    ],
)
def test_invalid_source_headers_show_the_problem(person: Person, tenant: Tenant, headers: str, problem: str) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create")
    assert person.send("Start", headers=headers).status_code == 400
    assert person.problem_of("headers") == problem


def test_stored_headers_stay_until_replaced_or_deleted(person: Person, tenant: Tenant) -> None:
    from app.models import Source

    def stored() -> dict[str, str]:
        with tenant.app.extensions["runtime"].database.read() as session:
            return session.get_one(Source, source["id"]).headers

    source = make_source(tenant, headers={"Cookie": "a=b"})
    edit = f"/sites/{tenant.site_id}/sources/{source['id']}/edit"
    person.go(edit)
    person.press("Save", schedule="daily")
    assert stored() == {"Cookie": "a=b"}
    person.go(edit)
    person.press("Save", headers="X-A: 1")
    assert stored() == {"X-A": "1"}
    person.go(edit)
    person.press("Save", forget_headers="true")
    assert stored() == {}


def test_field_rules_are_shown_and_unchanged_by_the_form(person: Person, tenant: Tenant) -> None:
    rules: list[dict[str, Any]] = [
        {"path": "/docs/{version}/*", "set": {"version": "{version}", "product": "<cli>"}},
        {"name": "tags", "selector": ".tag", "attribute": "title", "all": True},
        {"name": "price", "json_ld": "offers.price"},
        {"name": "line", "meta": "product-line"},
    ]
    source = make_source(tenant, fields=rules)

    person.go(path_of(source))
    text = " ".join(person.page.text.split())
    assert "version: {version}, product: <cli>, where the URL matches /docs/{version}/*" in text
    assert "tags: all values of the attribute title of .tag" in text
    assert "price: the value of offers.price in the JSON-LD" in text
    assert "line: the value of the meta element product-line" in text

    person.follow("Edit")
    person.press("Save")
    assert tenant.private.get(path_of(source)).get_json()["source"]["fields"] == rules


def test_field_rules_are_edited_in_rows_and_problems_are_shown_next_to_the_row(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    person.go(f"/sites/{tenant.site_id}/sources/{source['id']}/edit")
    row = {"fields.0.name": "no name", "fields.0.kind": "meta", "fields.0.place": "product-line"}

    assert person.send("Save", **row).status_code == 400
    (problem,) = person.page.all("div", class_="problem")
    assert problem.text.startswith("Name must")
    assert person.page.one("input", name="fields.0.place").attributes["value"] == "product-line"
    row = {"fields.1.kind": "path", "fields.1.name": "lang", "fields.1.place": "/{lang}/*", "fields.1.value": "{lang}"}
    person.press("Save", **row, **{"fields.0.name": "line"})

    rules = [{"name": "line", "meta": "product-line"}, {"path": "/{lang}/*", "set": {"lang": "{lang}"}}]
    assert tenant.private.get(path_of(source)).get_json()["source"]["fields"] == rules


def test_running_crawl_shows_progress_and_refreshes_without_javascript(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(tenant, source, status="running", started_at=now(), found=120, indexed=30, skipped=4)

    person.go(path_of(source))

    assert "34 of 120 pages crawled so far" in person.page.text
    assert person.page.one("progress").attributes["value"] == "34"
    refresh = person.page.one("noscript").one("meta").attributes
    assert refresh == {"http-equiv": "refresh", "content": "2"}
    assert person.page.one("div", id="source").attributes["data-live"] == "2"
    person.press("Cancel the run")
    assert person.path == path_of(source)
    change_run(tenant, source, status="cancelled", finished_at=now())
    person.go(path_of(source))
    assert person.page.one("h1").text == f"{URL} Canceled"


def test_page_of_an_ended_run_does_not_refresh(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now())
    person.go(path_of(source))
    assert person.page.all("noscript") == []
    assert "data-live" not in person.page.one("div", id="source").attributes
    person.press("Run now")
    assert person.page.one("h1").text == f"{URL} Waiting"


def test_run_report_shows_skipped_pages_with_reasons_and_remedies(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(
        tenant, source, status="finished", started_at=now(), finished_at=now(), found=226, indexed=12, unchanged=200,
        skipped=14, removed=3,
    )  # fmt: skip
    leave_out(tenant, source, robots=9, http_404=5)

    person.go(path_of(source))

    sentence = (
        "212 pages indexed (12 new or changed), 3 removed, 9 skipped: 9 blocked by robots.txt. 5 dead links found."
    )
    assert sentence in person.page.text
    legend = [part.text for part in person.page.one("figure", class_="report").all("li")]
    assert legend == ["212 indexed", "9 skipped by choice", "5 dead links"]
    assert "Allow SiteSearchBot in robots.txt if visitors should find these pages." in person.page.text
    person.follow("View skipped pages")
    rows = [row.text for row in person.page.one("tbody").all("tr")]
    assert len(rows) == 14
    assert f"{URL}http_404/0not found" in rows


def test_first_finished_crawl_is_celebrated_once(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now(), found=12, indexed=12)

    moment = person.go(path_of(source)).one("section", id="first-pages")

    assert moment.text.startswith("Your first 12 pages can be searched")
    assert len(moment.all("svg", class_="drawing")) == 1
    person.press("Run now")
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now(), found=12, unchanged=12)
    assert not person.go(path_of(source)).all("section", id="first-pages")


def test_run_report_shows_remarks_on_indexed_pages(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now(), found=12, indexed=12)
    leave_out(tenant, source, status="indexed", wrong_canonical=2)

    person.go(path_of(source))

    assert "12 pages indexed." in person.page.text
    assert "2 indexed despite a canonical link. The page declares another URL as canonical, but" in person.page.text
    person.follow("View remarks")
    assert "Why pages were skipped" not in person.page.text
    assert person.page.one("h2", id="left-out-title").text == "URLs that were not indexed, and remarks"
    assert len(person.page.one("tbody").all("tr")) == 2


def test_failed_run_is_shown_on_the_dashboard_until_one_succeeds(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    error = {"code": "bad_source", "message": "The sitemap could not be read."}
    change_run(tenant, source, status="failed", started_at=now(), finished_at=now(), error=error)

    person.go("/dashboard")
    assert "The sitemap could not be read." in person.page.text
    person.follow(URL)
    assert "The run failed. The sitemap could not be read. Check that the URL is correct" in person.page.text
    person.press("Run now")
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now())
    person.go("/dashboard")
    assert "could not be read" not in person.page.text


def test_source_with_an_incomplete_run_is_not_shown_as_up_to_date(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    message = "37 of 41 pages could not be read."
    leave_out(tenant, source, http_429=37)
    change_run(
        tenant, source, status="failed", started_at=now(), finished_at=now(), indexed=4, failed=37, found=41,
        error={"code": "incomplete", "message": message},
    )  # fmt: skip

    for path in ("/dashboard", path_of(source), f"/api/sites/{tenant.site_id}/sources"):
        person.go(path)
        assert message in person.page.text
        assert "Up to date" not in person.page.text
    person.go(path_of(source))
    assert "Incomplete" in person.page.one("h1").text
    assert "The run is incomplete. 37 of 41 pages could not be read. The next run tries again" in person.page.text
    assert "4 pages indexed, 37 skipped: 37 rejected for now." in person.page.text


def test_run_stopped_by_the_removal_limit_lists_pages_and_can_be_rerun(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    part = tenant.app.extensions["runtime"]
    sync = part.syncs.begin(tenant.account_id, tenant.site_id, source["id"])
    limits = PlanLimits(None, None, None, None, None, None)
    documents = [read_document(page(number)) for number in range(12)]
    part.writer.put(tenant.account_id, limits, tenant.site_id, documents, source=source["id"])
    part.writer.put(tenant.account_id, limits, tenant.site_id, documents[:1], sync_id=sync.id)
    error = {"code": "sync_removes_too_much", "message": "This would remove 11 of the source's 12 documents."}
    change_run(
        tenant, source, status="failed", started_at=now(), finished_at=now(), indexed=1, sync_id=sync.id, error=error
    )

    person.go(path_of(source))

    assert "11 pages would be removed" in person.page.text
    listed = [found.text for found in person.page.one("ul", class_="addresses").all("li")]
    assert sorted(listed) == sorted(f"/pages/{number}" for number in range(1, 12))
    person.press("Run again and remove them")
    with part.database.read() as session:
        newest = runs.newest_runs(session, [source["id"]])[source["id"]]
    assert (newest.status, newest.options) == ("queued", {"max_removed_percent": 100})
    assert "would be removed" not in person.page.text


def test_one_page_can_be_crawled_again(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    change_run(tenant, source, status="finished", started_at=now(), finished_at=now())
    part = tenant.app.extensions["runtime"]
    document = read_document(page(1, id=URL + "hours", url=URL + "hours"))
    limits = PlanLimits(None, None, None, None, None, None)
    part.writer.put(tenant.account_id, limits, tenant.site_id, [document], source=source["id"])

    person.go(f"/sites/{tenant.site_id}/documents")
    person.follow("Page 1")
    person.press("Fetch this page again now")

    assert person.path == path_of(source)
    with part.database.read() as session:
        assert runs.newest_runs(session, [source["id"]])[source["id"]].options == {"urls": [URL + "hours"]}


def test_deleting_a_source_removes_its_pages_or_keeps_them_on_request(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    person.go(path_of(source))
    person.press("Delete source")
    assert person.notice == "Source deleted. Its pages are being removed from the search."
    assert person.page.one("h2").text == "Add your content"
    other = make_source(tenant)
    person.go(path_of(other))
    person.press("Delete source", keep_documents="true")
    assert person.notice == "Source deleted. Its pages stay in the search."


def test_source_form_is_hidden_at_the_source_limit(person: Person, tenant: Tenant) -> None:
    for number in range(20):
        make_source(tenant, url=f"{URL}{number}")
    person.go(f"/sites/{tenant.site_id}/sources/create")
    assert "A site can have 20 sources. To add another, delete one." in person.page.text
    assert person.page.one("main").all("form") == []


def test_source_of_another_account_returns_404(tenant: Tenant, stranger: Tenant) -> None:
    source = make_source(tenant)
    eve = person_of(stranger)
    own_pages = f"/sites/{tenant.site_id}/sources"
    for path in (
        path_of(source),
        path_of(source, "/runs"),
        path_of({**source, "site_id": stranger.site_id}),
        f"{own_pages}/create",
        f"{own_pages}/{source['id']}/edit",
    ):
        assert eve.call("GET", path).status_code == 404, path


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        site.pages["/"] = html("Museum", "Ships and lighthouses of the harbour, shown in eleven rooms.")
        site.pages["/secret"] = html("Secret", head="<meta name=robots content=noindex>")
        yield site


@pytest.fixture
def intranet(tmp_path: Path, website: Website) -> Iterator[Tenant]:
    """A customer of an installation that may crawl private IP addresses; the website is their site."""
    with crawling_tenant(tmp_path, website) as made:
        yield made


def test_preview_shows_the_indexed_page_and_preserves_the_form_input(intranet: Tenant, website: Website) -> None:
    person = person_of(intranet)
    person.go(f"/sites/{intranet.site_id}/sources/create")

    person.press("Preview the page", schedule="weekly", exclude="/secret", headers="X-Staging: yes")

    preview = person.page.one("section", id="preview").text
    assert "Museum" in preview
    assert "Ships and lighthouses" in preview
    assert website.sent[-1]["x-staging"] == "yes"
    assert intranet.private.get(f"/api/sites/{intranet.site_id}/sources").get_json()["total"] == 0
    person.press("Start")
    (source,) = intranet.private.get(f"/api/sites/{intranet.site_id}/sources").get_json()["sources"]
    assert (source["schedule"], source["exclude"]) == ("weekly", ["/secret"])


def test_preview_shows_the_page_as_readers_see_it_and_explains_the_rank(intranet: Tenant, website: Website) -> None:
    body = "<main><h2 id=ships>Ships & boats</h2><p>Old ones.</p><h2 id=rooms>Rooms</h2><p>Eleven.</p></main>"
    website.pages["/"] = html("Museum", body, head='<meta name="site-search:rank" content="2">')
    person = person_of(intranet)
    person.go(f"/sites/{intranet.site_id}/sources/create")
    person.press("Preview the page")
    preview = person.page.one("section", id="preview")
    text = preview.one("div", class_="page-text")
    assert [each.text for each in text.all("h4")] == ["Ships & boats", "Rooms"]
    assert [each.text for each in text.all("p")] == ["Old ones.", "Eleven."]
    assert "before pages that match equally well: its rank is 2, from −5 to 5." in preview.text
    assert "{" not in preview.text


def test_first_crawl_is_announced_on_every_page_of_its_site(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    pages = (f"/sites/{tenant.site_id}", f"/sites/{tenant.site_id}/search-settings", f"/sites/{tenant.site_id}/try")
    for address in pages:
        assert "The first crawl starts within seconds." in person.go(address).one("div", id="first-crawl").text
    change_run(tenant, source, status="running", indexed=3, found=9)
    for address in pages:
        announced = person.go(address).one("div", id="first-crawl")
        assert "The first crawl is running: 3 of 9 pages so far." in announced.text
        assert announced.one("progress").attributes["value"] == "3"
    assert person.go(path_of(source)).one("div", id="first-crawl").text == "", "each page must have separate progress"

    change_run(tenant, source, status="finished")
    tenant.private.post(path_of(source, "/run"), json={})

    assert person.go(pages[0]).one("div", id="first-crawl").text == "", "the second crawl is not the first"


def test_preview_explains_why_a_page_would_not_be_indexed(intranet: Tenant, website: Website) -> None:
    person = person_of(intranet)
    for path, reason in (("/secret", "marked noindex"), ("/gone", "not found")):
        person.go(f"/sites/{intranet.site_id}/sources/create")
        person.press("Preview the page", url=website.url + path)
        assert f"This page would not be indexed ({reason})." in person.page.text


def test_preview_while_editing_sends_the_stored_headers(intranet: Tenant, website: Website) -> None:
    source = make_source(intranet, url=website.url, headers={"X-Staging": "yes"})
    person = person_of(intranet)
    person.go(f"/sites/{intranet.site_id}/sources/{source['id']}/edit")
    person.press("Preview the page", selector_content="main")
    assert "Ships and lighthouses" in person.page.one("section", id="preview").text
    assert website.sent[-1]["x-staging"] == "yes"
    assert person.page.one("input", name="selector_content").attributes["value"] == "main"
    person.press("Save")
    assert intranet.private.get(path_of(source)).get_json()["source"]["selectors"] == {"content": "main"}


def test_preview_sends_stored_headers_only_to_the_sources_host(intranet: Tenant, website: Website) -> None:
    """A member who may change a site's URLs but never saw the headers must not be able to send them elsewhere."""
    source = make_source(intranet, url=website.url, headers={"Authorization": "Basic c3RhZ2luZw=="})
    person = person_of(intranet)
    with serving() as elsewhere:
        elsewhere.pages["/"] = html("Elsewhere", "A page of whoever wants to read the headers.")
        person.go(f"/sites/{intranet.site_id}/sources/{source['id']}/edit")

        person.press("Preview the page", url=elsewhere.url)

        assert "A page of whoever" in person.page.one("section", id="preview").text
        assert "authorization" not in elsewhere.sent[-1]


def test_preview_with_an_invalid_url_shows_the_form_again(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/sources/create")
    assert person.send("Preview the page", url="https://example.org").status_code == 400
    assert person.problem_of("url") == "The URL must be on example.com or one of its subdomains."


def test_invalid_form_for_a_deleted_source_returns_400_without_an_error_log(
    person: Person, tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    person.go(f"/sites/{tenant.site_id}")
    token = person.page.all("input", name="csrf_token")[0].attributes["value"]

    response = person.call(
        "POST",
        f"/api/sites/{tenant.site_id}/sources/src_0000000000000000",
        data={"_method": "PUT", "csrf_token": token, "max_pages": "many"},
    )

    assert response.status_code == 400
    assert response.mimetype == "text/html"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_source_page_shows_the_deploy_hook_url_and_can_replace_it(person: Person, tenant: Tenant) -> None:
    source = make_source(tenant)
    person.go(path_of(source))
    assert source["hook_url"] in person.page.text

    person.press("Replace the URL")

    renewed = tenant.private.get(path_of(source)).get_json()["source"]["hook_url"]
    assert person.notice == "Deploy hook URL replaced. The old URL no longer works."
    assert renewed in person.page.text
    assert source["hook_url"] not in person.page.text
