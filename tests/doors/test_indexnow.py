"""IndexNow: who proves that a host is theirs has its sources read what changed; nobody else has anything fetched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.models import Source, SourceRun
from app.operations.indexnow import SUBMISSIONS
from tests.answers import assert_error
from tests.api.test_sources import create, end_run
from tests.callers import ApiClient, Tenant, register_tenant
from tests.crawl.run.websites import Answer, Website, crawling_tenant, serving

KEY = "0123456789abcdef-KEY"


def text(body: str = KEY) -> Answer:
    return Answer(body.encode(), headers={"Content-Type": "text/plain"})


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        site.pages[f"/{KEY}.txt"] = text()
        yield site


@pytest.fixture
def tenant(tmp_path: Path, website: Website) -> Iterator[Tenant]:
    """A customer of an installation that crawls private addresses; the site is the website."""
    with crawling_tenant(tmp_path, website) as made:
        yield made


@pytest.fixture
def source(tenant: Tenant, website: Website) -> dict[str, Any]:
    """A source of the website whose first run has ended."""
    return add(tenant, website)


def add(tenant: Tenant, website: Website, path: str = "/", **fields: Any) -> dict[str, Any]:
    made = create(tenant, url=website.address(path), **fields)
    end_run(tenant.app, made)
    return made


class Cms:
    """Submits as a CMS does, without a key of ours."""

    def __init__(self, tenant: Tenant, website: Website):
        self._client = ApiClient(tenant.app)
        self._website = website

    def get(self, path: str = "/a", **parameters: Any) -> Any:
        return self._client.get(
            "/indexnow", query_string={"url": self._website.address(path), "key": KEY, **parameters}
        )

    def post(self, *paths: str, **members: Any) -> Any:
        body = {
            "host": self._website.url.removeprefix("http://"),
            "key": KEY,
            "urlList": [self._website.address(path) for path in paths or ("/a",)],
            **members,
        }
        return self._client.post("/indexnow", json={name: value for name, value in body.items() if value is not None})


@pytest.fixture
def cms(tenant: Tenant, website: Website) -> Cms:
    return Cms(tenant, website)


def waiting(tenant: Tenant, website: Website) -> dict[str, list[str] | None]:
    """The sources with a run that waits, by their addresses' paths, and what that is limited to."""
    with tenant.app.extensions["runtime"].database.read() as session:
        rows = session.execute(
            select(Source.url, SourceRun.options)
            .join(SourceRun, SourceRun.source_id == Source.id)
            .where(SourceRun.status == "queued")
        ).all()
    return {
        url.removeprefix(website.url): [each.removeprefix(website.url) for each in options["urls"]]
        if "urls" in options
        else None
        for url, options in rows
    }


def test_one_address_is_read_once_the_key_is_proven(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms
) -> None:
    answer = cms.get("/a?page=1")

    assert (answer.status_code, answer.get_json()) == (200, {"success": True})
    assert website.asked == [(f"/{KEY}.txt", 200)]
    assert waiting(tenant, website) == {"/": ["/a?page=1"]}


def test_many_addresses_are_read_in_one_run(tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms) -> None:
    paths = [f"/page/{number:05}" for number in range(10_000)]

    assert cms.post(*paths).status_code == 200
    assert cms.post("/page/00001").status_code == 200

    assert waiting(tenant, website) == {"/": paths}


def test_more_than_ten_thousand_addresses_are_a_bad_request(website: Website, source: dict[str, Any], cms: Cms) -> None:
    assert_error(cms.post(*["/a"] * 10_001), 400, "validation_failed")
    assert website.asked == []


def test_what_is_submitted_while_a_run_is_under_way_is_received(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms
) -> None:
    tenant.private.post(f"/api/sites/{tenant.site_id}/sources/{source['id']}/run")
    with tenant.app.extensions["runtime"].database.write() as session:
        session.scalars(select(SourceRun).where(SourceRun.status == "queued")).one().status = "running"

    answer = cms.get("/a")

    assert (answer.status_code, answer.get_json()) == (202, {"success": True})
    with tenant.app.extensions["runtime"].database.read() as session:
        assert session.scalars(select(Source.next_options)).one() == {"urls": [website.address("/a")]}


@pytest.mark.parametrize(
    "key_file",
    [
        Answer(b"", 404),
        text("another-key-0123456789"),
        text("<p>You looked for " + KEY + " and nothing was found</p>"),
        text(KEY + "\n" * 5_000),
        Answer(b"", 302, {"Location": "/elsewhere.txt"}),
        Answer(b"", 302, {"Location": "http://127.0.0.1:9/key.txt"}),
        Answer(b"", 500),
        Answer(b"\xff" * 40),
    ],
    ids=[
        "missing",
        "another key",
        "a page that repeats it",
        "too big",
        "redirect",
        "to a host",
        "error",
        "noise",
    ],
)
def test_without_the_key_nothing_is_read(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms, key_file: Answer
) -> None:
    website.pages |= {f"/{KEY}.txt": key_file, "/elsewhere.txt": text()}

    assert_error(cms.get(), 403, "insufficient_permission")
    assert_error(cms.post("/a", "/b"), 403, "insufficient_permission")

    assert waiting(tenant, website) == {}
    assert {path for path, _ in website.asked} == {f"/{KEY}.txt"}


def test_a_key_that_does_not_come_in_time_proves_nothing(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.crawl.run.visits.answering.MAX_SECONDS", 0.1)
    released = threading.Event()
    website.before = lambda path: released.wait(20)

    answer = cms.get()
    released.set()

    assert_error(answer, 403, "insufficient_permission")
    assert waiting(tenant, website) == {}


def test_a_key_among_others_and_after_a_byte_order_mark_is_found(
    website: Website, source: dict[str, Any], cms: Cms
) -> None:
    website.pages[f"/{KEY}.txt"] = text(f"\ufeffanother-key-0123456789\r\n{KEY}\r\n")

    assert cms.get().status_code == 200


def test_a_key_in_a_folder_is_for_what_is_below_it(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms
) -> None:
    website.pages = {"/catalog/k.txt": text()}
    location = website.address("/catalog/k.txt")

    assert_error(cms.get("/help/a", keyLocation=location), 422, "validation_failed")
    assert_error(cms.get("/catalog/../help/a", keyLocation=location), 422, "validation_failed")
    assert_error(cms.post("/catalog/a", "/cataloga", keyLocation=location), 422, "validation_failed")
    assert website.asked == []
    assert cms.get("/catalog/a", keyLocation=location).status_code == 200
    assert waiting(tenant, website) == {"/": ["/catalog/a"]}


@pytest.mark.parametrize("key", ["short", "x" * 129, "with space 0123", "ключ-ключ-ключ", "../../etc/passwd"])
def test_what_is_no_key_is_not_looked_for(website: Website, source: dict[str, Any], cms: Cms, key: str) -> None:
    assert_error(cms.get(key=key), 422, "validation_failed")
    assert_error(cms.post(key=key), 422, "validation_failed")
    assert website.asked == []


def test_other_hosts_are_refused_and_never_asked(tenant: Tenant, website: Website, source: dict[str, Any]) -> None:
    with serving() as other:
        other.pages[f"/{KEY}.txt"] = text()
        theirs, ours = Cms(tenant, other), Cms(tenant, website)
        there = other.address("/a")

        refused = [
            theirs.get(),
            theirs.post(),
            ours.get(keyLocation=other.address(f"/{KEY}.txt")),
            ours.get(keyLocation="http://169.254.169.254/latest/meta-data"),
            ours.get(keyLocation=website.address("/search?q=" + KEY)),
            ours.post(urlList=[website.address("/a"), there]),
            ours.post(host=other.url.removeprefix("http://"), urlList=[website.address("/a")]),
            ours.post(host="localhost", urlList=["http://localhost/a"]),
        ]

        for answer in refused:
            assert_error(answer, 422, "validation_failed")
        assert (other.asked, website.asked, waiting(tenant, website)) == ([], [], {})


@pytest.mark.parametrize(
    "members",
    [
        {"urlList": None},
        {"urlList": []},
        {"urlList": "http://example.com/"},
        {"urlList": ["no address"]},
        {"urlList": [7]},
        {"key": None},
        {"host": None},
        {"host": "exa mple"},
        {"keyLocation": "no address"},
    ],
    ids=str,
)
def test_what_cannot_be_read_is_a_bad_request(
    website: Website, source: dict[str, Any], cms: Cms, members: dict[str, Any]
) -> None:
    assert_error(cms.post(**members), 400, "validation_failed")
    assert website.asked == []


def test_a_body_or_an_address_that_is_none_is_a_bad_request(tenant: Tenant, source: dict[str, Any], cms: Cms) -> None:
    client = ApiClient(tenant.app)

    for body in (b"{", b"[" * 100_000, b"\xff"):
        assert_error(client.post("/indexnow", data=body, content_type="application/json"), 400, "invalid_json")
    huge = client.post("/indexnow", data=b" " * (4 * 1_048_576 + 1), content_type="application/json")
    assert_error(huge, 413, "payload_too_large")
    for url in ("http://[", "//x", "javascript:alert(1)"):
        assert_error(client.get("/indexnow", query_string={"url": url, "key": KEY}), 400, "validation_failed")
    assert_error(client.get("/indexnow"), 400, "validation_failed")


def test_a_host_has_so_many_submissions_a_minute(website: Website, source: dict[str, Any], cms: Cms) -> None:
    website.pages = {}
    for _ in range(SUBMISSIONS):
        assert cms.get().status_code == 403
    website.forget()

    assert_error(cms.get(), 429, "rate_limit_exceeded")
    assert website.asked == []


def test_few_keys_are_read_at_once(tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms) -> None:
    asked, released = threading.Semaphore(0), threading.Event()

    def hold(path: str) -> None:
        asked.release()
        released.wait(20)

    website.before = hold
    threads = [threading.Thread(target=cms.get) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert asked.acquire(timeout=20)

    answer = cms.get()
    released.set()
    for thread in threads:
        thread.join()

    assert_error(answer, 429, "rate_limit_exceeded")


def test_every_site_with_a_source_on_the_host_is_told_and_no_paused_one(
    tenant: Tenant, website: Website, source: dict[str, Any], cms: Cms
) -> None:
    others = [register_tenant(tenant.app, f"{name}@example.com") for name in ("bob", "eve")]
    for other, path in zip(others, ("/bob", "/eve"), strict=True):
        other.private.put(f"/sites/{other.site_id}", json={"url": website.url})
        add(other, website, path)
    others[1].private.put(f"/sites/{others[1].site_id}", json={"active": False})

    assert cms.get("/a").status_code == 200

    assert waiting(tenant, website) == {"/": ["/a"], "/bob": ["/a"]}


def test_of_a_site_the_source_that_wants_an_address_reads_it_and_a_feed_as_a_whole(
    tenant: Tenant, website: Website, cms: Cms
) -> None:
    add(tenant, website, "/feed.xml", kind="feed")
    add(tenant, website, "/docs/", include=["/docs/*"])
    add(tenant, website, "/", exclude=["/private/*", "/news/*"])
    add(tenant, website, "/sitemap.xml", kind="sitemap", exclude=["/private/*", "/news/*"])

    assert cms.post("/docs/a", "/b", "/news/c").status_code == 200

    assert waiting(tenant, website) == {"/docs/": ["/docs/a"], "/": ["/b"], "/feed.xml": None}
