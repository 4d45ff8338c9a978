"""CPU time of expensive requests is counted per caller and limited, without the work for other callers."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any, cast

import pytest
import time_machine
from flask import Flask
from werkzeug.test import EnvironBuilder
from werkzeug.wsgi import ClosingIterator

from app.application import create_app
from app.counters.values import CountersUnavailable
from app.services.indexing.group_commit import GroupCommit, Written
from app.services.usage import cpu_limits
from app.services.usage.cpu_limits import (
    ADDRESS_SECONDS,
    FREE_SECONDS,
    MEMBER_SECONDS,
    MIN_SECONDS,
    CpuLimits,
    cpu_seconds,
    working_for,
)
from app.services.usage.quota import MEMBERS_FACTOR
from app.web import entrance
from tests.callers import ApiClient, Tenant, add_member, member_id
from tests.conftest import close_app
from tests.gateway.callers import Gateway, VisitorClient
from tests.responses import assert_error, assert_ok


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[time_machine.Traveller]:
    with time_machine.travel(datetime.now(UTC), tick=False) as traveller:
        monkeypatch.setattr(cpu_limits.time, "monotonic", lambda: datetime.now(UTC).timestamp())
        yield traveller


def let_requests_take(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Make each request take this much CPU time."""
    monkeypatch.setattr(entrance, "cpu_seconds", (step * seconds for step in count()).__next__)


def test_keys_of_an_account_share_a_cpu_limit_that_resets_after_a_minute(
    tenant: Tenant, stranger: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    tenant.set_plan("free")
    let_requests_take(monkeypatch, MIN_SECONDS / 2)
    for client in (tenant.private, tenant.search):
        assert_ok(client.get("/v1/search?q=a"))

    rejected = tenant.private.get("/sites")
    body = assert_error(rejected, 429, "rate_limit_exceeded")
    assert body["message"].startswith("The requests took more than 6 seconds of CPU time per minute")
    assert (rejected.headers["Retry-After"], rejected.headers["X-RateLimit-Limit"]) == ("60", str(MIN_SECONDS))
    assert_ok(stranger.private.get("/sites"))
    assert_ok(tenant.browser.get("/sites"))
    clock.shift(61)
    assert_ok(tenant.private.get("/sites"))


def test_larger_plan_has_a_larger_cpu_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    let_requests_take(monkeypatch, 110)
    assert_ok(tenant.private.get("/sites"))
    assert_ok(tenant.private.get("/sites"))
    assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")


def test_cheap_requests_do_not_count_towards_the_cpu_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    tenant.set_plan("free")
    let_requests_take(monkeypatch, FREE_SECONDS * 0.99)
    counters = tenant.app.extensions["runtime"].counters
    keys: list[str] = []
    consume = counters.consume
    monkeypatch.setattr(
        counters, "consume", lambda windows, **more: keys.extend(w.key for w in windows) or consume(windows, **more)
    )

    assert_ok(tenant.private.get("/sites"))

    assert not [key for key in keys if key.startswith("cpu")]


def test_members_visitors_and_anonymous_callers_have_separate_cpu_limits(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    index = tenant.site["index"]
    token = Gateway(tenant).token
    let_requests_take(monkeypatch, MEMBER_SECONDS)
    visitor, other = (VisitorClient(tenant.app, token, iter([address] * 3)) for address in ("192.0.2.1", "192.0.2.2"))

    assert_ok(tenant.browser.get("/sites"))
    assert_error(tenant.browser.get("/sites"), 429, "rate_limit_exceeded")
    search = f"/engine/indexes/{index}/search"
    assert visitor.post(search, json={"q": "a"}).status_code == 200
    assert visitor.post(search, json={"q": "a"}).status_code == 429
    assert other.post(search, json={"q": "a"}).status_code == 200
    anyone = ApiClient(tenant.app)
    assert anyone.get("/plans").status_code == 200
    assert anyone.get("/plans").status_code == 429
    assert ADDRESS_SECONDS < MEMBER_SECONDS


STREAMS = [
    ("/api/v1/documents?site_id={site_id}", {"Accept": "application/x-ndjson"}, "app.api.documents.encode"),
    ("/sites/{site_id}/documents/export", {}, "app.pages.documents.encode"),
    ("/audit-log/export", {}, "app.services.audit_log.entries.csv_lines"),
]
"""Streamed responses: path, headers, and the function that makes a part of the body."""


@pytest.fixture
def stream(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller, request: pytest.FixtureRequest
) -> Iterator[bytes]:
    """A streamed response of a member, of which each part takes the CPU time of a minute."""
    path, headers, maker = request.param
    tenant.index({"id": "1", "title": "A", "url": "https://example.com/a", "content": "a"})
    spent, make = 0.0, pkgutil.resolve_name(maker)

    def make_slowly(*arguments: Any) -> Any:
        nonlocal spent
        spent += MEMBER_SECONDS
        return make(*arguments)

    monkeypatch.setattr(entrance, "cpu_seconds", lambda: spent)
    monkeypatch.setattr(maker, make_slowly)
    return tenant.browser.get(path.format(site_id=tenant.site_id), headers=headers, buffered=False).iter_encoded()


@pytest.mark.parametrize("stream", STREAMS, indirect=True)
def test_streamed_body_counts_while_it_is_sent_and_is_never_cut_off(tenant: Tenant, stream: Iterator[bytes]) -> None:
    assert_ok(tenant.browser.get("/sites"))
    parts = [next(stream)]
    parts += stream

    assert all(parts)
    assert_error(tenant.browser.get("/sites"), 429, "rate_limit_exceeded")


@pytest.mark.parametrize("stream", STREAMS, indirect=True)
def test_streamed_body_occupies_its_callers_share_of_threads(tenant: Tenant, stream: Iterator[bytes]) -> None:
    shares = tenant.app.extensions["runtime"].shares
    next(stream)
    assert shares._callers
    list(stream)
    assert not shares._callers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_stream_that_is_closed_before_its_first_byte_frees_its_slot(tenant: Tenant, method: str) -> None:
    headers = {"Accept": "application/x-ndjson", "Authorization": f"Bearer {tenant.tokens['private']}"}
    environ = EnvironBuilder(f"/api/v1/documents?site_id={tenant.site_id}", method=method, headers=headers)
    shares = tenant.app.extensions["runtime"].shares

    body = cast(ClosingIterator, tenant.app.wsgi_app(environ.get_environ(), lambda *_: print))

    assert list(shares._callers) == [tenant.account_id]
    body.close()  # As WSGI servers do.
    assert not shares._callers


def test_members_of_an_account_share_a_cpu_limit_that_one_member_cannot_use_up(
    tenant: Tenant, stranger: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    colleagues = [add_member(tenant, f"{name}@example.com", "viewer") for name in ("bo", "cy", "di")]
    let_requests_take(monkeypatch, MEMBER_SECONDS)
    first, second, third = colleagues

    assert_ok(first.get("/sites"))
    assert_ok(second.get("/sites"))
    for browser in (third, tenant.browser):
        body = assert_error(browser.get("/sites"), 429, "rate_limit_exceeded")
        assert f"more than {MEMBERS_FACTOR * MEMBER_SECONDS} seconds of CPU time" in body["message"]
    assert_ok(tenant.private.get("/sites"))
    assert_ok(stranger.browser.get("/sites"))


def test_replaced_members_have_no_new_cpu_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    for number in range(MEMBERS_FACTOR):
        email = f"bo{number}@example.com"
        browser, id = add_member(tenant, email, "viewer"), member_id(tenant, email)
        with monkeypatch.context() as slow:
            let_requests_take(slow, MEMBER_SECONDS)
            assert_ok(browser.get("/sites"))
        assert_ok(tenant.private.delete(f"/api/members/{id}"))
    assert_error(tenant.browser.get("/sites"), 429, "rate_limit_exceeded")


def test_cpu_time_is_counted_across_processes(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    tenant.set_plan("free")
    other = create_app(tenant.app.extensions["runtime"].settings, background=False)
    try:
        elsewhere = ApiClient(other, tenant.tokens["private"])
        let_requests_take(monkeypatch, MIN_SECONDS / 2)
        for client in (tenant.private, elsewhere):
            assert_ok(client.get("/sites"))
        assert_error(elsewhere.get("/sites"), 429, "rate_limit_exceeded")
    finally:
        close_app(other)


@pytest.mark.parametrize("hours", [1, -1])
def test_clock_jump_does_not_extend_a_cpu_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller, hours: int
) -> None:
    tenant.set_plan("free")
    moment = 1000.0
    monkeypatch.setattr(cpu_limits.time, "monotonic", lambda: moment)
    let_requests_take(monkeypatch, MIN_SECONDS)
    assert_ok(tenant.private.get("/sites"))
    clock.shift(hours * 3600)
    assert_error(tenant.private.get("/sites"), 429, "rate_limit_exceeded")
    moment += 61
    assert_ok(tenant.private.get("/sites"))


def test_requests_succeed_without_cpu_limit_while_counters_are_unavailable(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CountersUnavailable("away")

    let_requests_take(monkeypatch, 1000)
    monkeypatch.setattr(app.extensions["runtime"].counters, "consume", fail)
    for _ in range(2):
        assert_ok(tenant.search.get("/v1/search?q=a"))


def test_cpu_time_spent_for_several_callers_is_divided_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = 0.0
    monkeypatch.setattr(cpu_limits.time, "thread_time", lambda: spent)
    before = cpu_seconds()
    with working_for(4):
        spent += 2.0
    spent += 0.25

    assert cpu_seconds() - before == pytest.approx(0.5 + 0.25)


def test_group_commit_attributes_its_cpu_time_to_its_writers(
    app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: list[int] = []

    def record(number: int) -> object:
        callers.append(number)
        return working_for(number)

    monkeypatch.setattr("app.services.indexing.group_commit.working_for", record)
    runtime = app.extensions["runtime"]
    commit = GroupCommit(runtime.database, runtime.counters)
    commit.run(tenant.account_id, lambda session: Written(None))

    assert callers == [1]


def test_exhausted_callers_are_evicted_above_the_limit(monkeypatch: pytest.MonkeyPatch, app: Flask) -> None:
    monkeypatch.setattr(cpu_limits, "_MAX_EXHAUSTED", 2)
    limits = CpuLimits(app.extensions["runtime"].counters)
    for number in range(5):
        limits.record([cpu_limits.Spender(f"cpu:{number}", 1)], 1.0)

    assert len(limits._exhausted) <= 2
