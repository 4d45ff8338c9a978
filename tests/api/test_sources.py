"""Sources: create, list, show, change, delete, run, cancel, report."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select, update

from app.crawl.sources import removal
from app.models import EngineTask, RunPage, Source, SourcePage, SourceRun, StoredDocument
from tests.callers import Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
URL = "https://www.example.com/"
RECORD = {
    *("id", "site_id", "kind", "url", "schedule", "include", "exclude", "selectors", "fields", "max_pages"),
    *("max_depth", "render", "status", "last_run", "created_at", "updated_at", "hook_url"),
}
RUN = {
    *("id", "status", "started_at", "finished_at", "found", "indexed", "unchanged", "removed", "failed", "skipped"),
    *("rendered", "error"),
}
GONE = "src_0000000000000000"


def sources_of(tenant: Tenant) -> str:
    return f"/api/sites/{tenant.site_id}/sources"


def path_of(source: dict[str, Any], action: str = "") -> str:
    return f"/api/sites/{source['site_id']}/sources/{source['id']}{action}"


def create(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    body = {"kind": "website", "url": URL, **fields}
    source: dict[str, Any] = assert_ok(tenant.private.post(sources_of(tenant), json=body), 201)["source"]
    return source


def end_run(app: Flask, source: dict[str, Any], status: str = "finished", **values: Any) -> None:
    """End the newest run of a source."""
    with app.extensions["runtime"].database.write() as session:
        session.execute(
            update(SourceRun)
            .where(SourceRun.source_id == source["id"], SourceRun.status.in_(("queued", "running")))
            .values(status=status, **values)
        )


def add_documents(tenant: Tenant, source: dict[str, Any] | None, *numbers: int) -> None:
    """Add documents as a run of the source would, or as the API would if `source` is `None`."""
    tenant.index(*(page(number) for number in numbers))
    if source is not None:
        with tenant.app.extensions["runtime"].database.write() as session:
            ids = [f"page-{number}" for number in numbers]
            session.execute(
                update(StoredDocument)
                .where(StoredDocument.site_id == tenant.site_id, StoredDocument.id.in_(ids))
                .values(source=source["id"])
            )


def document_sources(tenant: Tenant) -> dict[str, str]:
    """Map the IDs of the tenant's documents to their sources."""
    with tenant.app.extensions["runtime"].database.read() as session:
        rows = session.execute(
            select(StoredDocument.id, StoredDocument.source).where(
                StoredDocument.site_id == tenant.site_id, StoredDocument.body.is_not(None)
            )
        )
        return {row.id: row.source for row in rows}


def test_created_source_has_the_expected_record_and_queues_its_first_run(tenant: Tenant) -> None:
    response = tenant.browser.post(sources_of(tenant), json={"kind": "website", "url": " https://WWW.example.com "})

    source = assert_ok(response, 201)["source"]
    assert response.headers["Location"] == path_of(source)
    assert set(source) == RECORD
    assert source == {
        **source,
        "site_id": tenant.site_id,
        "kind": "website",
        "url": "https://www.example.com/",
        "schedule": "none",
        "include": [],
        "exclude": [],
        "selectors": {},
        "fields": [],
        "max_pages": None,
        "max_depth": None,
        "render": "auto",
        "status": "queued",
    }
    assert re.fullmatch("src_[0-9a-f]{16}", source["id"])
    assert set(source["last_run"]) == RUN
    assert source["last_run"] == {
        **dict.fromkeys(("found", "indexed", "unchanged", "removed", "failed", "skipped", "rendered"), 0),
        "id": source["last_run"]["id"],
        "status": "queued",
        "started_at": None,
        "finished_at": None,
        "error": None,
    }
    assert assert_ok(tenant.private.get(path_of(source)))["source"] == source


def settings_of(tenant: Tenant) -> dict[str, Any]:
    answer = assert_ok(tenant.private.get(f"/sites/{tenant.site_id}/search-settings"))
    settings: dict[str, Any] = answer["settings"]
    return settings


def test_first_source_of_a_new_site_sets_rank_field(tenant: Tenant) -> None:
    assert settings_of(tenant)["rank_field"] is None
    tenant.find("warm")

    create(tenant)

    assert settings_of(tenant)["rank_field"] == "rank"
    tenant.index(page(1, title="Tea"), page(2, title="Tea", rank=3))
    assert tenant.found_ids("tea") == ["page-2", "page-1"]


def test_first_source_keeps_rank_field_of_sites_with_documents_or_settings(tenant: Tenant) -> None:
    tenant.index(page(1))
    create(tenant)
    assert settings_of(tenant)["rank_field"] is None

    other = register_tenant(tenant.app, "other@example.com")
    assert_ok(other.private.put(f"/sites/{other.site_id}/search-settings", json={"language": "de"}))
    create(other)
    assert settings_of(other)["rank_field"] is None


def test_source_accepts_every_option(tenant: Tenant) -> None:
    fields = {
        "kind": "sitemap",
        "url": "https://docs.example.com:8443/sitemap.xml?v=1",
        "schedule": "weekly",
        "include": ["/docs/*", "*.html"],
        "exclude": ["*?print=*"],
        "selectors": {"content": "main", "remove": ".advert, nav"},
        "fields": [
            {"path": "/{lang}/docs/v{version}/*", "set": {"version": "{version}", "product": "cli"}},
            {"name": "badges", "selector": ".badge", "attribute": "title", "all": True},
            {"name": "price", "json_ld": "offers.price"},
            {"name": "line", "meta": "product-line"},
        ],
        "max_pages": 500,
        "max_depth": 0,
        "render": "never",
    }

    source = create(tenant, **fields, headers={"Authorization": "Basic c3RhZ2luZzpzZWNyZXQ="})

    assert {name: source[name] for name in fields} == fields


def test_source_that_always_renders_is_rejected_without_a_browser(tenant: Tenant) -> None:
    source = create(tenant)
    message = "render requires a browser, which this service does not have"
    problem = {"field": "render", "code": "browser_unavailable", "message": message}
    fields = {"kind": "website", "url": "https://www.example.com/app", "render": "always"}
    for answer in (
        tenant.private.put(path_of(source), json={"render": "always"}),
        tenant.private.post(sources_of(tenant), json=fields),
    ):
        assert answer.status_code == 400
        assert answer.get_json() == {"error": "browser_unavailable", "message": message, "details": [problem]}
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["render"] == "auto"


def test_source_headers_are_stored_but_never_returned(tenant: Tenant) -> None:
    secret = "Basic c3RhZ2luZzpzZWNyZXQ="
    source = create(tenant, headers={"Authorization": secret})
    changed = assert_ok(tenant.browser.put(path_of(source), json={"headers": {"Cookie": secret}}))["source"]

    answers = [
        tenant.browser.get(path, headers={"Accept": kind}).get_data(as_text=True)
        for path in (sources_of(tenant), path_of(source), f"/sites/{tenant.site_id}/sources/{source['id']}/edit")
        for kind in ("application/json", "text/html")
    ]

    assert set(changed) == RECORD
    assert not any(secret in answer for answer in answers)
    with tenant.app.extensions["runtime"].database.read() as session:
        assert session.get_one(Source, source["id"]).headers == {"Cookie": secret}


LONG_URL = URL + "x" * 2048
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"kind": None}, "kind"),
    ({"kind": "gopher"}, "kind"),
    ({"url": "example"}, "url"),
    ({"url": "ftp://www.example.com/"}, "url"),
    ({"url": "https://user:secret@www.example.com/"}, "url"),
    ({"url": LONG_URL}, "url"),
    ({"url": None}, "url"),
    ({"url": 1}, "url"),
    ({"schedule": "monthly"}, "schedule"),
    ({"include": "/docs/*"}, "include"),
    ({"include": ["docs/*"]}, "include[0]"),
    ({"include": ["/a", ""]}, "include[1]"),
    ({"include": ["/a b"]}, "include[0]"),
    ({"include": ["/*"] * 51}, "include"),
    ({"exclude": ["/" + "x" * 500]}, "exclude[0]"),
    ({"exclude": [1]}, "exclude[0]"),
    ({"selectors": "main"}, "selectors"),
    ({"selectors": {"text": "main"}}, "selectors.text"),
    ({"selectors": {"content": 1}}, "selectors.content"),
    ({"selectors": {"content": "main >"}}, "selectors.content"),
    ({"selectors": {"remove": "x" * 501}}, "selectors.remove"),
    ({"fields": {}}, "fields"),
    ({"fields": [{"name": "a", "meta": "a"}] * 51}, "fields"),
    ({"fields": ["a"]}, "fields[0]"),
    ({"fields": [{}]}, "fields[0]"),
    ({"fields": [{"name": "a"}]}, "fields[0]"),
    ({"fields": [{"name": "a", "meta": "a", "selector": "b"}]}, "fields[0]"),
    ({"fields": [{"path": "/*", "set": {"a": "b"}, "name": "a"}]}, "fields[0]"),
    ({"fields": [{"path": "/*"}]}, "fields[0].set"),
    ({"fields": [{"set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"meta": "a"}]}, "fields[0].name"),
    ({"fields": [{"name": "a", "meta": "a", "attribute": "b"}]}, "fields[0].attribute"),
    ({"fields": [{"name": "a", "meta": "a", "every": True}]}, "fields[0].every"),
    ({"fields": [{"name": "a", "meta": "a", "all": "yes"}]}, "fields[0].all"),
    ({"fields": [{"name": "a", "meta": None}]}, "fields[0].meta"),
    ({"fields": [{"name": "a", "meta": "x" * 201}]}, "fields[0].meta"),
    ({"fields": [{"name": "a", "selector": ""}]}, "fields[0].selector"),
    ({"fields": [{"name": "a", "meta": "a"}, {"name": "b", "selector": "main >"}]}, "fields[1].selector"),
    ({"fields": [{"name": "a b", "meta": "a"}]}, "fields[0].name"),
    ({"fields": [{"name": "title", "meta": "a"}]}, "fields[0].name"),
    ({"fields": [{"path": "docs/*", "set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"path": "/{a", "set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"path": "/{a}{b}", "set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"path": "/{a}/{a}", "set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"path": "/{a-é}/", "set": {"a": "b"}}]}, "fields[0].path"),
    ({"fields": [{"path": "/*", "set": {}}]}, "fields[0].set"),
    ({"fields": [{"path": "/*", "set": []}]}, "fields[0].set"),
    ({"fields": [{"path": "/*", "set": {f"f{number}": "x" for number in range(21)}}]}, "fields[0].set"),
    ({"fields": [{"path": "/*", "set": {"id": "b"}}]}, "fields[0].set.id"),
    ({"fields": [{"path": "/*", "set": {"a": 1}}]}, "fields[0].set.a"),
    ({"fields": [{"path": "/*", "set": {"a": " "}}]}, "fields[0].set.a"),
    ({"fields": [{"path": "/*", "set": {"a": "x" * 1001}}]}, "fields[0].set.a"),
    ({"fields": [{"path": "/{b}", "set": {"a": "{c}"}}]}, "fields[0].set.a"),
    ({"max_pages": 0}, "max_pages"),
    ({"max_pages": "10"}, "max_pages"),
    ({"max_depth": -1}, "max_depth"),
    ({"render": "sometimes"}, "render"),
    ({"headers": []}, "headers"),
    ({"headers": {f"X-{number}": "x" for number in range(6)}}, "headers"),
    ({"headers": {"X-A": "1", "x-a": "2"}}, "headers"),
    ({"headers": {"Host": "intranet"}}, "headers.Host"),
    ({"headers": {"content-length": "0"}}, "headers.content-length"),
    ({"headers": {"Transfer-Encoding": "chunked"}}, "headers.Transfer-Encoding"),
    ({"headers": {"Connection": "close"}}, "headers.Connection"),
    ({"headers": {"X-A": "1\r\nHost: intranet"}}, "headers.X-A"),
    ({"headers": {"X-A": "1\nX-B: 2"}}, "headers.X-A"),
    ({"headers": {"X-A\r\n": "1"}}, "headers.X-A\r\n"),
    ({"headers": {"": "1"}}, "headers."),
    ({"headers": {"X A": "1"}}, "headers.X A"),
    ({"headers": {"X-A": ""}}, "headers.X-A"),
    ({"headers": {"X-A": 1}}, "headers.X-A"),
    ({"headers": {"X-A": "é"}}, "headers.X-A"),
    ({"headers": {"X-A": "x" * 2001}}, "headers.X-A"),
    ({"scedule": "daily"}, "scedule"),
    ({"id": GONE}, "id"),
]


@pytest.mark.parametrize(("fields", "field"), MISTAKES)
def test_source_with_invalid_fields_is_rejected(ann: Tenant, fields: dict[str, Any], field: str) -> None:
    body = {"kind": "website", "url": URL, **fields}
    assert_error(ann.browser.post(sources_of(ann), json=body), 400, "validation_failed", field=field)
    assert ann.browser.get(sources_of(ann)).get_json()["total"] == 0


def test_validation_errors_do_not_repeat_header_values(ann: Tenant) -> None:
    body = {"kind": "website", "url": URL, "headers": {"X-A": "top\nsecret"}}
    assert "secret" not in ann.browser.post(sources_of(ann), json=body).get_data(as_text=True)


@pytest.mark.parametrize(
    "url",
    ["https://www.example.com/", "http://www.example.com/", "https://example.com/", "https://a.b.example.com:8080/x"],
)
def test_source_url_may_be_on_the_sites_host_or_domain(tenant: Tenant, url: str) -> None:
    assert create(tenant, url=url)["url"] == url


@pytest.mark.parametrize(
    "url", ["https://example.org/", "https://example.com.evil.org/", "https://myexample.com/", "https://com/",
            "https://www.example.com@evil.org/", "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/"],
)  # fmt: skip
def test_source_url_on_another_domain_is_rejected(ann: Tenant, url: str) -> None:
    answer = ann.browser.post(sources_of(ann), json={"kind": "website", "url": url})
    assert_error(answer, 400, "validation_failed", field="url")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://10.1.2.3:8080/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/"]
)
def test_source_url_on_a_private_network_is_rejected(ann: Tenant, url: str) -> None:
    site = assert_ok(ann.browser.post("/sites", json={"name": "Intranet", "url": url}), 201)["site"]
    answer = ann.browser.post(f"/api/sites/{site['id']}/sources", json={"kind": "website", "url": url})
    detail = assert_error(answer, 400, "validation_failed", field="url")
    assert "private network" in str(detail) + answer.get_data(as_text=True)


def test_duplicate_source_of_the_same_kind_and_url_is_rejected(tenant: Tenant) -> None:
    create(tenant)
    create(tenant, kind="wordpress")
    twice = {"kind": "website", "url": URL + "?utm_source=mail#top"}
    assert_error(tenant.browser.post(sources_of(tenant), json=twice), 400, "validation_failed", field="url")
    other = create(tenant, url=URL + "other")
    assert_error(tenant.browser.put(path_of(other), json={"url": URL}), 400, "validation_failed", field="url")
    assert_ok(tenant.browser.put(path_of(other), json={"url": URL + "other"}))


def test_source_above_the_limit_of_twenty_is_rejected(tenant: Tenant) -> None:
    for number in range(20):
        create(tenant, url=f"{URL}{number}")
    answer = tenant.browser.post(sources_of(tenant), json={"kind": "website", "url": URL})
    assert_error(answer, 403, "source_limit_reached")
    tenant.browser.delete(path_of(tenant.browser.get(sources_of(tenant)).get_json()["sources"][0]))
    create(tenant)


def test_source_list_is_oldest_first_and_paginated(tenant: Tenant) -> None:
    made = [create(tenant, url=f"{URL}{number}") for number in range(3)]

    everything = assert_ok(tenant.private.get(sources_of(tenant)))
    last = assert_ok(tenant.private.get(f"{sources_of(tenant)}?limit=1&offset=2"))

    assert everything == {"sources": made, "total": 3, "limit": 20, "offset": 0}
    assert last == {"sources": made[2:], "total": 3, "limit": 1, "offset": 2}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_omitted_fields_stay_unchanged_on_update(tenant: Tenant, method: str) -> None:
    source = create(tenant, schedule="daily", include=["/a/*"], max_pages=5, headers={"X-A": "1"})

    changed = assert_ok(tenant.browser.call(method, path_of(source), json={"include": [], "max_pages": None}))["source"]

    assert changed == {**source, "include": [], "max_pages": None, "updated_at": changed["updated_at"]}
    with tenant.app.extensions["runtime"].database.read() as session:
        assert session.get_one(Source, source["id"]).headers == {"X-A": "1"}


@pytest.mark.parametrize(
    ("body", "field"), [({"kind": "feed"}, "kind"), ({}, "body"), ({"url": "https://example.org/"}, "url")]
)
def test_source_update_with_invalid_fields_is_rejected(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    source = create(tenant)
    assert_error(tenant.browser.put(path_of(source), json=body), 400, "validation_failed", field=field)
    assert_ok(tenant.browser.put(path_of(source), json={"kind": "website"}))


def test_schedule_determines_the_next_run(tenant: Tenant) -> None:
    def next_run_at() -> datetime | None:
        with tenant.app.extensions["runtime"].database.read() as session:
            return session.get_one(Source, source["id"]).next_run_at

    with time_machine.travel(NOON, tick=False):
        source = create(tenant, schedule="daily")
        first = next_run_at()
        assert first is not None
        assert NOON < first <= NOON + timedelta(days=1)
        tenant.private.put(path_of(source), json={"max_pages": 5})
        assert next_run_at() == first
        tenant.private.put(path_of(source), json={"schedule": "hourly"})
        sooner = next_run_at()
        assert sooner is not None
        assert NOON < sooner <= NOON + timedelta(hours=1)
        tenant.private.put(path_of(source), json={"schedule": "none"})
        assert next_run_at() is None


@pytest.mark.parametrize(
    ("change", "is_read_anew"),
    [
        ({"selectors": {"content": "main"}}, True),
        ({"fields": [{"name": "a", "meta": "a"}]}, True),
        ({"headers": {"X-A": "1"}}, True),
        ({"schedule": "daily"}, False),
    ],
)
def test_changing_extraction_options_refetches_pages(
    tenant: Tenant, change: dict[str, Any], is_read_anew: bool
) -> None:
    source = create(tenant)
    database = tenant.app.extensions["runtime"].database
    with database.write() as session:
        session.add(SourcePage(source_id=source["id"], url=URL, etag='"1"', digest=b"1", fetched_at=NOON))

    assert_ok(tenant.browser.put(path_of(source), json=change))

    with database.read() as session:
        assert (session.get_one(SourcePage, (source["id"], URL)).etag is None) is is_read_anew


def test_run_request_returns_the_queued_run_or_queues_another(tenant: Tenant) -> None:
    source = create(tenant)

    again = assert_ok(tenant.private.post(path_of(source, "/run")))
    end_run(tenant.app, source)
    new = assert_ok(tenant.private.post(path_of(source, "/run"), json={"max_removed_percent": 100}))

    assert again["success"] is True
    assert again["run"] == source["last_run"]
    assert new["run"]["id"] != source["last_run"]["id"]
    with tenant.app.extensions["runtime"].database.read() as session:
        assert session.get_one(SourceRun, new["run"]["id"]).options == {"max_removed_percent": 100}


def test_run_can_be_limited_to_urls(tenant: Tenant) -> None:
    source = create(tenant)
    end_run(tenant.app, source)
    run = assert_ok(tenant.private.post(path_of(source, "/run"), json={"urls": [URL + "a#x", "http://example.com/b"]}))
    with tenant.app.extensions["runtime"].database.read() as session:
        options = session.get_one(SourceRun, run["run"]["id"]).options
    assert options == {"urls": [URL + "a", "http://example.com/b"]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"urls": []}, "urls"),
        ({"urls": [URL] * 101}, "urls"),
        ({"urls": [URL, "https://example.org/"]}, "urls[1]"),
        ({"urls": "x"}, "urls"),
        ({"max_removed_percent": 101}, "max_removed_percent"),
        ({"max_removed": 1}, "max_removed"),
    ],
)
def test_run_with_invalid_options_is_rejected(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    source = create(tenant)
    assert_error(tenant.private.post(path_of(source, "/run"), json=body), 400, "validation_failed", field=field)


def test_canceling_a_queued_run_stops_it_and_a_second_time_returns_404(tenant: Tenant) -> None:
    source = create(tenant)

    cancelled = assert_ok(tenant.private.post(path_of(source, "/cancel")))

    assert cancelled["run"]["status"] == "cancelled"
    assert cancelled["run"]["finished_at"] is not None
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["status"] == "idle"
    assert_error(tenant.private.post(path_of(source, "/cancel")), 404, "run_not_found")


def test_source_status_follows_its_newest_run(tenant: Tenant) -> None:
    source = create(tenant)
    end_run(tenant.app, source, "failed", error={"code": "internal_error", "message": "It broke."})
    shown = assert_ok(tenant.private.get(path_of(source)))["source"]
    assert shown["status"] == "failed"
    assert shown["last_run"]["error"] == {"code": "internal_error", "message": "It broke."}
    tenant.private.post(path_of(source, "/run"))
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["status"] == "queued"
    end_run(tenant.app, source)
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["status"] == "idle"


def test_run_report_lists_skipped_and_failed_pages_and_remarks(tenant: Tenant) -> None:
    source = create(tenant)
    run = source["last_run"]["id"]
    pages = [("a", "indexed", None), ("b", "skipped", "robots"), ("c", "failed", "http_500"), ("d", "unchanged", None)]
    pages += [("e", "indexed", "wrong_canonical"), ("f", "unchanged", "wrong_canonical")]
    with tenant.app.extensions["runtime"].database.write() as session:
        for position, (path, status, reason) in enumerate(pages):
            session.add(RunPage(run_id=run, url=URL + path, position=position, depth=1, status=status, reason=reason))
    end_run(tenant.app, source, found=6, indexed=2, unchanged=2, skipped=1, failed=1)

    report = assert_ok(tenant.private.get(path_of(source, f"/runs/{run}?limit=1")))
    rest = assert_ok(tenant.private.get(path_of(source, f"/runs/{run}?offset=1")))
    listed = assert_ok(tenant.private.get(path_of(source, "/runs")))

    assert report["pages"] == [{"url": URL + "b", "reason": "robots"}]
    assert (report["total"], report["limit"], report["offset"]) == (4, 1, 0)
    assert rest["pages"] == [
        {"url": URL + "c", "reason": "http_500"},
        {"url": URL + "e", "reason": "wrong_canonical", "indexed": True},
        {"url": URL + "f", "reason": "wrong_canonical", "indexed": True},
    ]
    assert report["run"]["found"] == 6
    assert listed == {"runs": [report["run"]], "total": 1, "limit": 20, "offset": 0}


def test_another_accounts_sources_return_404(ann: Tenant, eve: Tenant) -> None:
    source = create(ann)
    run = source["last_run"]["id"]
    hers = create(eve)
    for theirs in (path_of(source), path_of({**source, "site_id": eve.site_id})):
        code = "site_not_found" if f"/sites/{ann.site_id}/" in theirs else "source_not_found"
        for method, action in [
            ("GET", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"), ("POST", "/cancel"),
            ("GET", "/runs"), ("GET", f"/runs/{run}"),
        ]:  # fmt: skip
            body = {"json": {"schedule": "daily"}} if method in ("PUT", "PATCH") else {}
            assert_error(eve.private.call(method, theirs + action, **body), 404, code)
    assert_error(eve.private.get(path_of(hers, f"/runs/{run}")), 404, "run_not_found")
    assert_error(eve.private.get(sources_of(ann)), 404, "site_not_found")
    assert_error(eve.private.post(sources_of(ann), json={"kind": "website", "url": URL}), 404, "site_not_found")
    assert_error(eve.private.post(sources_of(ann) + "/preview", json={"url": URL}), 404, "site_not_found")
    assert assert_ok(ann.private.get(path_of(source)))["source"] == source
    ann.private.delete(path_of(source))


@pytest.mark.parametrize("identifier", [GONE, "src_", "x" * 500, "%00", "preview", "a%2Fb"])
def test_unknown_source_or_run_returns_404(ann: Tenant, identifier: str) -> None:
    source = create(ann, url=URL + "there")

    assert ann.private.get(f"{sources_of(ann)}/{identifier}").status_code == 404
    assert ann.private.get(path_of(source, f"/runs/{identifier}")).status_code == 404
    ann.private.delete(path_of(source))


@pytest.mark.parametrize("kind", ["public", "search"])
def test_public_and_search_keys_cannot_list_sources(ann: Tenant, kind: str) -> None:
    assert_error(ann.client(kind).get(sources_of(ann)), 403, "insufficient_permission")


def test_paused_site_rejects_new_sources_and_runs(tenant: Tenant) -> None:
    source = create(tenant)
    end_run(tenant.app, source)
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    new = {"kind": "feed", "url": URL}
    assert_error(tenant.browser.post(sources_of(tenant), json=new), 403, "site_inactive")
    assert_error(tenant.browser.post(path_of(source, "/run")), 403, "site_inactive")
    assert_ok(tenant.browser.put(path_of(source), json={"schedule": "daily"}))


def test_deleting_a_source_removes_its_documents(tenant: Tenant) -> None:
    source = create(tenant)
    add_documents(tenant, None, 1)
    add_documents(tenant, source, 2, 3)

    assert_ok(tenant.private.delete(path_of(source)))

    assert_error(tenant.private.get(path_of(source)), 404, "source_not_found")
    assert document_sources(tenant) == {"page-1": "api"}
    assert tenant.found_ids("content") == ["page-1"]
    site = tenant.browser.get(f"/sites/{tenant.site_id}").get_json()["site"]
    assert site["indexed_pages"] == 1


@pytest.mark.parametrize("place", ["query", "body"])
def test_deleting_a_source_can_keep_its_documents(tenant: Tenant, place: str) -> None:
    source = create(tenant)
    add_documents(tenant, source, 1, 2)

    conflict = tenant.private.delete(path_of(source) + "?keep_documents=false", json={"keep_documents": True})
    assert_error(conflict, 400, "validation_failed", field="keep_documents")
    options: dict[str, Any] = {"json": {"keep_documents": True}} if place == "body" else {}
    query = "?keep_documents=true" if place == "query" else ""
    assert_ok(tenant.private.delete(path_of(source) + query, **options))

    assert document_sources(tenant) == {"page-1": "api", "page-2": "api"}
    assert len(tenant.found_ids("content")) == 2


def test_deleted_source_can_be_added_again(tenant: Tenant) -> None:
    source = create(tenant)
    assert_ok(tenant.private.delete(path_of(source)))
    assert create(tenant)["id"] != source["id"]


def test_interrupted_source_deletion_is_continued_by_jobs(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "STEP", 2)
    monkeypatch.setattr(removal, "WORK_SECONDS", 0.0)
    source = create(tenant)
    add_documents(tenant, source, 1, 2, 3, 4, 5)

    assert_ok(tenant.private.delete(path_of(source)))
    left = [len(document_sources(tenant))]
    for _ in range(2):
        tenant.app.extensions["jobs"].run_all()
        left.append(len(document_sources(tenant)))

    assert left == [3, 1, 0]


def test_documents_written_after_source_deletion_are_removed_later(tenant: Tenant) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        source = create(tenant)
        assert_ok(tenant.private.delete(path_of(source)))
        add_documents(tenant, source, 1)
        clock.shift(removal.LATE_WRITES)
        tenant.app.extensions["jobs"].run_all()

        assert document_sources(tenant) == {}
        with tenant.app.extensions["runtime"].database.read() as session:
            assert session.scalars(select(EngineTask)).all() == []


def test_documents_of_a_deleted_source_are_removed_after_a_paused_site_resumes(tenant: Tenant) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        source = create(tenant)
        add_documents(tenant, source, 1)
        tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False})
        assert_ok(tenant.private.delete(path_of(source)))
        assert len(document_sources(tenant)) == 1
        tenant.private.put(f"/sites/{tenant.site_id}", json={"active": True})
        clock.shift(removal.PAUSED_SITE_RETRY)
        tenant.app.extensions["jobs"].run_all()
        assert document_sources(tenant) == {}


def test_purging_a_site_deletes_its_sources_and_their_pages(tenant: Tenant, stranger: Tenant) -> None:
    source, other = create(tenant), create(stranger)
    database = tenant.app.extensions["runtime"].database
    with database.write() as session:
        for made in (source, other):
            session.add(SourcePage(source_id=made["id"], url=URL, fetched_at=NOON))

    assert_error(stranger.private.delete(f"/sites/{tenant.site_id}"), 404, "site_not_found")
    with database.read() as session:
        assert len(session.scalars(select(SourcePage)).all()) == 2
    assert_ok(tenant.browser.delete(f"/sites/{tenant.site_id}?purge=true"))

    with database.read() as session:
        assert [row.source_id for row in session.scalars(select(SourcePage))] == [other["id"]]
        assert [row.id for row in session.scalars(select(Source))] == [other["id"]]


def test_deleting_a_source_removes_all_its_page_records_in_steps(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PAGE_STEP", 2)
    source, other = create(tenant), create(tenant, kind="feed")
    database = tenant.app.extensions["runtime"].database
    with database.write() as session:
        for made in (source, other):
            for number in range(5):
                url = f"{URL}{number}"
                session.add(SourcePage(source_id=made["id"], url=url, fetched_at=NOON))
                session.add(RunPage(run_id=made["last_run"]["id"], url=url, position=number, depth=0, status="waiting"))

    assert_ok(tenant.private.delete(path_of(source)))

    with database.read() as session:
        assert {row.source_id for row in session.scalars(select(SourcePage))} == {other["id"]}
        assert {row.run_id for row in session.scalars(select(RunPage))} == {other["last_run"]["id"]}


def test_source_url_may_be_on_an_additional_domain_of_the_site(tenant: Tenant) -> None:
    wanted = {"kind": "website", "url": "https://docs.blog.example.org/"}
    rejected = tenant.private.post(sources_of(tenant), json=wanted)
    assert_error(rejected, 400, "validation_failed", field="url")
    assert_ok(
        tenant.private.put(f"/sites/{tenant.site_id}", json={"domains": ["https://example.org/", "http://10.1.1.1"]})
    )

    source = create(tenant, **wanted)
    create(tenant, url=URL)
    elsewhere = tenant.private.post(sources_of(tenant), json={**wanted, "url": "https://example.net/"})
    assert_error(elsewhere, 400, "validation_failed", field="url")
    message = elsewhere.get_json()["details"][0]["message"]
    assert "on example.org or one of its subdomains, or on the site’s host, 10.1.1.1" in message

    # Existing sources stay when the domain is removed; new ones are rejected again.
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"domains": []}))
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["url"] == wanted["url"]
    rejected = tenant.private.post(sources_of(tenant), json={**wanted, "url": "https://example.org/"})
    assert_error(rejected, 400, "validation_failed", field="url")


def import_config(tenant: Tenant, config: Any, form: str = "docsearch") -> Any:
    return tenant.private.post(f"/api/sites/{tenant.site_id}/import-config?format={form}", json=config)


def test_imported_docsearch_configuration_creates_audited_sources(tenant: Tenant) -> None:
    config = {
        "index_name": "any",
        "start_urls": [f"{URL}docs/", f"{URL}faq/"],
        "selectors": {"lvl0": "h1", "text": "p"},
    }

    answer = assert_ok(import_config(tenant, config), 201)

    listed = assert_ok(tenant.private.get(sources_of(tenant)))["sources"]
    assert answer == {"success": True, "sources": listed, "ignored": ["index_name"]}
    assert [(source["url"], source["status"]) for source in listed] == [
        (f"{URL}docs/", "queued"), (f"{URL}faq/", "queued"),
    ]  # fmt: skip
    entries = assert_ok(tenant.browser.get("/api/audit-log"))["entries"]
    created = [entry["object"]["id"] for entry in entries if entry["object"]["kind"] == "source"]
    assert created == [source["id"] for source in reversed(listed)]


@pytest.mark.parametrize(
    ("config", "status", "code", "field"),
    [
        ([f"{URL}a/", "https://elsewhere.test/"], 400, "validation_failed", "start_urls[1].url"),
        ([f"{URL}{number}/" for number in range(21)], 403, "source_limit_reached", None),
        ([f"{URL}{'long' * 200}/"], 400, "validation_failed", "start_urls[0].include[0]"),
        ([f"{URL}taken/"], 400, "validation_failed", "start_urls[0].url"),
    ],
)
def test_invalid_configuration_import_creates_no_sources(
    tenant: Tenant, config: list[str], status: int, code: str, field: str | None
) -> None:
    create(tenant, url=f"{URL}taken/")
    assert_error(import_config(tenant, {"start_urls": config}), status, code, **({"field": field} if field else {}))
    assert assert_ok(tenant.private.get(sources_of(tenant)))["total"] == 1


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (f"https://ann:secret@{URL.removeprefix('https://')}", "invalid_url"),
        (f"https:/ann@{URL.removeprefix('https://')}", "invalid_url"),
        ("http://127.0.0.1/", "other_host"),
        ("http://2130706433/", "other_host"),
        ("http://169.254.169.254/latest/", "other_host"),
        ("https://www.example.com.evil.test/", "other_host"),
        ("file:///etc/passwd", "invalid_url"),
        ("https://.*/", "invalid_url"),
    ],
)
def test_configuration_import_rejects_urls_outside_the_site(tenant: Tenant, address: str, code: str) -> None:
    body = assert_error(import_config(tenant, {"start_urls": [f"{URL}a/", address]}), 400, "validation_failed")
    assert [(each["field"], each["code"]) for each in body["details"]] == [("start_urls[1].url", code)]
    assert assert_ok(tenant.private.get(sources_of(tenant)))["total"] == 0


def test_source_url_with_credentials_is_rejected_in_every_notation(tenant: Tenant) -> None:
    for address in (
        "https://ann@www.example.com/",
        "https://:secret@www.example.com/",
        r"https://\ann@www.example.com",
    ):
        rejected = tenant.private.post(sources_of(tenant), json={"kind": "website", "url": address})
        body = assert_error(rejected, 400, "validation_failed", field="url")
        assert "user name" in body["message"]


def test_configuration_import_rejects_unknown_formats_and_non_objects(tenant: Tenant) -> None:
    assert_error(import_config(tenant, {}, "sphinx"), 400, "validation_failed", field="format")
    assert_error(import_config(tenant, []), 400, "validation_failed", field="body")


@pytest.mark.parametrize("answering", ["https", "http"])
def test_source_url_without_a_scheme_gets_the_responding_scheme(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, answering: str
) -> None:
    asked: list[str] = []

    def answers(url: str, *args: Any, **kwargs: Any) -> bool:
        asked.append(url)
        return url.startswith(f"{answering}:")

    monkeypatch.setattr("app.crawl.run.visits.visitor.responds", answers)

    source = create(tenant, url="docs.example.com/a")
    assert source["url"] == f"{answering}://docs.example.com/a"
    changed = assert_ok(tenant.private.put(path_of(source), json={"url": "docs.example.com/b"}))["source"]
    assert changed["url"] == f"{answering}://docs.example.com/b"
    assert asked[0] == "https://docs.example.com/a"

    asked.clear()
    rejected = tenant.private.post(sources_of(tenant), json={"kind": "website", "url": "elsewhere.example/"})
    assert_error(rejected, 400, "validation_failed")
    assert asked == []
