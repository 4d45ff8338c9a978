"""Previews one page before it is indexed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.crawl.run import preview
from app.crawl.run.visits import first_page, visitor
from tests.callers import Tenant
from tests.crawl.conftest import UnexpectedErrors
from tests.crawl.run.websites import Answer, Website, crawling_tenant, html, serving
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error, assert_ok
from tests.waiting import recorded_calls, recorded_pool

TEXT = "Ships and lighthouses of the harbour, shown in eleven rooms."


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        site.pages["/"] = html("Museum", TEXT)
        yield site


@pytest.fixture
def tenant(tmp_path: Path, website: Website) -> Iterator[Tenant]:
    """A customer of an installation that may crawl private IP addresses; the website is their site."""
    with crawling_tenant(tmp_path, website) as made:
        yield made


def look(tenant: Tenant, url: str, **fields: Any) -> dict[str, Any]:
    path = f"/api/sites/{tenant.site_id}/sources/preview"
    return assert_ok(tenant.private.post(path, json={"url": url, **fields}))


def test_preview_returns_the_document_as_it_would_be_indexed(tenant: Tenant, website: Website) -> None:
    answer = look(tenant, website.url)

    assert answer == {
        "document": {"id": website.url + "/", "title": "Museum", "content": TEXT, "url": website.url + "/"}
    }


def test_preview_stores_nothing_and_counts_no_usage(tenant: Tenant, website: Website) -> None:
    look(tenant, website.url)

    usage = assert_ok(tenant.private.get("/dashboard"))["usage"]
    assert set(usage.values()) == {0}


def test_preview_applies_selectors(tenant: Tenant, website: Website) -> None:
    website.pages["/"] = Answer(
        b"<title>Museum</title><h2>Ships</h2><div id=a>Not this.</div><div id=b>But this. <i>Not this.</i></div>",
        headers={"Content-Type": "text/html"},
    )
    selectors = {"content": "#b", "title": "h2", "remove": "i"}

    document = look(tenant, website.url, selectors=selectors)["document"]

    assert (document["title"], document["content"]) == ("Ships", "But this.")


def test_preview_returns_fields_from_rules_and_from_the_page(tenant: Tenant, website: Website) -> None:
    website.pages["/docs/2/a"] = Answer(
        b"<title>A</title><nav aria-label=breadcrumb><a href=/>Home</a><a href=/docs>Docs</a></nav><main>Boats</main>",
        headers={"Content-Type": "text/html"},
    )
    rules = [{"path": "/docs/{version}/*", "set": {"version": "{version}"}}, {"name": "text", "selector": "main"}]

    document = look(tenant, website.address("/docs/2/a"), fields=rules)["document"]

    own = {name: document[name] for name in ("version", "page", "text", "section", "breadcrumbs")}
    assert own == {
        "version": "2",
        "page": "/docs/a",
        "text": "Boats",
        "section": "Docs",
        "breadcrumbs": ["Home", "Docs"],
    }


def test_preview_shows_a_page_whose_canonical_url_cannot_be_indexed(tenant: Tenant, website: Website) -> None:
    website.pages["/page"] = html("Harbor", TEXT, head='<link rel=canonical href="/gone">')

    assert look(tenant, website.url + "/page")["document"]["url"] == website.url + "/page"


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Answer(b"", 404), "http_404"),
        (Answer(b"", 500), "http_500"),
        (html("Secret", TEXT, head="<meta name=robots content=noindex>"), "noindex"),
        (html("Copy", TEXT, head='<link rel=canonical href="/original">'), "canonical"),
        (Answer(b"\x89PNG\r\n\x1a\n" + bytes(100), headers={"Content-Type": "image/png"}), "not_text"),
        (Answer(b"<p>", headers={"Content-Type": "text/html"}), "empty"),
        (Answer(b"", 302, {"Location": "/page"}), "redirect_loop"),
        (Answer(b"", 302, {"Location": "https://example.org/"}), "other_host"),
        (Answer(b"", 503, {"Retry-After": "30"}), "timeout"),
    ],
)
def test_preview_returns_the_reason_why_a_page_would_not_be_indexed(
    tenant: Tenant, website: Website, page: Answer, reason: str
) -> None:
    website.pages |= {"/page": page, "/original": html("Original", TEXT)}
    assert look(tenant, website.url + "/page") == {"document": None, "reason": reason}


def test_preview_obeys_robots_txt(tenant: Tenant, website: Website) -> None:
    website.pages["/robots.txt"] = Answer(
        b"User-agent: SiteSearchBot\nDisallow: /", headers={"Content-Type": "text/plain"}
    )
    assert look(tenant, website.url) == {"document": None, "reason": "robots"}
    assert website.asked == []


def test_preview_of_an_unreachable_server_returns_unreachable(tenant: Tenant) -> None:
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"url": "http://127.0.0.1:9/"}))
    assert look(tenant, "http://127.0.0.1:9/") == {"document": None, "reason": "unreachable"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "https://example.org/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({}, "url"),
        ({"selectors": {"content": "main >"}}, "selectors.content"),
        ({"fields": [{"name": "a", "selector": "main >"}]}, "fields[0].selector"),
        ({"fields": [{"name": "a"}]}, "fields[0]"),
        ({"headers": {"Host": "x"}}, "headers.Host"),
        ({"kind": "feed"}, "kind"),
    ],
)
def test_invalid_preview_requests_return_400(
    tenant: Tenant, website: Website, fields: dict[str, Any], field: str
) -> None:
    body = fields if field == "url" else {"url": website.url, **fields}
    answer = tenant.private.post(f"/api/sites/{tenant.site_id}/sources/preview", json=body)
    assert_error(answer, 400, "validation_failed", field=field)


def test_preview_rejects_private_addresses_by_default(ann: Tenant) -> None:
    site = assert_ok(ann.browser.post("/sites", json={"name": "Own", "url": "http://localhost:9/"}), 201)["site"]
    path = f"/api/sites/{site['id']}/sources/preview"
    assert assert_ok(ann.private.post(path, json={"url": "http://localhost:9/"})) == {
        "document": None,
        "reason": "private_address",
    }
    literal = assert_ok(ann.browser.post("/sites", json={"name": "IP", "url": "http://127.0.0.1:9/"}), 201)["site"]
    path = f"/api/sites/{literal['id']}/sources/preview"
    assert_error(ann.private.post(path, json={"url": "http://127.0.0.1:9/"}), 400, "validation_failed", field="url")


def test_concurrent_previews_are_limited_and_excess_ones_get_503(
    tenant: Tenant, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/api/sites/{tenant.site_id}/sources/preview"
    body = {"url": website.url}
    asked, answer = threading.Semaphore(0), threading.Event()

    def hold(path: str) -> None:
        asked.release()
        answer.wait(PATIENCE_SECONDS)

    website.before = hold
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(tenant.private.post(path, json=body).status_code))
        for _ in range(preview.MAX_PREVIEWS)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert asked.acquire(timeout=PATIENCE_SECONDS)

    refused = tenant.private.post(path, json=body)
    answer.set()
    for thread in threads:
        thread.join()

    assert_error(refused, 503, "server_busy")
    assert answers == [200] * preview.MAX_PREVIEWS
    assert_ok(tenant.private.post(path, json=body))


def test_preview_of_a_sitemap_or_feed_shows_its_first_page(tenant: Tenant, website: Website) -> None:
    previewer = tenant.app.extensions["runtime"].previewer
    base = website.url
    website.pages["/sitemap.xml"] = Answer(
        f"<urlset><url><loc>https://example.org/</loc></url><url><loc>{base}/</loc></url></urlset>".encode(),
        headers={"Content-Type": "application/xml"},
    )
    website.pages["/feed.xml"] = Answer(
        f"<rss version='2.0'><channel><item><link>{base}/</link></item></channel></rss>".encode(),
        headers={"Content-Type": "application/rss+xml"},
    )
    website.pages["/none.xml"] = Answer(b"<urlset></urlset>", headers={"Content-Type": "application/xml"})
    from app.models import Site

    with tenant.app.extensions["runtime"].database.read() as session:
        site = session.get_one(Site, tenant.site_id)

    def first(kind: str, path: str) -> preview.Preview:
        seen: preview.Preview = previewer.preview(site, base + path, kind=kind, selectors={}, headers={})
        return seen

    for kind, path in (("sitemap", "/sitemap.xml"), ("feed", "/feed.xml")):
        document = first(kind, path).document
        assert document is not None
        assert document["title"] == "Museum"
    assert first("sitemap", "/none.xml").reason == "bad_source"
    assert first("feed", "/").reason == "bad_source"
    assert first("sitemap", "/missing.xml").reason == "http_404"
    assert first("wordpress", "/").reason == "bad_source"


def test_url_without_a_scheme_is_tried_with_https_then_http(tenant: Tenant, website: Website) -> None:
    previewer = tenant.app.extensions["runtime"].previewer
    bare = website.url.removeprefix("http://")
    website.pages |= {"/busy": Answer(b"", 503, {"Retry-After": "30"}), "/image": Answer(b"\x89PNG")}

    for path in ("/", "/image", "/missing", "/busy"):
        assert previewer.complete_url(f" {bare}{path}") == preview.CompletedUrl(website.url + path)
    assert previewer.complete_url(f"https://{bare}/") == preview.CompletedUrl(f"https://{bare}/")
    assert previewer.complete_url("no address") == preview.CompletedUrl("no address")


@pytest.mark.parametrize(
    ("answering", "otherwise", "completed"),
    [
        ({"https", "http"}, "http", preview.CompletedUrl("https://www.example.com/a")),
        ({"http"}, "https", preview.CompletedUrl("http://www.example.com/a")),
        (set(), "https", preview.CompletedUrl("https://www.example.com/a", is_silent=True)),
        (set(), "http", preview.CompletedUrl("http://www.example.com/a", is_silent=True)),
    ],
)
def test_url_without_a_scheme_gets_the_first_scheme_that_responds(
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    answering: set[str],
    otherwise: str,
    completed: preview.CompletedUrl,
) -> None:
    def answers(url: str, *args: Any, **kwargs: Any) -> bool:
        return url.partition(":")[0] in answering

    monkeypatch.setattr("app.crawl.run.visits.visitor.responds", answers)

    assert tenant.app.extensions["runtime"].previewer.complete_url("www.example.com/a", otherwise) == completed


def test_private_address_without_a_scheme_gets_no_request(ann: Tenant, website: Website) -> None:
    previewer = ann.app.extensions["runtime"].previewer
    bare = website.url.removeprefix("http://")

    assert previewer.complete_url(bare) == preview.CompletedUrl(f"https://{bare}", is_silent=True)
    assert website.asked == []


def test_url_without_a_scheme_on_a_slow_server_is_marked_silent(
    tenant: Tenant, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.crawl.run.visits.visitor.MAX_RESPONSE_SECONDS", 0.1)
    answer = threading.Event()
    website.before = lambda path: answer.wait(20)
    bare = website.url.removeprefix("http://")

    completed = tenant.app.extensions["runtime"].previewer.complete_url(bare)
    answer.set()

    assert completed == preview.CompletedUrl(f"https://{bare}", is_silent=True)


def test_preview_includes_the_domain_if_the_site_has_several(tenant: Tenant, website: Website) -> None:
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"domains": ["https://blog.example.org/"]}))

    assert look(tenant, website.url)["document"]["domain"] == "127.0.0.1"


def test_waiting_for_a_previewed_page_lets_other_requests_work(
    tenant: Tenant, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded_pool() as worker_pool:
        read = recorded_calls(monkeypatch, first_page, "read_first_page", worker_pool)
        look(tenant, website.url)
        asked = recorded_calls(monkeypatch, visitor, "responds", worker_pool)
        tenant.app.extensions["runtime"].previewer.complete_url(website.url.removeprefix("http://"))
    assert (read, asked) == ([True], [True, True])


SHELL = "<!doctype html><title>App</title>{text}<div id=app></div><script src=/app.js></script>"


@pytest.mark.parametrize(
    ("text", "options", "content", "reason"),
    [
        ("", {}, None, "needs_browser"),
        ("", {"render": "never"}, None, "empty"),
        ("<p>Loading the museum", {}, "Loading the museum", "needs_browser"),
        ("<p>" + TEXT * 10, {}, TEXT * 10, None),
        ("<p>" + TEXT * 10, {"render": "always"}, TEXT * 10, "needs_browser"),
        ("<meta name=robots content=noindex>", {}, None, "noindex"),
    ],
)
def test_preview_reports_that_a_run_renders_the_page(
    tmp_path: Path,
    website: Website,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: dict[str, Any],
    content: str | None,
    reason: str | None,
) -> None:
    # A preview renders nothing, so the setting is enough, even where the extra is not installed.
    monkeypatch.setattr("app.runtime.BROWSER_PACKAGES", ())
    website.pages["/app"] = Answer(SHELL.format(text=text).encode(), headers={"Content-Type": "text/html"})
    with crawling_tenant(tmp_path, website, crawl_browser="/usr/bin/chromium") as tenant:
        answer = look(tenant, website.address("/app"), **options)
        assert (answer["document"] or {}).get("content") == content
        assert answer.get("reason") == reason
        if reason == "needs_browser":
            form = {"kind": "website", "url": website.address("/app"), **options}
            shown = tenant.browser.post(f"/api/sites/{tenant.site_id}/sources/preview", data=form)
            assert "renders it in a browser" in shown.get_data(as_text=True)


def test_preview_without_a_browser_shows_what_a_run_reads(website: Website, tenant: Tenant) -> None:
    website.pages["/app"] = Answer(SHELL.format(text="").encode(), headers={"Content-Type": "text/html"})
    assert look(tenant, website.address("/app")) == {"document": None, "reason": "empty"}


def test_preview_reports_a_bug_instead_of_failing(
    tenant: Tenant, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    def fail(*args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.crawl.run.visits.first_page.make_document", fail)
    unexpected_errors.expected = {"page": 1}
    assert look(tenant, website.url) == {"document": None, "reason": "internal_error"}
