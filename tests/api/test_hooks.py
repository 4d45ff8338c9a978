"""Hooks of sources: a hook URL starts a run of its source, once a minute, and permits nothing else."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from app.models import Source, SourceRun
from tests.api.test_sources import URL, create, end_run, path_of
from tests.callers import ApiClient, Tenant, add_member, register_tenant
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Coordinates]:
    with time_machine.travel(NOON, tick=False) as made:
        yield made


@pytest.fixture
def source(tenant: Tenant, clock: time_machine.Coordinates) -> dict[str, Any]:
    """A source whose first run ended a second ago."""
    made = create(tenant)
    end_run(tenant.app, made)
    clock.shift(timedelta(seconds=1))
    return made


def send(tenant: Tenant, source: dict[str, Any], **options: Any) -> TestResponse:
    """Call the hook as a deployment would, without any other credentials."""
    return ApiClient(tenant.app).post(urlsplit(source["hook_url"]).path, **options)


def options_of(tenant: Tenant, run: dict[str, Any]) -> dict[str, Any]:
    with tenant.app.extensions["runtime"].database.read() as session:
        found: dict[str, Any] = session.get_one(SourceRun, run["id"]).options
        return found


def test_hook_queues_a_run(tenant: Tenant, source: dict[str, Any]) -> None:
    assert source["hook_url"].startswith("http://localhost/hooks/svc_hook_")

    run = assert_ok(send(tenant, source))["run"]

    assert run["status"] == "queued"
    assert options_of(tenant, run) == {}
    assert assert_ok(tenant.private.get(path_of(source)))["source"]["last_run"] == run


def test_hook_with_urls_queues_a_run_limited_to_them(tenant: Tenant, source: dict[str, Any]) -> None:
    run = assert_ok(send(tenant, source, json={"urls": [URL + "a", URL + "b"], "event": "deploy"}))["run"]

    assert options_of(tenant, run) == {"urls": [URL + "a", URL + "b"]}


def test_hook_is_limited_to_one_call_a_minute(
    tenant: Tenant, source: dict[str, Any], clock: time_machine.Coordinates
) -> None:
    other = create(tenant, url=URL + "docs/")
    assert_ok(send(tenant, source))
    clock.shift(timedelta(seconds=20))

    rejected = send(tenant, source)

    assert_error(rejected, 429, "rate_limit_exceeded")
    assert rejected.headers["Retry-After"] == "40"
    assert_ok(send(tenant, other))
    clock.shift(timedelta(seconds=40))
    assert_ok(send(tenant, source))


def test_rejected_hook_call_does_not_check_its_urls(tenant: Tenant, source: dict[str, Any]) -> None:
    assert_ok(send(tenant, source))

    # Checking 100 URLs would take several times as long as the rejection.
    assert_error(send(tenant, source, json={"urls": ["https://elsewhere.example/"]}), 429, "rate_limit_exceeded")


def test_one_of_many_concurrent_hook_calls_is_accepted_and_rejected_ones_store_nothing(
    tenant: Tenant, source: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: send(tenant, source, json={"urls": [f"{URL}{number}"]}), range(40)))

    assert sorted(answer.status_code for answer in answers) == [200, *[429] * 39]
    (run,) = (answer.get_json()["run"] for answer in answers if answer.status_code == 200)
    assert len(options_of(tenant, run)["urls"]) == 1


def test_hook_call_failed_by_an_outage_can_be_repeated_at_once(
    tenant: Tenant, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("BEGIN IMMEDIATE", {}, sqlite3.OperationalError("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(tenant.app.extensions["runtime"].database, "write", away)
        assert_error(send(tenant, source), 503, "database_unavailable")

    assert_ok(send(tenant, source))


@pytest.mark.parametrize(
    "body",
    [
        {"data": b"payload=%7B%22urls%22%3A1%7D", "content_type": "application/x-www-form-urlencoded"},
        {"data": b"{broken", "content_type": "application/json"},
        {"data": b"\xff\xfe\x00", "content_type": "text/plain"},
        {"data": b"[" * 100_000, "content_type": "application/json"},
        {"data": b"\x1f\x8b", "headers": {"Content-Encoding": "gzip"}},
        {"json": ["https://elsewhere.example/"]},
        {"json": None},
        {"json": {"ref": "refs/heads/main", "repository": {"url": "https://elsewhere.example/"}}},
    ],
    ids=lambda body: str(body)[:40],
)
def test_hook_ignores_a_body_without_urls(tenant: Tenant, source: dict[str, Any], body: dict[str, Any]) -> None:
    run = assert_ok(send(tenant, source, **body))["run"]

    assert options_of(tenant, run) == {}


def test_hook_reads_json_regardless_of_content_type(tenant: Tenant, source: dict[str, Any]) -> None:
    sent = f'{{"urls": ["{URL}a"]}}'.encode()

    run = assert_ok(send(tenant, source, data=sent, content_type="application/x-www-form-urlencoded"))["run"]

    assert options_of(tenant, run) == {"urls": [URL + "a"]}


@pytest.mark.parametrize(
    ("urls", "code"),
    [
        (["https://elsewhere.example/"], "other_host"),
        (["ftp://www.example.com/"], "invalid_url"),
        ("https://www.example.com/", "type"),
        ([], "too_short"),
        ([URL] * 101, "too_long"),
    ],
    ids=["wrong host", "not a web page", "not a list", "none", "too many"],
)
def test_hook_rejects_urls_that_a_run_would_reject(
    tenant: Tenant, source: dict[str, Any], urls: Any, code: str
) -> None:
    answer = assert_error(send(tenant, source, json={"urls": urls}), 400, "validation_failed")

    assert answer["details"][0]["code"] == code
    assert_ok(send(tenant, source, json={"urls": [URL + "a"]}))  # Rejected calls do not count.


def test_hook_rejects_a_body_above_the_size_limit(tenant: Tenant, source: dict[str, Any]) -> None:
    assert_error(send(tenant, source, data=b"x" * 1_048_577), 413, "payload_too_large")


def test_invalid_hook_token_returns_404(tenant: Tenant, source: dict[str, Any]) -> None:
    token = urlsplit(source["hook_url"]).path.rpartition("/")[2]
    other = create(register_tenant(tenant.app, "other@example.com"))
    mixed = token[: len("svc_hook_") + 16] + urlsplit(other["hook_url"]).path[-32:]

    for guess in (token[:-1] + ("0" if token[-1] != "0" else "1"), mixed, token.upper(), "x", tenant.tokens["private"]):
        assert_error(ApiClient(tenant.app).post(f"/hooks/{guess}"), 404, "source_not_found")


def test_hook_affects_only_its_own_source(tenant: Tenant, source: dict[str, Any]) -> None:
    stranger = register_tenant(tenant.app, "other@example.com")
    theirs = create(stranger)
    end_run(tenant.app, theirs)

    assert_ok(send(tenant, source))

    assert assert_ok(stranger.private.get(path_of(theirs)))["source"]["status"] == "idle"
    assert_error(stranger.private.post(path_of(source, "/hook")), 404, "site_not_found")
    assert_error(
        stranger.private.post(path_of({**source, "site_id": stranger.site_id}, "/hook")), 404, "source_not_found"
    )


def test_renewing_a_hook_changes_its_url_and_invalidates_the_old_one(tenant: Tenant, source: dict[str, Any]) -> None:
    renewed = assert_ok(tenant.private.post(path_of(source, "/hook")))["source"]

    assert renewed["hook_url"] != source["hook_url"]
    assert assert_ok(tenant.private.get(path_of(source)))["source"] == renewed
    assert_error(send(tenant, source), 404, "source_not_found")
    assert_ok(send(tenant, renewed))
    entry = assert_ok(tenant.private.get("/api/audit-log"))["entries"][0]
    assert (entry["action"], entry["object"]["kind"], [change["field"] for change in entry["changes"]]) == (
        "changed", "source", ["hook"],
    )  # fmt: skip
    assert renewed["hook_url"].rpartition("_")[2] not in str(entry)


def test_hook_of_a_paused_site_or_deleted_source_is_rejected(tenant: Tenant, source: dict[str, Any]) -> None:
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False}))
    assert_error(send(tenant, source), 403, "site_inactive")
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"active": True}))
    assert_ok(tenant.private.delete(path_of(source)))

    assert_error(send(tenant, source), 404, "source_not_found")


def test_hook_url_is_hidden_from_viewers(tenant: Tenant, source: dict[str, Any]) -> None:
    viewer = add_member(tenant, "viewer@example.com", "viewer")
    editor = add_member(tenant, "editor@example.com", "editor")

    assert assert_ok(viewer.get(path_of(source)))["source"]["hook_url"] is None
    assert assert_ok(viewer.get(path_of(source).rpartition("/")[0]))["sources"][0]["hook_url"] is None
    assert "svc_hook" not in viewer.get(path_of(source), headers={"Accept": "text/html"}).get_data(as_text=True)
    assert assert_ok(editor.get(path_of(source)))["source"]["hook_url"] == source["hook_url"]


def test_hook_token_is_neither_logged_nor_stored(
    tenant: Tenant, source: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.crawl.sources import runs
    from app.logs import JsonFormatter

    token = source["hook_url"].rpartition("/")[2]
    with caplog.at_level(logging.INFO):
        assert_ok(send(tenant, source))
        send(tenant, source)
        monkeypatch.setattr(runs, "ensure_later_run", lambda *args: 1 / 0)
        other = create(tenant, url=URL + "docs/")
        assert send(tenant, other).status_code == 500

    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert sum("POST /hooks/[secret]" in line for line in lines) >= 4
    assert not [line for line in lines if token in line or other["hook_url"].rpartition("/")[2] in line]
    with tenant.app.extensions["runtime"].database.read() as session:
        row = session.get_one(Source, source["id"])
        assert not [value for value in vars(row).values() if isinstance(value, str) and value and value in token[25:]]
