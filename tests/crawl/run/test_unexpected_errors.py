"""A bug costs one page, list, or entry: the run goes on, reports it, and keeps its document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from app.crawl.fetch import robots, wordpress
from app.crawl.fetch.addresses import MAX_URL_CHARACTERS
from app.crawl.fetch.fetching import Fetcher
from app.crawl.fetch.values import Fetched
from app.crawl.run import crawl, recorder, titles
from app.crawl.run.visits.admission import Admission
from tests.crawl.conftest import UnexpectedErrors
from tests.crawl.run.conftest import Runner, counts
from tests.crawl.run.websites import Answer, Website, html

BAD = "/bad"
XML = {"Content-Type": "application/xml"}


def make_site(website: Website) -> None:
    website.pages = {"/": html("Home", links=["/a", BAD, "/b"]), "/a": html("A"), BAD: html("Bad"), "/b": html("B")}


def fail(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("a bug")


def fail_for_bad(original: Callable[..., Any], url_of: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that fails for the page ``/bad``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return fail() if url_of(*args, **kwargs).endswith(BAD) else original(*args, **kwargs)

    return call


STEPS: dict[str, tuple[Any, str, Callable[..., str], dict[str, int]]] = {
    "fetch": (Fetcher, "fetch", lambda fetcher, url, **options: url, {"page": 1}),
    "allow": (robots.RobotsRules, "allows", lambda rules, url: url, {"page": 1}),
    "decide": (crawl, "decide_page", lambda state, queued, fetched, page: queued.url, {"page": 1}),
    "write": (
        recorder,
        "put_documents",
        lambda state, documents: next((d.id for d in documents if d.id.endswith(BAD)), ""),
        {"writing": 2},
    ),
    "store": (
        recorder,
        "store_outcomes",
        lambda state, outcomes, rendered: next(
            (o.url for o in outcomes if o.url.endswith(BAD) and o.status != "failed"), ""
        ),
        {"writing": 2},
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_bug_at_one_page_costs_only_this_page_and_keeps_its_document(
    runner: Runner,
    website: Website,
    monkeypatch: pytest.MonkeyPatch,
    unexpected_errors: UnexpectedErrors,
    step: str,
) -> None:
    make_site(website)
    source = runner.add()
    runner.run(source)
    for path in website.pages:
        website.pages[path] = html(f"New {path}", links=["/a", BAD, "/b"] if path == "/" else [])
    owner, name, url_of, unexpected_errors.expected = STEPS[step]
    monkeypatch.setattr(owner, name, fail_for_bad(getattr(owner, name), url_of))

    run = runner.run(source)

    assert (run.status, counts(run)) == ("finished", {"found": 4, "indexed": 3, "failed": 1})
    assert runner.left_out(run) == {BAD: "internal_error"}
    assert {path: document["title"] for path, document in runner.documents().items()} == {
        # Documents are written before outcomes are stored.
        "/": "New /", "/a": "New /a", "/b": "New /b", BAD: "New /bad" if step == "store" else "Bad",
    }  # fmt: skip


def test_bug_in_the_rules_for_a_link_skips_only_this_link(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    make_site(website)
    monkeypatch.setattr(
        Admission, "rejection_reason", fail_for_bad(Admission.rejection_reason, lambda admission, url: url)
    )
    unexpected_errors.expected = {"page": 1}

    run = runner.run(runner.add())

    assert counts(run) == {"found": 4, "indexed": 3, "skipped": 1}
    assert runner.left_out(run) == {BAD: "internal_error"}


def test_bug_in_reading_one_sitemap_is_reported_and_nothing_is_removed(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    make_site(website)
    source = runner.add()
    runner.run(source)
    website.pages["/"] = html("Home", links=["/a"])
    website.pages["/sitemap.xml"] = Answer(b"<urlset/>", headers=XML)
    monkeypatch.setattr("app.crawl.read.reader.read_sitemap", fail)
    unexpected_errors.expected = {"list": 1}

    run = runner.run(source)

    assert run.status == "finished"
    assert runner.left_out(run) == {"/sitemap.xml": "internal_error"}
    assert set(runner.documents()) == {"/", "/a", BAD, "/b"}


def test_bug_in_reading_robots_txt_keeps_all_documents(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    make_site(website)
    source = runner.add()
    runner.run(source)
    website.pages["/robots.txt"] = Answer(b"User-agent: *")
    monkeypatch.setattr(robots.RobotsRules, "read", fail)
    unexpected_errors.expected = {"list": 1}

    run = runner.run(source)

    assert run.error is not None
    assert run.error["code"] == "internal_error"
    assert len(runner.documents()) == 4


def test_bug_at_one_title_keeps_the_other_new_titles(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    website.pages = {f"/{name}": html(f"Page {name} | Acme") for name in ("a", "b", "bad")}
    website.pages["/"] = html("Home | Acme", links=list(website.pages))
    source = runner.add()
    # The suffix is known only at the end of the run.
    monkeypatch.setattr(crawl, "learn_titles", titles.load_titles)
    monkeypatch.setattr(
        titles,
        "retitled_documents",
        fail_for_bad(
            titles.retitled_documents, lambda state, pages: next((p.url for p in pages if p.url.endswith(BAD)), "")
        ),
    )
    unexpected_errors.expected = {"writing": 2}

    run = runner.run(source)

    assert run.status == "finished"
    assert {path: document["title"] for path, document in runner.documents().items()} == {
        "/": "Home", "/a": "Page a", "/b": "Page b", BAD: "Page bad | Acme",
    }  # fmt: skip


def test_bug_that_concerns_no_page_ends_the_run(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    make_site(website)
    monkeypatch.setattr("app.crawl.run.execution.count_sections", fail)
    unexpected_errors.expected = {"run": 1}

    run = runner.run(runner.add())

    assert run.error == {"code": "internal_error", "message": "The run ended unexpectedly."}


def test_run_with_many_internal_errors_fails_as_incomplete(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    website.pages = {f"/{number}{BAD}": html(f"Page {number}") for number in range(3)}
    website.pages["/"] = html("Home", links=list(website.pages))
    monkeypatch.setattr(
        crawl, "decide_page", fail_for_bad(crawl.decide_page, lambda state, queued, fetched, page: queued.url)
    )
    unexpected_errors.expected = {"page": 3}

    run = runner.run(runner.add())

    assert run.error is not None
    assert run.error["code"] == "incomplete"


REFERENCES = ("&#xD83D;", "&#55357;", "&#x110000;", "&#xFFFFFFFFFFFF;", "&#99999999999999999999;")


@pytest.mark.parametrize("element", ["title", "link", "guid", "description", "pubDate"])
def test_character_that_does_not_exist_costs_at_most_its_entry_of_a_feed(
    runner: Runner, website: Website, element: str
) -> None:
    website.pages = {"/a": html("A"), "/b": html("B")}
    start = f"<item><link>{website.address('/a')}</link>"
    entries = "".join(f"{start}<{element}>{reference}</{element}></item>" for reference in REFERENCES)
    other = f"<item><link>{website.address('/b')}</link></item>"
    feed = f"<rss version='2.0'><channel><title>News</title>{entries}{other}</channel></rss>"
    website.pages["/feed"] = Answer(feed.encode(), headers=XML)

    run = runner.run(runner.add("/feed", kind="feed"))

    assert run.status == "finished"
    assert {"/b"} <= set(runner.documents())


def test_character_that_does_not_exist_costs_only_its_entry_of_a_sitemap(runner: Runner, website: Website) -> None:
    website.pages = {"/a": html("A"), "/b": html("B")}
    paths = ("/a", *(f"/x{reference}" for reference in REFERENCES), "/b")
    entries = "".join(f"<url><loc>{website.address(path)}</loc></url>" for path in paths)
    website.pages["/sitemap.xml"] = Answer(f"<urlset>{entries}</urlset>".encode(), headers=XML)

    run = runner.run(runner.add("/sitemap.xml", kind="sitemap"))

    assert run.status == "finished"
    assert set(runner.documents()) == {"/a", "/b"}
    assert set(runner.left_out(run).values()) == {"http_404"}


def test_lone_surrogate_in_json_costs_only_its_character(runner: Runner, website: Website) -> None:
    website.pages = {"/a": html("A"), "/b": html("B")}
    feed = (
        b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/a", "title": "\\ud83d"}, '
        b'{"url": "/b", "title": "\\ud83d\\ude00 \\\\ud83d"}]}'
    )
    website.pages["/feed"] = Answer(feed, headers={"Content-Type": "application/json"})

    runner.run(runner.add("/feed", kind="feed"))

    assert set(runner.documents()) == {"/a", "/b"}


def test_lone_surrogate_in_a_post_is_replaced() -> None:
    body = (
        rb'[{"status": "publish", "link": "/a", "title": {"rendered": "\ude00 \\ude00"}, "content": {"rendered": "x"}}]'
    )
    (post,) = wordpress.read_posts(Fetched("https://www.example.com/", 200, {}, body))
    assert isinstance(post, wordpress.Post)
    assert post.title == "\N{REPLACEMENT CHARACTER} \\ude00"


def test_bug_at_one_post_costs_only_this_post(
    runner: Runner, website: Website, monkeypatch: pytest.MonkeyPatch, unexpected_errors: UnexpectedErrors
) -> None:
    items = [
        {"status": "publish", "link": path, "title": {"rendered": path}, "content": {"rendered": f"Text of {path}."}}
        for path in ("/a", BAD)
    ]
    website.pages["/blog/"] = html("Blog")
    query = "page=1&per_page=25&orderby=id&order=asc&_embed=author%2Cwp%3Aterm"
    fields = "id%2Ctype%2Cstatus%2Clink%2Cdate_gmt%2Cmodified_gmt%2Ctitle%2Ccontent%2Cexcerpt%2C_links%2C_embedded"
    for type_, body in (("posts", items), ("pages", [])):
        website.pages[f"/blog/wp-json/wp/v2/{type_}?{query}&_fields={fields}"] = Answer(orjson.dumps(body))
    monkeypatch.setattr(wordpress, "_post", fail_for_bad(wordpress._post, lambda item, base: item["link"]))
    unexpected_errors.expected = {"page": 1}

    run = runner.run(runner.add("/blog/", kind="wordpress"))

    assert run.status == "finished"
    assert set(runner.documents()) == {"/a"}
    assert runner.left_out(run) == {BAD: "internal_error"}


def test_too_long_url_is_not_stored(runner: Runner, website: Website) -> None:
    long = "/" + "é" * (MAX_URL_CHARACTERS // 4)
    website.pages = {"/a": html("A"), "/moved": Answer(status=301, headers={"Location": "/" + "x" * 3000})}
    entries = "".join(f"<item><link>{website.url}{path}</link></item>" for path in ("/a", long, "/moved"))
    website.pages["/feed"] = Answer(f"<rss version='2.0'><channel>{entries}</channel></rss>".encode(), headers=XML)

    run = runner.run(runner.add("/feed", kind="feed"))

    assert (run.status, counts(run)) == ("finished", {"found": 2, "indexed": 1, "skipped": 1})
