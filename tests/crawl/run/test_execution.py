"""Tests which pages a run reads, skips, updates, and removes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import time_machine
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.crawl.fetch.addresses import host_of
from app.crawl.fetch.politeness import Turn
from app.crawl.run import decisions, frontier, outcomes
from app.crawl.run import state as state_module
from app.crawl.run.execution import MAX_REPORTED_URLS, MAX_UNREADABLE_PERCENT, execute
from app.crawl.run.state import RunControl
from app.crawl.run.visits.turns import SharedTurns
from app.crawl.run.visits.visitor import MAX_ATTEMPTS, MAX_CONSECUTIVE_FAILURES, MAX_PAUSED_SECONDS
from app.crawl.sources import runs
from app.crawl.sources.docsearch import read_config
from app.models import Account, QueuedEmail, RunPage, Site, Source, SourceRun
from app.plans import PlanTable
from app.services import sites
from backends.errors import BackendUnavailable
from schemas.sources import SourceCreateSchema
from tests.crawl.conftest import UnexpectedErrors
from tests.crawl.run.conftest import FreeTurns, Runner, counts
from tests.crawl.run.websites import Answer, Website, html, serving
from tests.responses import assert_ok
from tests.services.webhooks.receiver import add_webhook, deliveries


def test_run_indexes_pages_from_links_and_the_sitemap(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/b"]),
        "/a": html("A", links=["/", "/c"]),
        "/b": html("B"),
        "/c": html("C"),
        "/listed": html("Listed"),
        "/sitemap.xml": Answer(
            f"<urlset><url><loc>{website.address('/listed')}</loc></url></urlset>".encode(),
            headers={"Content-Type": "application/xml"},
        ),
    }

    run = runner.run(runner.add())

    assert (run.status, run.error) == ("finished", None)
    assert counts(run) == {"found": 5, "indexed": 5}
    assert sorted(runner.documents()) == ["/", "/a", "/b", "/c", "/listed"]
    assert runner.documents()["/a"]["url"] == website.address("/a")


def test_second_run_of_an_unchanged_site_fetches_no_bodies(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/hidden", "/moved", "/copy"]),
        "/a": html("A", links=["/b"]),
        "/b": html("B", text="The same text on two pages."),
        "/hidden": html("Hidden", links=["/c"], head='<meta name="robots" content="noindex">'),
        "/c": html("C"),
        "/moved": Answer(status=301, headers={"Location": "/target"}),
        "/target": html("Target"),
        "/copy": html("B", text="The same text on two pages."),
    }
    source = runner.add()
    first = runner.run(source)
    before = runner.documents()
    website.forget()

    second = runner.run(source)

    assert website.bodies() == []
    assert counts(first) == {"found": 8, "indexed": 5, "skipped": 3}
    assert counts(second) == {"found": 8, "unchanged": 5, "skipped": 3}
    assert runner.documents() == before
    assert runner.left_out(second) == runner.left_out(first)
    assert sorted(runner.left_out(first).values()) == ["canonical", "duplicate", "noindex"]


def test_crawled_pages_on_the_dashboard_are_those_that_runs_indexed_or_confirmed(
    runner: Runner, website: Website
) -> None:
    make_site(website, 5)
    website.pages["/4"] = html("Hidden", head='<meta name="robots" content="noindex">')
    source = runner.add()
    runs_of_source = [runner.run(source), runner.run(source), runner.run(source, urls=[website.address("/1")])]

    usage = assert_ok(runner.tenant.private.get("/dashboard"))["usage"]

    assert usage["pages_crawled_this_month"] == sum(run.indexed + run.unchanged for run in runs_of_source) == 11


def make_site(website: Website, count: int) -> None:
    """Serve a start page that links to ``count`` pages."""
    website.pages = {f"/{n}": html(f"Page {n}") for n in range(count)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(count)])


def test_deleted_and_noindex_pages_are_removed_by_the_next_run(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a", "/b", "/c"]), **{f"/{n}": html(n) for n in "abc"}}
    source = runner.add()
    runner.run(source)
    del website.pages["/a"]
    website.pages["/b"] = html("b", head='<meta name="robots" content="noindex">')
    website.pages["/c"] = html("c", text="Another text.")

    run = runner.run(source)

    assert counts(run) == {"found": 4, "unchanged": 1, "indexed": 1, "skipped": 2, "removed": 2}
    assert runner.left_out(run) == {"/a": "http_404", "/b": "noindex"}
    assert sorted(runner.documents()) == ["/", "/c"]
    assert runner.documents()["/c"]["content"].startswith("Another text.")


def test_page_without_incoming_links_is_removed(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": html("A", links=["/b"]), "/b": html("B")}
    source = runner.add()
    runner.run(source)
    website.pages["/a"] = html("A")

    run = runner.run(source)

    assert counts(run) == {"found": 2, "unchanged": 2, "removed": 1}
    assert sorted(runner.documents()) == ["/", "/a"]


@pytest.mark.parametrize("status", [500, 502, 403])
def test_failing_page_and_the_pages_it_links_to_are_not_removed(runner: Runner, website: Website, status: int) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": html("A", links=["/b"]), "/b": html("B")}
    source = runner.add()
    runner.run(source)
    website.pages["/a"] = Answer(b"", status)

    run = runner.run(source)

    assert (run.status, counts(run)) == ("finished", {"found": 3, "unchanged": 2, "failed": 1})
    assert runner.left_out(run) == {"/a": f"http_{status}"}
    assert sorted(runner.documents()) == ["/", "/a", "/b"]


def test_run_fails_and_removes_nothing_if_the_start_page_fails(runner: Runner, website: Website) -> None:
    make_site(website, 3)
    source = runner.add()
    runner.run(source)
    website.pages = {"/": Answer(b"", 500)}

    run = runner.run(source)

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "http_500"
    assert len(runner.documents()) == 4


def test_run_that_would_remove_too_many_pages_fails_and_removes_nothing(runner: Runner, website: Website) -> None:
    make_site(website, 30)
    source = runner.add()
    runner.run(source)
    website.pages = {"/": html("Home", links=["/new"]), "/new": html("New")}

    guarded = runner.run(source)
    kept = len(runner.documents())
    allowed = runner.run(source, max_removed_percent=100)

    assert guarded.status == "failed"
    assert guarded.error is not None
    assert guarded.error["code"] == "sync_removes_too_much"
    assert kept == 32
    assert (allowed.status, allowed.removed) == ("finished", 30)
    assert sorted(runner.documents()) == ["/", "/new"]


def test_run_limited_to_urls_reads_only_these_and_removes_no_other_pages(runner: Runner, website: Website) -> None:
    make_site(website, 3)
    source = runner.add()
    runner.run(source)
    website.pages["/0"] = html("Page 0", text="Changed.", links=["/new"])
    website.pages["/1"] = html("Page 1", text="Changed as well.")
    del website.pages["/2"]
    website.forget()

    run = runner.run(source, urls=[website.address("/0"), website.address("/2"), "https://example.net/"])

    assert sorted(path for path, _ in website.asked) == ["/0", "/2"]
    assert counts(run) == {"found": 3, "indexed": 1, "skipped": 2}
    assert runner.left_out(run) == {"/2": "http_404", "https://example.net/": "other_host"}
    documents = runner.documents()
    assert sorted(documents) == ["/", "/0", "/1"]
    assert documents["/0"]["content"].startswith("Changed.")
    assert not documents["/1"]["content"].startswith("Changed")


def test_include_and_exclude_globs_limit_indexed_and_followed_pages(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/docs/a", "/docs/old/b", "/blog/c", "/docs/d?print=1"]),
        "/docs/a": html("A", links=["/docs/deep/er"]),
        "/docs/deep/er": html("Deeper"),
        "/docs/old/b": html("B"),
        "/blog/c": html("C"),
        "/docs/d?print=1": html("D"),
    }

    run = runner.run(runner.add(include=["/docs/*"], exclude=["/docs/old/*", "*?print=*"]))

    assert sorted(runner.documents()) == ["/docs/a", "/docs/deep/er"]
    assert runner.left_out(run) == dict.fromkeys(["/", "/docs/old/b", "/blog/c", "/docs/d?print=1"], "excluded")
    assert ("/blog/c", 200) not in website.asked


def test_trap_url_is_skipped_without_a_request(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a", "/a/a/a/a"]), "/a": html("A"), "/a/a/a/a": html("Deep")}

    run = runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "/a"]
    assert runner.left_out(run) == {"/a/a/a/a": "trap"}
    assert ("/a/a/a/a", 200) not in website.asked


@pytest.mark.parametrize("takes_cookie", [True, False])
def test_session_ids_in_links_do_not_hide_a_site(runner: Runner, website: Website, *, takes_cookie: bool) -> None:
    """Tomcat adds its ID to the first response only; servers that know no cookies redirect to a URL with an ID."""
    session = "0123456789ABCDEF0123456789ABCDEF"
    cookie = {"Set-Cookie": f"JSESSIONID={session}"} if takes_cookie else {}
    start = html("Home", links=[f"/one;jsessionid={session}", f"/topic.php?t=1&amp;sid={session}"])
    website.pages = {
        "/": replace(start, headers={**start.headers, **cookie}),
        "/one": html("Capstan") if takes_cookie else Answer(status=302, headers={"Location": "/one;jsessionid=FF"}),
        "/one;jsessionid=FF": html("Capstan"),
        "/topic.php?t=1": html("Topic"),
    }

    run = runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "/one", "/topic.php?t=1"]
    assert runner.left_out(run) == {}
    assert ("cookie" in website.sent[-1]) == takes_cookie


def test_maintenance_message_keeps_the_document_of_its_page(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": html("Hours")}
    source = runner.add()
    runner.run(source)
    website.pages["/a"] = html("Under maintenance", text="Please come back later.")

    run = runner.run(source)

    assert runner.left_out(run) == {"/a": "soft_error"}
    assert runner.documents()["/a"]["title"] == "Hours"
    assert run.removed == 0


def test_translations_named_only_by_link_elements_are_indexed(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", head='<link rel=alternate hreflang=de href="/de/">'), "/de/": html("Startseite")}

    runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "/de/"]


def test_page_is_removed_once_the_time_after_which_it_is_unavailable_has_passed(
    runner: Runner, website: Website
) -> None:
    sale = html("Sale", head='<meta name="robots" content="unavailable_after: Fri, 01 May 2026 15:00:00 GMT">')
    website.pages = {"/": html("Home", links=["/sale"]), "/sale": sale}
    source = runner.add()
    with time_machine.travel("2026-05-01T12:00:00Z", tick=True):
        runner.run(source)
        assert sorted(runner.documents()) == ["/", "/sale"]
    with time_machine.travel("2026-05-01T16:00:00Z", tick=True):
        run = runner.run(source)

    assert runner.left_out(run) == {"/sale": "noindex"}
    assert sorted(runner.documents()) == ["/"]


def test_indexed_page_is_removed_once_it_is_excluded(runner: Runner, website: Website) -> None:
    make_site(website, 2)
    source = runner.add()
    runner.run(source)
    with runner.part.database.write() as session:
        session.get_one(Source, source.id).exclude = ["/1"]

    run = runner.run(source)

    assert run.removed == 1
    assert sorted(runner.documents()) == ["/", "/0"]


def test_run_indexes_at_most_max_pages(runner: Runner, website: Website) -> None:
    make_site(website, 20)

    run = runner.run(runner.add(max_pages=5))

    assert counts(run) == {"found": 21, "indexed": 5, "skipped": 16}
    assert set(runner.left_out(run).values()) == {"excluded"}
    assert len(runner.documents()) == 5


def test_links_are_followed_up_to_max_depth(runner: Runner, website: Website) -> None:
    website.pages = {f"/{n}": html(f"Page {n}", links=[f"/{n + 1}"]) for n in range(5)}

    run = runner.run(runner.add("/0", max_depth=2))

    assert sorted(runner.documents()) == ["/0", "/1", "/2"]
    assert run.found == 3


def test_sitemap_source_reads_listed_pages_and_follows_no_links(runner: Runner, website: Website) -> None:
    listed = "".join(f"<url><loc>{website.address(path)}</loc></url>" for path in ("/a", "/b"))
    website.pages = {
        "/map.xml": Answer(f"<urlset>{listed}</urlset>".encode(), headers={"Content-Type": "application/xml"}),
        "/a": html("A", links=["/c"]),
        "/b": html("B"),
        "/c": html("C"),
    }

    runner.run(runner.add("/map.xml", kind="sitemap"))

    assert sorted(runner.documents()) == ["/a", "/b"]


def test_unreadable_sitemap_fails_the_run_and_removes_nothing(runner: Runner, website: Website) -> None:
    website.pages = {
        "/map.txt": Answer(website.address("/a").encode(), headers={"Content-Type": "text/plain"}),
        "/a": html("A"),
    }
    source = runner.add("/map.txt", kind="sitemap")
    runner.run(source)
    website.pages["/map.txt"] = html("Login")

    run = runner.run(source)

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "bad_source"
    assert sorted(runner.documents()) == ["/a"]


def feed(website: Website, *paths: str) -> Answer:
    items = "".join(f"<item><title>T</title><link>{website.address(path)}</link></item>" for path in paths)
    return Answer(
        f'<rss version="2.0"><channel><title>Feed</title>{items}</channel></rss>'.encode(),
        headers={"Content-Type": "application/rss+xml"},
    )


def test_pages_dropped_from_a_feed_stay_and_deleted_pages_are_removed(runner: Runner, website: Website) -> None:
    website.pages = {"/feed": feed(website, "/a", "/b"), **{f"/{n}": html(n) for n in "abc"}}
    source = runner.add("/feed", kind="feed")
    runner.run(source)
    website.pages["/feed"] = feed(website, "/b", "/c")
    del website.pages["/b"]

    run = runner.run(source)

    assert counts(run) == {"found": 2, "indexed": 1, "skipped": 1, "removed": 1}
    assert sorted(runner.documents()) == ["/a", "/c"]


def wordpress(website: Website, *posts: tuple[str, str]) -> None:
    import json

    items = [
        {
            "id": number, "type": "post", "status": "publish", "link": website.address(path),
            "title": {"rendered": f"Post &amp; {path}"}, "content": {"rendered": f"<p>{text}</p>", "protected": False},
            "excerpt": {"rendered": ""}, "date_gmt": "2025-01-02T03:04:05", "modified_gmt": "2025-01-02T03:04:05",
            "_embedded": {"wp:term": [[{"taxonomy": "category", "name": "News"}]]},
        }
        for number, (path, text) in enumerate(posts)
    ]  # fmt: skip
    kept = {"Content-Type": "application/json", "X-WP-TotalPages": "1"}
    query = "orderby=id&order=asc&_embed=author%2Cwp%3Aterm"
    fields = "id%2Ctype%2Cstatus%2Clink%2Cdate_gmt%2Cmodified_gmt%2Ctitle%2Ccontent%2Cexcerpt%2C_links%2C_embedded"
    address = f"page=1&per_page=25&{query}&_fields={fields}"
    website.pages = {
        "/": html("Blog"),
        f"/wp-json/wp/v2/posts?{address}": Answer(json.dumps(items).encode(), headers=kept, validators=False),
        f"/wp-json/wp/v2/pages?{address}": Answer(b"[]", headers=kept, validators=False),
    }


def test_wordpress_source_adds_updates_and_removes_posts(runner: Runner, website: Website) -> None:
    wordpress(website, ("/one", "First text."), ("/two", "Second text."))
    source = runner.add(kind="wordpress")
    first = runner.run(source)
    wordpress(website, ("/two", "Second text, changed."), ("/one", "First text."))
    second = runner.run(source)
    wordpress(website, ("/one", "First text."))
    third = runner.run(source)

    assert [counts(run) for run in (first, second, third)] == [
        {"found": 2, "indexed": 2},
        {"found": 2, "indexed": 1, "unchanged": 1},
        {"found": 1, "unchanged": 1, "removed": 1},
    ]
    (document,) = runner.documents().values()
    assert document["title"] == "Post & /one"
    assert document["categories"] == ["News"]


def test_page_with_another_canonical_url_is_indexed_under_that_url(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a?ref=1"]),
        "/a?ref=1": html("A", head='<link rel="canonical" href="/a">'),
        "/a": html("A", head='<link rel="canonical" href="/a">'),
    }

    run = runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "/a"]
    assert runner.left_out(run) == {"/a?ref=1": "canonical"}


def canonical(title: str, target: str, links: tuple[str, ...] = (), text: str = "") -> Answer:
    """Build a page that declares a canonical URL."""
    return html(title, text, links, head=f'<link rel="canonical" href="{target}">')


def test_page_is_indexed_if_its_canonical_url_cannot_be(runner: Runner, website: Website) -> None:
    https = website.address("/secure").replace("http:", "https:")
    website.pages = {
        "/": html("Home", links=["/gone", "/secure", "/elsewhere", "/hidden", "/broken"]),
        "/gone": canonical("Gone", "/404", ("/linked",)),
        "/secure": canonical("Secure", https),
        "/elsewhere": canonical("Elsewhere", "https://other.example/elsewhere"),
        "/hidden": canonical("Hidden", "/noindex"),
        "/noindex": html("No index", head='<meta name="robots" content="noindex">'),
        "/broken": canonical("Broken", "/500"),
        "/500": Answer(status=500),
        "/linked": html("Linked"),
    }
    source = runner.add()

    first = runner.run(source)
    documents, reported = runner.documents(), runner.left_out(first)
    website.forget()
    second = runner.run(source)

    assert (first.status, second.status) == ("finished", "finished")
    assert sorted(documents) == ["/", "/broken", "/elsewhere", "/gone", "/hidden", "/linked", "/secure"]
    assert documents["/secure"]["url"] == website.address("/secure")
    expected = dict.fromkeys(["/broken", "/elsewhere", "/gone", "/hidden", "/secure"], "wrong_canonical")
    expected |= {"/404": "http_404", "/noindex": "noindex", "/500": "http_500", https: "unreachable"}
    assert reported == runner.left_out(second) == expected
    assert runner.documents() == documents
    assert counts(second) == {"found": 11, "unchanged": 7, "skipped": 2, "failed": 2}
    assert website.bodies() == []


def test_one_of_two_pages_that_name_each_other_as_canonical_is_indexed(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/b", "/c"]),
        "/a": canonical("A", "/b"),
        "/b": canonical("B", "/a"),
        "/c": canonical("C", "/a"),
    }
    source = runner.add()

    for _ in range(2):
        run = runner.run(source)
        assert runner.left_out(run) == {"/a": "wrong_canonical", "/b": "canonical", "/c": "canonical"}
        assert sorted(runner.documents()) == ["/", "/a"]


def test_copy_of_a_canonical_page_is_read_only_once(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a?ref=1", "/a", "/a?ref=2"]),
        "/a": canonical("A", "/a"),
        "/a?ref=1": canonical("Copy 1", "/a"),
        "/a?ref=2": canonical("Copy 2", "/a"),
    }
    source = runner.add()
    runner.run(source)

    assert sorted(path for path, _ in website.asked if path.startswith("/a")) == ["/a", "/a?ref=1", "/a?ref=2"]
    website.forget()
    runner.run(source)
    assert website.bodies() == []


def test_page_is_replaced_by_its_canonical_url_once_that_can_be_indexed(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": canonical("A", "/b")}
    source = runner.add()
    runner.run(source)
    assert sorted(runner.documents()) == ["/", "/a"]

    website.pages["/b"] = canonical("A", "/b")
    run = runner.run(source)
    assert sorted(runner.documents()) == ["/", "/b"]
    assert runner.left_out(run) == {"/a": "canonical"}
    assert counts(run) == {"found": 3, "indexed": 1, "unchanged": 1, "skipped": 1, "removed": 1}

    del website.pages["/b"]
    run = runner.run(source)
    assert sorted(runner.documents()) == ["/", "/a"]
    assert runner.left_out(run) == {"/b": "http_404", "/a": "wrong_canonical"}


def test_changed_page_replaces_its_document_when_its_canonical_link_is_wrong(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": html("A")}
    source = runner.add()
    runner.run(source)
    website.pages["/a"] = canonical("A", "/b", text="Changed.")

    run = runner.run(source)

    assert runner.documents()["/a"]["content"] == "Changed."
    assert counts(run) == {"found": 3, "indexed": 1, "unchanged": 1, "skipped": 1}


def test_temporarily_failing_canonical_page_keeps_its_document_and_its_copies_are_skipped(
    runner: Runner, website: Website
) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": canonical("Copy", "/b"), "/b": html("B")}
    source = runner.add()
    runner.run(source)
    website.pages["/b"] = Answer(status=503)
    website.pages["/a"] = canonical("Changed copy", "/b")

    run = runner.run(source)

    assert sorted(runner.documents()) == ["/", "/b"]
    assert runner.left_out(run)["/a"] == "canonical"


def test_page_in_a_sitemap_is_skipped_only_if_its_canonical_url_is_indexed(runner: Runner, website: Website) -> None:
    urls = "".join(f"<url><loc>{website.address(path)}</loc></url>" for path in ("/copy", "/a", "/alone"))
    website.pages = {
        "/map.xml": Answer(f"<urlset>{urls}</urlset>".encode(), headers={"Content-Type": "text/xml"}),
        "/copy": canonical("Copy", "/a"),
        "/a": html("A"),
        "/alone": canonical("Alone", "/unlisted"),
        "/unlisted": html("Unlisted"),
    }
    source = runner.add("/map.xml", kind="sitemap")
    run = runner.run(source)

    assert sorted(runner.documents()) == ["/a", "/alone"]
    assert runner.left_out(run) == {"/copy": "canonical", "/alone": "wrong_canonical"}

    other = runner.add("/unlisted", max_depth=0)
    runner.run(other)
    run = runner.run(source)
    assert sorted(runner.documents()) == ["/a", "/unlisted"]
    assert runner.left_out(run) == {"/copy": "canonical", "/alone": "canonical"}


def test_run_limited_to_urls_skips_copies_of_indexed_pages(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": canonical("Copy", "/b"), "/b": html("B")}
    source = runner.add()
    runner.run(source)
    website.pages |= {"/c": canonical("Another copy", "/b"), "/d": canonical("Alone", "/e")}

    run = runner.run(source, urls=[website.address(path) for path in ("/a", "/c", "/d")])

    assert runner.left_out(run) == {"/a": "canonical", "/c": "canonical", "/d": "wrong_canonical"}
    assert sorted(runner.documents()) == ["/", "/b", "/d"]


def test_redirect_to_a_page_with_a_wrong_canonical_url_leads_to_that_page(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/old"]),
        "/old": Answer(status=301, headers={"Location": "/new"}),
        "/new": canonical("New", "/gone"),
    }
    source = runner.add()

    for _ in range(2):
        run = runner.run(source)
        assert sorted(runner.documents()) == ["/", "/new"]
        assert runner.left_out(run) == {"/old": "canonical", "/new": "wrong_canonical", "/gone": "http_404"}


def test_unreachable_canonical_urls_do_not_make_a_run_incomplete(runner: Runner, website: Website) -> None:
    secure = website.url.replace("http:", "https:")
    website.pages = {f"/{n}": canonical(f"Page {n}", f"{secure}/{n}") for n in range(5)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(5)])

    run = runner.run(runner.add())

    assert (run.status, run.error) == ("finished", None)
    assert counts(run) == {"found": 11, "indexed": 6, "failed": 5}


def test_canonical_url_that_redirects_to_the_page_becomes_its_id(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a"]),
        "/a": html("A", head='<link rel="canonical" href="/nice">'),
        "/nice": Answer(status=302, headers={"Location": "/a"}),
    }
    source = runner.add()
    runner.run(source)
    website.forget()

    run = runner.run(source)

    assert sorted(runner.documents()) == ["/", "/nice"]
    assert counts(run) == {"found": 3, "unchanged": 2, "skipped": 1}
    assert website.bodies() == []


def test_redirect_target_is_read_once_and_indexed_under_its_own_url(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/old"]),
        "/old": Answer(status=301, headers={"Location": "/new"}),
        "/new": html("New"),
    }

    run = runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "/new"]
    assert runner.left_out(run) == {"/old": "canonical"}
    assert website.asked.count(("/new", 200)) == 1


def test_moved_page_is_indexed_only_under_its_new_url(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/old"]), "/old": html("Moving")}
    source = runner.add()
    runner.run(source)
    website.pages |= {"/new": website.pages["/old"], "/old": Answer(status=301, headers={"Location": "/new"})}

    runner.run(source)

    assert sorted(runner.documents()) == ["/", "/new"]


def test_first_indexed_of_duplicate_pages_stays_until_it_is_deleted(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Home", links=["/a", "/b"]),
        "/a": html("Same"),
        "/b": html("Same"),
    }
    source = runner.add()
    first = runner.run(source)
    (copy,) = runner.left_out(first)
    (kept,) = {"/a", "/b"} - {copy}
    website.pages["/"] = html("Home, changed", links=[copy, kept])
    second = runner.run(source)
    del website.pages[kept]
    third = runner.run(source)

    assert runner.left_out(second) == {copy: "duplicate"}
    assert runner.left_out(third) == {kept: "http_404"}
    assert sorted(runner.documents()) == sorted(["/", copy])


def test_two_pages_that_declare_the_same_id_are_one_document(runner: Runner, website: Website) -> None:
    head = '<meta name="site-search:id" content="mine">'
    website.pages = {
        "/": html("Home", links=["/a", "/b"]), "/a": html("A", head=head), "/b": html("B", head=head),
    }  # fmt: skip

    run = runner.run(runner.add())

    assert sorted(runner.documents()) == ["/", "mine"]
    assert sorted(runner.left_out(run).values()) == ["duplicate"]


def test_document_removed_through_the_api_is_written_again_for_an_unchanged_page(
    runner: Runner, website: Website
) -> None:
    make_site(website, 2)
    source = runner.add()
    runner.run(source)
    runner.part.writer.remove(runner.tenant.account_id, runner.tenant.site_id, website.address("/0"))
    website.forget()

    run = runner.run(source)

    assert counts(run) == {"found": 3, "indexed": 1, "unchanged": 2}
    assert website.bodies() == ["/0"]
    assert sorted(runner.documents()) == ["/", "/0", "/1"]


def test_document_overwritten_through_the_api_is_not_changed_or_removed_by_runs(
    runner: Runner, website: Website
) -> None:
    make_site(website, 2)
    source = runner.add()
    runner.run(source)
    url = website.address("/0")
    runner.tenant.index({"id": url, "title": "Mine", "content": "From the API.", "url": url})
    unchanged = runner.run(source)
    del website.pages["/0"]

    run = runner.run(source)

    assert counts(unchanged) == {"found": 3, "unchanged": 3}
    assert run.removed == 0
    assert runner.documents()["/0"]["title"] == "Mine"


def test_shared_title_suffix_is_removed_also_from_unchanged_pages(runner: Runner, website: Website) -> None:
    website.pages = {f"/{n}": html(f"Page {n} - My Site") for n in range(12)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(12)])
    source = runner.add()
    runner.run(source)
    first = {path: document["title"] for path, document in runner.documents().items()}
    website.pages |= {f"/{n}": html(f"Page {n} | Another name") for n in range(12)}
    runner.run(source)
    second = {path: document["title"] for path, document in runner.documents().items()}
    website.forget()
    third_run = runner.run(source)
    third = {path: document["title"] for path, document in runner.documents().items()}

    assert first["/3"] == second["/3"] == third["/3"] == "Page 3"
    assert first["/"] == "Home"
    assert website.bodies() == []
    assert counts(third_run) == {"found": 13, "unchanged": 13}


def test_lost_page_is_removed_although_its_title_would_be_updated(runner: Runner, website: Website) -> None:
    website.pages = {f"/{n}": html(f"Page {n} - My Site") for n in range(12)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(12)])
    source = runner.add()
    runner.run(source)
    website.pages = {f"/{n}": html(f"Page {n} | Another name") for n in range(11)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(11)])
    run = runner.run(source)

    assert sorted(runner.documents()) == sorted(website.pages)
    assert counts(run)["removed"] == 1


def test_heading_replaces_a_title_that_many_pages_share(runner: Runner, website: Website) -> None:
    def page(number: int, heading: str) -> Answer:
        text = f"<h1>Logo</h1><main><h2>{heading}</h2><p>Text {number}.</p></main>"
        return Answer(f"<title>Harbor Portal</title>{text}".encode(), headers={"Content-Type": "text/html"})

    website.pages = {f"/{n}": page(n, f"Crane {n}") for n in range(6)}
    website.pages["/"] = html("Home", links=[f"/{n}" for n in range(6)])
    source = runner.add()
    for _ in range(2):
        run = runner.run(source)
        titles = sorted(document["title"] for document in runner.documents().values())
        assert titles == ["Crane 0", "Crane 1", "Crane 2", "Crane 3", "Crane 4", "Crane 5", "Home"]
        website.pages["/5"] = page(6, "Crane 5")
    assert counts(run) == {"found": 7, "indexed": 1, "unchanged": 6}

    website.pages |= {f"/{n}": html("Harbor Portal" if n < 2 else f"Dock {n}", f"Text {n}.") for n in range(6)}
    runner.run(source)
    assert sorted(document["title"] for document in runner.documents().values()) == [
        *("Dock 2", "Dock 3", "Dock 4", "Dock 5", "Harbor Portal", "Harbor Portal", "Home")
    ]


def test_shared_title_prefix_is_removed_also_in_runs_of_single_pages(runner: Runner, website: Website) -> None:
    website.pages = {f"/{n}": html(f"Harbor Portal | Crane {n}") for n in range(6)}
    website.pages["/"] = html("Harbor Portal", links=[f"/{n}" for n in range(6)])
    source = runner.add()
    runner.run(source)
    website.pages["/5"] = html("Harbor Portal | Ferry")
    runner.run(source, urls=[website.address("/5")])

    titles = {path: document["title"] for path, document in runner.documents().items()}
    assert (titles["/"], titles["/3"], titles["/5"]) == ("Harbor Portal", "Crane 3", "Ferry")


def test_full_plan_updates_indexed_pages_and_skips_new_ones(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(website, 4)
    source = runner.add()
    runner.run(source)
    with runner.part.database.write() as session:
        session.get_one(Account, runner.tenant.account_id).limit_overrides = {"documents": 7}
    website.pages["/0"] = html("Page 0", text="Changed.")
    website.pages |= {f"/new{n}": html(f"New {n}") for n in range(5)}
    website.pages["/"] = html("Home", links=[*(f"/new{n}" for n in range(5)), *(f"/{n}" for n in range(4))])

    run = runner.run(source)

    assert counts(run) == {"found": 10, "indexed": 3, "unchanged": 4, "skipped": 3}
    assert set(runner.left_out(run).values()) == {"quota"}
    assert len(runner.documents()) == 7
    assert runner.documents()["/0"]["content"].startswith("Changed.")


def test_pages_that_exceed_the_plan_do_not_count_toward_max_pages(runner: Runner, website: Website) -> None:
    make_site(website, 4)
    source = runner.add(max_pages=8)
    runner.run(source)
    with runner.part.database.write() as session:
        session.get_one(Account, runner.tenant.account_id).limit_overrides = {"documents": 7}
    new = [f"/new{number}" for number in range(5)]
    website.pages |= {path: html(path) for path in new}
    website.pages["/"] = html("Home", links=[*new, *(f"/{number}" for number in range(4))])

    run = runner.run(source)

    assert counts(run) == {"found": 10, "indexed": 2, "unchanged": 5, "skipped": 3}
    assert set(runner.left_out(run).values()) == {"quota"}
    assert {"/", "/0", "/1", "/2", "/3"} < runner.documents().keys()


def test_full_plan_does_not_remove_pages_linked_only_from_skipped_pages(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a"]), "/a": html("A")}
    source = runner.add()
    runner.run(source)
    with runner.part.database.write() as session:
        session.get_one(Account, runner.tenant.account_id).limit_overrides = {"documents": 2}
    website.pages |= {f"/new{n}": html(f"New {n}", links=[f"/new{n + 1}"]) for n in range(3)}
    website.pages["/new3"] = html("New 3", links=["/a"])
    website.pages["/"] = html("Home", links=["/new0"])

    run = runner.run(source)

    assert run.removed == 0
    assert sorted(runner.documents()) == ["/", "/a"]


def test_run_on_a_paused_site_fails_without_a_request(runner: Runner, website: Website) -> None:
    make_site(website, 1)
    source = runner.add()
    with runner.part.database.write() as session:
        session.get_one(Site, runner.tenant.site_id).active = False

    run = runner.run(source)

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "site_inactive"
    assert website.asked == []


def test_pausing_the_site_mid_run_fails_the_run(runner: Runner, website: Website) -> None:
    make_site(website, 5)
    source = runner.add()

    def pause(path: str) -> None:
        if path == "/3":
            with runner.part.database.write() as session:
                session.get_one(Site, runner.tenant.site_id).active = False

    website.before = pause
    run = runner.run(source)

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "site_inactive"
    assert run.found == run.indexed + run.unchanged + run.skipped + run.failed


def test_removing_the_site_mid_run_loses_the_run_and_all_documents(runner: Runner, website: Website) -> None:
    make_site(website, 5)
    runner.request(runner.add())

    def delete(path: str) -> None:
        if path == "/3":
            with runner.part.database.write() as session:
                site = sites.get_site(session, runner.tenant.account_id, runner.tenant.site_id, lock=True)
                sites.remove_site(session, site)

    website.before = delete
    ended = execute(runner.parts, runner.claim(), RunControl())
    runner.part.run_engine_tasks()

    assert ended == "lost"
    assert runner.documents() == {}


def test_deleting_the_site_mid_run_fails_the_run(runner: Runner, website: Website) -> None:
    make_site(website, 5)
    source = runner.add()

    def delete(path: str) -> None:
        if path == "/3":
            with runner.part.database.write() as session:
                account_id, site_id = runner.tenant.account_id, runner.tenant.site_id
                sites.delete_site(session, account_id, PlanTable()["pro"], site_id, name=None, purge=False)

    website.before = delete
    run = runner.run(source)

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "site_inactive"
    assert "restore" in run.error["message"]


def test_webhooks_receive_finished_and_failed_runs_but_not_canceled_runs(runner: Runner, website: Website) -> None:
    webhook, _ = add_webhook(runner.tenant, "https://example.com/hook", "run.finished", "run.failed")
    make_site(website, 3)
    source = runner.add()
    finished = runner.run(source)
    website.pages = {"/": Answer(status=500)}
    failed = runner.run(source)
    cancelled = RunControl()
    cancelled.cancel()
    runner.run(source, cancelled)

    second, first = deliveries(runner.tenant, webhook)
    assert (first["event"], second["event"]) == ("run.finished", "run.failed")
    shown = [
        assert_ok(runner.tenant.private.get(f"/api/sites/{runner.tenant.site_id}/sources/{source.id}/runs/{run.id}"))
        for run in (finished, failed)
    ]
    assert first["payload"]["data"] == {
        "site": {"id": runner.tenant.site_id, "name": "Pages"},
        "source": {"id": source.id, "kind": "website", "url": source.url},
        "run": shown[0]["run"],
    }
    assert second["payload"]["data"]["run"] == shown[1]["run"]


def test_canceled_run_keeps_indexed_pages_and_removes_nothing(runner: Runner, website: Website) -> None:
    make_site(website, 5)
    source = runner.add()
    runner.run(source)
    make_site(website, 50)
    del website.pages["/0"]
    control = RunControl()
    website.before = lambda path: control.cancel() if path == "/20" else None

    run = runner.run(source, control)

    assert run.status == "cancelled"
    assert run.removed == 0
    assert run.found == run.indexed + run.unchanged + run.skipped + run.failed
    assert "cancelled" in runner.left_out(run).values()
    assert len(runner.documents()) > 6


def test_resumed_run_fetches_no_page_twice(runner: Runner, website: Website) -> None:
    make_site(website, 40)
    run_id = runner.request(runner.add())
    control = RunControl()
    website.before = lambda path: control.interrupt() if path == "/20" else None
    ended = execute(runner.parts, runner.claim(), control)
    done = runner.load(run_id).indexed
    settled = set(runner.documents())
    asked_before = {path for path, _ in website.asked}
    website.before = lambda path: None
    website.forget()

    execute(runner.parts, runner.claim(), RunControl())

    run = runner.load(run_id)
    assert (ended, run.status) == ("handed_back", "finished")
    assert 0 < done < 41
    assert counts(run) == {"found": 41, "indexed": 41}
    assert settled & {path for path, _ in website.asked} == set()
    assert len(asked_before | {path for path, _ in website.asked}) == 42  # The missing sitemap counts as one.
    assert len(runner.documents()) == 41


def test_worker_that_lost_its_run_does_not_change_it(runner: Runner, website: Website) -> None:
    make_site(website, 40)
    run_id = runner.request(runner.add())
    lost = runner.claim()

    def take_over(path: str) -> None:
        if path == "/20":
            with runner.part.database.write() as session:
                session.get_one(SourceRun, run_id).lease = "another"

    website.before = take_over
    ended = execute(runner.parts, lost, RunControl())

    run = runner.load(run_id)
    assert ended == "lost"
    assert (run.status, run.lease) == ("running", "another")


def test_run_retries_with_backoff_while_the_engine_is_unavailable(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(website, 3)
    away = iter([BackendUnavailable("The engine is away.")] * 3)
    apply = runner.part.indexer.apply
    waited: list[float] = []

    def sometimes(*args: Any) -> None:
        for error in away:
            raise error
        apply(*args)

    monkeypatch.setattr(runner.part.indexer, "apply", sometimes)
    control = RunControl()
    monkeypatch.setattr(control, "wait", waited.append)
    monkeypatch.setattr(state_module, "PAUSES", replace(state_module.PAUSES, chance=lambda: 1.0))

    run = runner.run(runner.add(), control)

    assert counts(run) == {"found": 4, "indexed": 4}
    assert waited == [1.0, 2.0, 4.0]
    assert len(runner.tenant.found_ids("page")) == 3


def test_run_retries_while_the_database_is_unavailable(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(website, 3)
    source = runner.add()
    run_id = runner.request(source)
    claim = runner.claim()
    write = runner.part.database.write
    fails = iter([True, True, True])

    def sometimes() -> Any:
        if next(fails, False):
            raise OperationalError("statement", {}, Exception("away"))
        return write()

    control = RunControl()
    monkeypatch.setattr(control, "wait", lambda seconds: None)
    monkeypatch.setattr(runner.part.database, "write", sometimes)
    execute(runner.parts, claim, control)

    run = runner.load(run_id)
    assert (run.status, counts(run)) == ("finished", {"found": 4, "indexed": 4})


def test_page_with_retry_after_is_requested_again_and_indexed(
    runner: Runner, website: Website, turns: FreeTurns
) -> None:
    make_site(website, 2)
    busy = iter([Answer(b"", 429, {"Retry-After": "7"}), website.pages["/1"]])

    def answer(path: str) -> None:
        if path == "/1":
            website.pages["/1"] = next(busy)

    website.before = answer
    run = runner.run(runner.add())

    assert counts(run) == {"found": 3, "indexed": 3}
    assert turns.pauses == [7.0]


def test_robots_txt_that_returns_429_is_requested_again_and_obeyed(
    runner: Runner, website: Website, turns: FreeTurns
) -> None:
    make_site(website, 2)
    rules = Answer(b"User-agent: *\nDisallow: /1", headers={"Content-Type": "text/plain"})
    responses = iter([Answer(b"", 429, {"Retry-After": "7"}), rules])

    def answer(path: str) -> None:
        if path == "/robots.txt":
            website.pages[path] = next(responses)

    website.before = answer
    run = runner.run(runner.add())

    assert turns.pauses == [7.0]
    assert runner.left_out(run) == {"/1": "robots"}


def test_robots_txt_that_always_returns_429_allows_and_removes_no_pages(runner: Runner, website: Website) -> None:
    make_site(website, 2)
    source = runner.add()
    runner.run(source)
    website.forget()
    website.pages["/robots.txt"] = Answer(b"", 429, {"Retry-After": "30"})

    run = runner.run(source)

    assert (run.status, run.error and run.error["code"], run.removed) == ("failed", "http_429", 0)
    assert website.asked == []
    assert len(runner.documents()) == 3


def test_host_that_keeps_sending_retry_after_gets_few_requests(runner: Runner, website: Website) -> None:
    make_site(website, 30)
    source = runner.add()
    website.pages |= {f"/{n}": Answer(b"", 503, {"Retry-After": "600"}) for n in range(30)}

    run = runner.run(source)

    asked = [path for path, status in website.asked if status == 503]
    assert len(asked) <= 12
    assert counts(run) == {"found": 31, "indexed": 1, "failed": 30}


BUSY = Answer(b"", 429, {"Retry-After": "600"})


@pytest.mark.parametrize(
    "answer", [BUSY, Answer(b"", 503, {"Retry-After": "30"}), Answer(b"", 503), Answer(b"", 429)], ids=str
)
def test_url_that_always_asks_to_wait_does_not_block_other_pages(
    runner: Runner, website: Website, answer: Answer
) -> None:
    make_site(website, 40)
    website.pages["/2"] = answer

    run = runner.run(runner.add())

    assert (run.status, run.error) == ("finished", None)
    assert counts(run) == {"found": 41, "indexed": 40, "failed": 1}
    assert runner.left_out(run) == {"/2": f"http_{answer.status}"}
    assert [path for path, _ in website.asked].count("/2") <= MAX_ATTEMPTS


def test_other_pages_are_requested_before_a_retry(runner: Runner, website: Website) -> None:
    make_site(website, 40)
    website.pages["/2"] = BUSY

    runner.run(runner.add())

    asked = [path for path, _ in website.asked]
    first = asked.index("/2")
    assert asked.index("/2", first + 1) - first > 2


@pytest.mark.parametrize("status", [403, 503, *(pytest.param(status, marks=pytest.mark.slow) for status in (429, 500))])
def test_failing_part_of_a_site_does_not_block_other_pages(runner: Runner, website: Website, status: int) -> None:
    make_site(website, 60)
    website.pages |= {f"/{n}": Answer(b"", status, {"Retry-After": "1"}) for n in range(10, 50)}

    run = runner.run(runner.add())

    assert counts(run) == {"found": 61, "indexed": 21, "failed": 40}


def test_run_pauses_during_an_outage_and_continues_afterwards(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(website, 120)
    pages = dict(website.pages)
    waited: list[float] = []

    def come_back(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            website.pages = pages

    control = RunControl()
    monkeypatch.setattr(control, "wait", come_back)
    website.before = lambda path: website.pages.update({p: Answer(b"", 502) for p in pages}) if path == "/50" else None

    run = runner.run(runner.add(), control)

    assert waited == [0.0, 10.0, 60.0]
    # A page that was requested before the outage may arrive after its first failure.
    assert run.failed <= 2 * MAX_CONSECUTIVE_FAILURES
    assert run.indexed == 121 - run.failed
    assert run.status == ("failed" if run.failed * 100 > 121 * MAX_UNREADABLE_PERCENT else "finished")


@pytest.mark.parametrize("answer", [BUSY, Answer(b"", 503, {"Retry-After": "1"}), Answer(b"", 503)], ids=str)
def test_persistently_busy_host_fails_the_run_as_incomplete(
    runner: Runner, website: Website, turns: FreeTurns, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    make_site(website, 100)
    source = runner.add()
    runner.run(source)
    control = RunControl()
    waited: list[float] = []
    monkeypatch.setattr(control, "wait", waited.append)
    website.before = lambda path: website.pages.update(dict.fromkeys(website.pages, answer)) if path == "/20" else None
    website.forget()

    run = runner.run(source, control)

    refused = [path for path, status in website.asked if status in (429, 503)]
    assert len(refused) < 40
    assert sum(waited) + sum(turns.pauses) < 2 * MAX_PAUSED_SECONDS
    assert (run.status, run.removed) == ("failed", 0)
    assert run.error is not None
    assert run.error["code"] == "incomplete"
    assert run.found == run.indexed + run.unchanged + run.failed == 101
    assert len(runner.documents()) == 101


def test_pauses_for_busy_sitemaps_are_bounded(runner: Runner, website: Website, turns: FreeTurns) -> None:
    make_site(website, 3)
    listed = "".join(f"<sitemap><loc>{website.address(f'/s{n}.xml')}</loc></sitemap>" for n in range(200))
    website.pages["/sitemap.xml"] = Answer(
        f"<sitemapindex>{listed}</sitemapindex>".encode(), headers={"Content-Type": "application/xml"}
    )
    website.pages |= {f"/s{n}.xml": BUSY for n in range(200)}

    runner.run(runner.add())

    assert sum(turns.pauses) <= 2 * MAX_PAUSED_SECONDS


@pytest.mark.parametrize(("failing", "status"), [(2, "finished"), (3, "finished"), (4, "failed")])
@pytest.mark.parametrize("answer", [429, *(pytest.param(answer, marks=pytest.mark.slow) for answer in (500, 503))])
def test_run_with_too_many_temporary_failures_is_incomplete(
    runner: Runner, website: Website, failing: int, status: str, answer: int
) -> None:
    make_site(website, 30)
    source = runner.add()
    runner.run(source)
    website.pages |= {f"/{n}": Answer(b"", answer, {"Retry-After": "1"}) for n in range(failing)}
    website.pages |= {"/20": Answer(b"", 410)}

    run = runner.run(source)

    assert run.status == status
    assert (run.error and run.error["code"]) == (None if status == "finished" else "incomplete")
    assert run.failed == failing
    assert {f"/{n}" for n in range(failing)} <= runner.documents().keys()
    assert ("/20" in runner.documents()) == (status == "failed")


def test_permanently_missing_pages_do_not_make_a_run_incomplete(runner: Runner, website: Website) -> None:
    make_site(website, 30)
    website.pages |= {f"/{n}": Answer(b"", status) for n, status in enumerate([401, 403, 404, 410, 418] * 3)}

    run = runner.run(runner.add())

    assert (run.status, run.indexed) == ("finished", 16)


def test_run_limited_to_unreadable_urls_fails_as_incomplete(runner: Runner, website: Website) -> None:
    make_site(website, 5)
    source = runner.add()
    runner.run(source)
    website.pages |= {f"/{n}": Answer(b"", 500) for n in range(3)}

    run = runner.run(source, urls=[website.address(f"/{n}") for n in range(3)])

    assert (run.status, run.error) == (
        "failed",
        {"code": "incomplete", "message": "3 of 3 pages could not be read."},
    )


def test_internal_error_at_the_start_page_fails_the_run_but_not_the_worker(
    runner: Runner,
    website: Website,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    unexpected_errors: UnexpectedErrors,
) -> None:
    unexpected_errors.expected = {"page": 1}
    make_site(website, 3)

    def broken(*args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(decisions, "make_document", broken)
    run = runner.run(runner.add())

    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "internal_error"
    assert "ZeroDivisionError" in caplog.text


def test_ended_run_stores_only_its_skipped_pages(runner: Runner, website: Website) -> None:
    make_site(website, 3)
    del website.pages["/1"]
    run = runner.run(runner.add())

    with runner.part.database.read() as session:
        kept = session.scalars(select(RunPage.url).where(RunPage.run_id == run.id)).all()

    assert kept == [website.address("/1")]


def test_page_text_beyond_the_document_limit_is_cut(runner: Runner, website: Website) -> None:
    make_site(website, 1)
    website.pages["/0"] = html("Long", text="word " * 300_000)

    run = runner.run(runner.add())

    assert counts(run) == {"found": 2, "indexed": 2}
    assert 900_000 < len(runner.documents()["/0"]["content"]) < 1_048_576


def set_domains(runner: Runner, *domains: str) -> None:
    assert_ok(runner.tenant.private.put(f"/sites/{runner.tenant.site_id}", json={"domains": list(domains)}))


def test_pages_have_a_domain_field_if_the_site_has_several_domains(runner: Runner, website: Website) -> None:
    own = html("Own", head='<meta name="site-search:domain" content="docs">')
    website.pages = {"/": html("Home", links=["/own", "/named"]), "/own": own, "/named": html("Named")}
    source = runner.add()
    runner.run(source)
    assert all("domain" not in document for document in runner.documents().values() if document["title"] != "Own")

    set_domains(runner, "https://blog.example.org/")
    run = runner.run(source)
    host = host_of(website.url)
    assert run.indexed >= 2
    assert {path: document["domain"] for path, document in runner.documents().items()} == {
        "/": host,
        "/named": host,
        "/own": "docs",
    }

    set_domains(runner, "https://blog.example.org/", "https://shop.example.net/")
    assert runner.run(source).indexed == 0

    set_domains(runner)
    runner.run(source)
    assert "domain" not in runner.documents()["/named"]


def test_source_on_an_additional_domain_does_not_leave_it(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home", links=["https://example.com/", "/next"]), "/next": html("Next")}
    set_domains(runner, "https://example.com/")
    run = runner.run(runner.add())
    assert sorted(runner.documents()) == ["/", "/next"]
    assert runner.left_out(run) == {}


def test_search_shows_the_newest_version_of_each_manual_page(runner: Runner, website: Website) -> None:
    website.pages = {
        "/": html("Guide", links=[f"/v/{page}" for page in ("1.4/install", "2.0/install", "1.4/license", "1.4/gone")]),
        "/v/1.4/install": html("Install", text="Turn the lever."),
        "/v/2.0/install": html("Install", text="Pull the lever.", links=["/v/2.0/license"]),
        # The same in both.
        "/v/1.4/license": html("License", text="No lever is owed."),
        "/v/2.0/license": html("License", text="No lever is owed."),
        "/v/1.4/gone": html("Old", text="A lever of old."),
    }
    rule = {"path": "/v/{version}/*", "set": {"version": "{version}"}}
    preferred = {"field": "version", "value": "latest"}
    settings = f"/sites/{runner.tenant.site_id}/search-settings"
    assert_ok(runner.tenant.private.put(settings, json={"distinct": "page", "preferred": preferred}))
    source = runner.add(fields=[rule])

    def found(**parameters: Any) -> list[str]:
        hits = runner.tenant.find("lever", **parameters)["hits"]
        return sorted(hit["url"].removeprefix(website.url) for hit in hits)

    assert runner.left_out(runner.run(source)) == {}
    assert found() == ["/v/1.4/gone", "/v/2.0/install", "/v/2.0/license"]
    assert found(filters=runner.tenant.equals("version", "1.4")) == ["/v/1.4/gone", "/v/1.4/install", "/v/1.4/license"]
    assert counts(runner.run(source)) == {"found": 6, "unchanged": 6}


def test_source_from_a_docsearch_configuration_indexes_the_same_pages_and_fields(
    runner: Runner, website: Website
) -> None:
    aside, links = "<p class=note>Beside it.</p>", "<a href=/docs/en/next>On</a><a href=/docs/en/old/x>Old</a>"
    body = f"<nav><b>Guides</b></nav><article><h1>Install</h1><h2 id=get>Get it</h2><p>Download.</p>{aside}</article>"
    website.pages = {
        "/docs/en/": Answer(f"<title>T</title>{body}{links}".encode(), headers={"Content-Type": "text/html"}),
        "/docs/en/next": html("Next"),
        "/docs/en/old/x": html("Old"),
    }
    plan = read_config(
        {
            "start_urls": [
                {
                    "url": website.address("/docs/(?P<lang>.*?)/"),
                    "variables": {"lang": ["en"]},
                    "page_rank": 2,
                    "tags": ["manual"],
                }
            ],
            "stop_urls": ["/old/"],
            "selectors": {"lvl0": "nav b", "lvl1": "h1", "lvl2": "h2", "text": "p"},
            "selectors_exclude": [".note"],
        }
    )
    values = SourceCreateSchema().load(plan.sources[0].values)

    assert values.pop("url") == website.address("/docs/en/")
    runner.run(runner.add("/docs/en/", **values))

    documents = runner.documents()
    assert sorted(documents) == ["/docs/en/", "/docs/en/next"]
    first = documents["/docs/en/"]
    assert {name: first[name] for name in ("title", "content", "section", "lang", "tags", "rank")} == {
        "title": "Install", "content": "Get it\n\nDownload.", "section": "Guides", "lang": "en", "tags": "manual",
        "rank": 2,
    }  # fmt: skip
    assert [section["anchor"] for section in first["sections"]] == ["get"]


def sitemap(*pages: str) -> Answer:
    return Answer(f"<urlset>{''.join(pages)}</urlset>".encode(), headers={"Content-Type": "application/xml"})


def test_recently_changed_pages_are_read_first_across_sitemaps(runner: Runner, website: Website) -> None:
    def entry(path: str, lastmod: str = "") -> str:
        told = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        return f"<url><loc>{website.address(path)}</loc>{told}</url>"

    listed = "".join(f"<sitemap><loc>{website.address(path)}</loc></sitemap>" for path in ("/a.xml", "/b.xml"))
    website.pages = {
        "/index.xml": Answer(f"<sitemapindex>{listed}</sitemapindex>".encode()),
        "/a.xml": sitemap(entry("/undated"), entry("/old", "2019-03-01"), entry("/newest", "2026-03-02T10:00:00Z")),
        "/b.xml": sitemap(entry("/same", "2026-03-01"), entry("/also", "2026-03-01"), entry("/odd", "soon")),
        **{path: html(path) for path in ("/undated", "/old", "/newest", "/same", "/also", "/odd")},
    }

    run = runner.run(runner.add("/index.xml", kind="sitemap", max_pages=3))

    assert sorted(runner.documents()) == ["/also", "/newest", "/same"]
    assert list(runner.left_out(run)) == ["/old", "/undated", "/odd"]


def dated_sitemap(website: Website, count: int) -> list[str]:
    """Serve a shuffled sitemap with distinct dates, and return its paths, most recent change first."""
    paths = [f"/page-{number}" for number in range(count)]
    entries = [
        f"<url><loc>{website.address(path)}</loc><lastmod>2026-03-01T{at // 60:02}:{at % 60:02}:00Z</lastmod></url>"
        for at, path in enumerate(reversed(paths))
    ]
    random.Random(1).shuffle(entries)
    website.pages = {"/map.xml": sitemap(*entries), **{path: html(path) for path in paths}}
    return paths


class UnfairTurns(FreeTurns):
    """Makes every other request wait, so that later requests get their turns first."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        self.asked += 1
        return 0.02 if self.asked % 2 else super().take(host)


@pytest.fixture
def queue(runner: Runner) -> Iterator[Website]:
    """A website that handles one connection at a time, so that it records requests in order."""
    with serving(one_at_a_time=True) as site:
        runner.website = site
        yield site


def test_pages_are_requested_in_order_even_if_turns_are_granted_out_of_order(runner: Runner, queue: Website) -> None:
    paths = dated_sitemap(queue, 20)
    runner.parts = replace(runner.parts, turns=UnfairTurns())

    runner.run(runner.add("/map.xml", kind="sitemap"))

    assert [path for path, _ in queue.asked] == ["/map.xml", *paths]


def test_disallowed_pages_do_not_block_the_request_order(runner: Runner, queue: Website) -> None:
    paths = dated_sitemap(queue, 8)
    queue.pages["/robots.txt"] = Answer(
        b"User-agent: *\nDisallow: /page-0\nDisallow: /page-3", headers={"Content-Type": "text/plain"}
    )
    del queue.pages["/page-1"]
    queue.pages["/page-4"] = Answer(b"no text", headers={"Content-Type": "image/png"})

    runner.run(runner.add("/map.xml", kind="sitemap"))

    assert [path for path, _ in queue.asked] == [
        "/map.xml", *(path for path in paths if path not in ("/page-0", "/page-3")),
    ]  # fmt: skip


@pytest.mark.slow
def test_pages_are_requested_in_order_on_a_busy_machine(runner: Runner, queue: Website) -> None:
    paths = dated_sitemap(queue, 40)
    runner.parts = replace(runner.parts, turns=SharedTurns(runner.part.database))

    with busy_processes(4):
        runner.run(runner.add("/map.xml", kind="sitemap"))

    assert [path for path, _ in queue.asked] == ["/map.xml", *paths]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep the CPUs busy with ``count`` processes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_start_page_is_read_before_pages_dated_in_sitemaps(runner: Runner, website: Website) -> None:
    page = f"<url><loc>{website.address('/a')}</loc><lastmod>2026-03-02</lastmod></url>"
    website.pages = {"/": html("Home"), "/a": html("A"), "/sitemap.xml": sitemap(page)}

    runner.run(runner.add(max_pages=1))

    assert sorted(runner.documents()) == ["/"]


def test_run_requested_during_another_run_follows_it(runner: Runner, website: Website) -> None:
    website.pages = {"/": html("Home"), "/a": html("A")}
    source = runner.add()
    asked: list[str] = []

    def ask(path: str) -> None:
        if path == "/" and not asked:
            with runner.part.database.write() as session:
                asked.append(
                    runs.ensure_later_run(session, session.get_one(Source, source.id), [website.address("/a")]).id
                )

    website.before = ask
    first = runner.run(source)
    with runner.part.database.read() as session:
        following = runs.find_open_run(session, source)
        assert following is not None

    execute(runner.parts, runner.claim(), RunControl())

    assert (asked, first.status) == ([first.id], "finished")
    assert runner.load(following.id).status == "finished"
    assert sorted(runner.documents()) == ["/", "/a"]


def test_ended_run_stores_only_some_of_the_requested_urls(runner: Runner, website: Website) -> None:
    website.pages = {f"/{number}": html(f"Page {number}") for number in range(MAX_REPORTED_URLS + 5)}
    urls = [website.address(path) for path in website.pages]

    run = runner.run(runner.add(), urls=urls)

    assert counts(run) == {"found": len(urls), "indexed": len(urls)}
    assert run.options == {"urls": urls[:MAX_REPORTED_URLS]}


def emails(runner: Runner) -> list[QueuedEmail]:
    with runner.part.database.read() as session:
        return list(session.scalars(select(QueuedEmail).order_by(QueuedEmail.id)))


def test_owner_gets_one_email_after_two_consecutive_failed_runs(runner: Runner, website: Website) -> None:
    parts = replace(runner.parts, public_url="https://search.example.com")
    source = runner.add()

    def run(status: int) -> int:
        """Run the source with this status of its start page, and return the number of emails afterwards."""
        website.pages = {"/": html("Home")} if status == 200 else {"/": Answer(b"", status)}
        runner.request(source)
        execute(parts, runner.claim(), RunControl())
        return len(emails(runner))

    assert [run(500), run(500), run(500)] == [0, 1, 1]
    assert [run(200), run(500), run(200), run(500)] == [1, 1, 1, 1]
    runner.request(source)
    with runner.part.database.write() as session:
        runs.cancel_run(session, session.get_one(Source, source.id))
    assert run(500) == 2  # A canceled run in between does not count.

    mail = emails(runner)[0]
    assert (mail.kind, mail.recipient, mail.account_id) == (
        "failed_runs", runner.tenant.email, runner.tenant.account_id,
    )  # fmt: skip
    assert mail.subject == f"The last two crawls of {source.url} failed"
    assert "for Pages failed. The server responds with status 500." in mail.text.replace("\n", " ")
    assert f"https://search.example.com/api/sites/{source.site_id}/sources/{source.id}" in mail.text


def test_failed_runs_send_no_email_without_a_mail_server(runner: Runner, website: Website) -> None:
    website.pages = {"/": Answer(b"", 500)}
    source = runner.add()

    for _ in range(2):
        runner.run(source)

    assert emails(runner) == []


def test_stored_urls_of_a_run_are_limited_by_the_plan(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier, "MIN_URLS", 4)
    make_site(website, 50)
    source = runner.add()
    runner.tenant.set_plan("pro", documents=2)

    run = runner.run(source)
    assert (run.status, run.found, run.complete) == ("finished", 20, False)

    runner.tenant.set_plan("pro", documents=100)
    assert runner.run(source).found == 51


def test_only_the_newest_runs_keep_long_lists_of_skipped_pages(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier, "MIN_URLS", 8)
    monkeypatch.setattr(frontier, "URLS_PER_DOCUMENT", 0)
    website.pages = {"/": html("Home", links=[f"/{n}" for n in range(3)])}
    source = runner.add()

    first, second, third = (runner.run(source) for _ in range(3))

    assert [len(runner.left_out(run)) for run in (first, second, third)] == [0, 3, 3]
    assert runner.load(first.id).skipped + runner.load(first.id).failed == 3


def test_stored_links_of_a_page_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MAX_LINK_BYTES", 10)

    assert outcomes.unpack_links(outcomes.pack_links(["/abc", "/def", "/ghi"])) == ("/abc", "/def")
