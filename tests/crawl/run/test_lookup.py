"""URL lookup reports why a URL is not in the index, and which pages link to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import page
from tests.crawl.run.conftest import Runner
from tests.crawl.run.websites import Answer, Website, html
from tests.responses import assert_error, assert_ok


def look_up(runner: Runner, path: str, **expected: Any) -> dict[str, Any]:
    """Look up a URL through the API; the result omits the website's origin."""
    tenant, base = runner.tenant, runner.website.url
    url = path if "://" in path else runner.website.address(path)
    found = assert_ok(tenant.private.get(f"/api/sites/{tenant.site_id}/sources/lookup", query_string={"url": url}))
    found["found_on"] = [address.removeprefix(base) for address in found["found_on"]]
    assert found.pop("url") == url
    if found["document"]:
        found["document"] = found["document"].removeprefix(base)
    found["seen"] = found.pop("last_seen") is not None
    return {name: found[name] for name in expected} if expected else found


def report(runner: Runner, run: Any) -> dict[str, dict[str, Any]]:
    tenant, base = runner.tenant, runner.website.url
    path = f"/api/sites/{tenant.site_id}/sources/{run.source_id}/runs/{run.id}"
    return {each.pop("url").removeprefix(base): each for each in assert_ok(tenant.private.get(path))["pages"]}


@pytest.fixture
def pages(runner: Runner, website: Website) -> dict[str, Answer]:
    runner.tenant.browser.put(f"/sites/{runner.tenant.site_id}", json={"url": website.url})
    website.pages = {
        "/": html("Home", links=["/a", "/missing"]),
        "/a": html("A", text="The same text on two pages.", links=["/missing", "/hidden", "/", "/copy"]),
        "/copy": html("A", text="The same text on two pages."),
        "/hidden": html("Hidden", head='<meta name="robots" content="noindex">'),
    }
    return website.pages


def test_lookup_reports_indexed_skipped_and_unknown_urls(
    runner: Runner, website: Website, pages: dict[str, Answer]
) -> None:
    run = runner.run(runner.add(exclude=["/private/*"]))

    assert look_up(runner, "/a#part") == {
        "status": "indexed", "reason": None, "found_on": ["/"], "document": "/a", "seen": True,
    }  # fmt: skip
    assert look_up(runner, "/missing") == {
        "status": "left_out", "reason": "http_404", "found_on": ["/", "/a"], "document": None, "seen": True,
    }  # fmt: skip
    assert look_up(runner, "/hidden", status=0, reason=0, found_on=0) == {
        "status": "left_out", "reason": "noindex", "found_on": ["/a"],
    }  # fmt: skip
    assert look_up(runner, "/copy", reason=0, document=0) == {"reason": "duplicate", "document": "/a"}
    assert look_up(runner, "/nowhere") == {
        "status": "not_seen", "reason": None, "found_on": [], "document": None, "seen": False,
    }  # fmt: skip
    assert look_up(runner, "/private/x", status=0, reason=0) == {"status": "not_seen", "reason": "excluded"}
    assert look_up(runner, "https://elsewhere.example.net/", reason=0) == {"reason": "other_host"}
    told = report(runner, run)
    assert told["/missing"] == {"reason": "http_404", "found_on": [website.address("/")]}
    twin = {"found_on": [website.address("/a")], "document": website.address("/a")}
    assert told["/copy"] == {"reason": "duplicate", **twin}


@pytest.mark.parametrize("change", ["gone", "unlinked"])
def test_removed_page_is_reported_as_removed_after_later_runs(
    runner: Runner, pages: dict[str, Answer], change: str
) -> None:
    pages["/"] = html("Home", links=["/a", "/b"])
    pages["/b"] = html("B")
    source = runner.add()
    runner.run(source)
    del pages["/b"]
    if change == "unlinked":
        pages["/"] = html("Home", links=["/a"])

    for _ in range(2):
        runner.run(source, max_removed_percent=100)
        expected = {"status": "removed", "reason": "http_404" if change == "gone" else None, "document": None}
        assert look_up(runner, "/b", **expected) == expected
    pages["/"], pages["/b"] = html("Home", links=["/a", "/b"]), html("B")
    runner.run(source)
    assert look_up(runner, "/b", status=0) == {"status": "indexed"}


def test_page_listed_only_in_a_sitemap_reports_the_sitemap(runner: Runner, pages: dict[str, Answer]) -> None:
    website = runner.website
    body = f"<urlset><url><loc>{website.address('/listed')}</loc></url></urlset>".encode()
    pages["/sitemap.xml"] = Answer(body, headers={"Content-Type": "application/xml"})
    runner.run(runner.add())
    assert look_up(runner, "/listed", reason=0, found_on=0) == {"reason": "http_404", "found_on": ["/sitemap.xml"]}


def test_documents_from_the_api_are_looked_up_by_absolute_or_relative_url(runner: Runner, pages: Any) -> None:
    runner.tenant.index(page(1, id="whole", url=runner.website.address("/whole?a=b")), page(2, id="path", url="/path"))
    for path, identifier in (("/whole?a=b", "whole"), ("/path", "path")):
        assert look_up(runner, path, status=0, document=0) == {"status": "indexed", "document": identifier}
    assert look_up(runner, "/whole", status=0) == {"status": "not_seen"}


@pytest.mark.parametrize("url", ["/path", "ftp://example.com/", "", "http://"])
def test_lookup_of_an_invalid_url_returns_400(runner: Runner, url: str) -> None:
    path = f"/api/sites/{runner.tenant.site_id}/sources/lookup"
    answer = runner.tenant.private.get(path, query_string={"url": url})
    assert_error(answer, 400, "validation_failed", field="url")


def dead_links(runner: Runner, source: Any, **parameters: Any) -> dict[str, Any]:
    """Return a source's dead links, without the website's origin."""
    path = f"/api/sites/{runner.tenant.site_id}/sources/{source.id}/dead-links"
    told = assert_ok(runner.tenant.private.get(path, query_string=parameters))
    shorten = len(runner.website.url)
    for link in told["dead_links"]:
        link |= {"url": link["url"][shorten:], "found_on": [page[shorten:] for page in link["found_on"]]}
    return told


def test_dead_links_come_from_the_last_full_run(runner: Runner, pages: dict[str, Answer]) -> None:
    pages["/a"] = html("A", links=["/missing", "/gone", "/hidden", "https://elsewhere.example.net/"])
    pages["/gone"] = Answer(b"", status=410)
    for number in range(12):
        pages[f"/{number}"] = html(f"Page {number}", links=["/gone", f"/{number + 1}" if number < 11 else "/"])
    pages["/"] = html("Home", links=["/a", "/missing", "/0"])
    source = runner.add()
    assert dead_links(runner, source)["run_id"] is None

    run = runner.run(source)

    told = dead_links(runner, source)
    found = {link["url"]: (link["status"], link["found_on"]) for link in told["dead_links"]}
    assert (found.keys(), told["total"], told["run_id"]) == ({"/missing", "/gone"}, 2, run.id)
    assert found["/missing"] == (404, ["/", "/a"])
    assert (found["/gone"][0], len(found["/gone"][1])) == (410, 10)
    assert dead_links(runner, source, limit=1, offset=1)["dead_links"] == told["dead_links"][1:]
    runner.run(source, urls=[runner.website.address("/elsewhere")])
    assert dead_links(runner, source) == told
    pages["/gone"] = html("Gone, and back")
    runner.run(source)
    assert [link["url"] for link in dead_links(runner, source)["dead_links"]] == ["/missing"]


def test_dead_links_include_sitemap_entries_but_not_unlinked_urls(runner: Runner, pages: dict[str, Answer]) -> None:
    website = runner.website
    sitemap = f"<urlset><url><loc>{website.address('/listed')}</loc></url></urlset>".encode()
    pages["/other.xml"] = pages["/sitemap.xml"] = Answer(sitemap, headers={"Content-Type": "application/xml"})
    lines = "".join(f"Sitemap: {website.address(path)}\n" for path in ("/other.xml", "/lost.xml"))
    pages["/robots.txt"] = Answer(lines.encode(), headers={"Content-Type": "text/plain"})
    source = runner.add()
    run = runner.run(source)

    assert runner.left_out(run)["/lost.xml"] == "http_404"
    told = dead_links(runner, source)
    assert [(link["url"], link["found_on"]) for link in told["dead_links"]] == [
        ("/listed", []), ("/missing", ["/", "/a"]),
    ]  # fmt: skip


def test_dead_links_are_returned_as_csv_on_request(runner: Runner, website: Website, pages: dict[str, Answer]) -> None:
    source = runner.add()
    runner.run(source)
    path = f"/api/sites/{runner.tenant.site_id}/sources/{source.id}/dead-links"

    answer = runner.tenant.private.get(path, headers={"Accept": "text/csv"})

    assert answer.content_type == "text/csv; charset=utf-8"
    missing, referrers = website.address("/missing"), f"{website.address('/')} {website.address('/a')}"
    assert answer.get_data(as_text=True).splitlines() == ["url,status,found_on", f"{missing},404,{referrers}"]
