"""When the system clock jumps an hour forward or back, users keep access and work is not delayed by the hour."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyotp
import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.crawl.fetch.politeness import LEASE_SECONDS, MAX_PAUSE_SECONDS, HostPace, Turn
from app.crawl.sources import runs
from app.crawl.sources.runs import ClaimState
from app.models import EngineTask, Webhook
from app.services import webhooks
from app.services.engines import DELETE_INDEX, add_task
from app.services.indexing.site_indexes import NEVER
from tests.callers import PASSWORD, ApiClient, Tenant, page, register_tenant
from tests.crawl.sources.rows import add_source
from tests.responses import assert_error, assert_ok
from tests.services.webhooks.receiver import add_webhook, tell

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
both_ways = pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def customer(clock: time_machine.Traveller, app: Flask) -> Tenant:
    """A customer who registered before the clock jumped."""
    return register_tenant(app, "ann@example.com")


@both_ways
def test_sessions_keys_and_writes_keep_working_after_a_clock_jump(
    customer: Tenant, clock: time_machine.Traveller, jump: timedelta
) -> None:
    customer.index(page(1))
    for shift in (jump, -jump):
        clock.shift(shift)
        assert_ok(customer.browser.get("/dashboard"))
        assert_ok(customer.browser.put(f"/sites/{customer.site_id}", json={"name": f"Site {shift}"}))
        customer.index(page(2))
        assert customer.found_ids("page") == ["page-1", "page-2"] or customer.found_ids("page") == ["page-2", "page-1"]
        assert_ok(ApiClient(customer.app).post("/login", json={"email": customer.email, "password": PASSWORD}))


@both_ways
def test_exhausted_rate_limit_resets_within_a_minute_despite_a_clock_jump(
    customer: Tenant, clock: time_machine.Traveller, jump: timedelta
) -> None:
    customer.set_plan("pro", requests_per_minute=2)
    for shift in (timedelta(0), jump, -jump):
        clock.shift(shift)
        for _ in range(3):
            answer = customer.private.get("/sites")
        assert_error(answer, 429, "rate_limit_exceeded")
        assert int(answer.headers["Retry-After"]) <= 60
    clock.shift(60)
    assert_ok(customer.private.get("/sites"))


def test_daily_search_quota_is_counted_per_day_when_the_clock_crosses_midnight(
    customer: Tenant, clock: time_machine.Traveller
) -> None:
    customer.set_plan("pro", searches_per_day=2)
    clock.move_to(NOON.replace(hour=23, minute=30))
    for _ in range(2):
        assert_ok(customer.search.get("/v1/search?q=a"))
    clock.shift(HOUR)
    assert_ok(customer.search.get("/v1/search?q=a"))
    clock.shift(-HOUR)
    assert_error(customer.search.get("/v1/search?q=a"), 429, "rate_limit_exceeded")
    clock.shift(HOUR)
    assert_ok(customer.search.get("/v1/search?q=a"))
    assert_error(customer.search.get("/v1/search?q=a"), 429, "rate_limit_exceeded")


@both_ways
def test_login_works_two_hours_after_failed_attempts_despite_a_clock_jump(
    customer: Tenant, clock: time_machine.Traveller, jump: timedelta
) -> None:
    def log_in(password: str) -> int:
        body = {"email": customer.email, "password": password}
        return ApiClient(customer.app).post("/login", json=body).status_code

    for _ in range(11):
        log_in("wrong password")
    clock.shift(jump)
    for _ in range(11):
        log_in("wrong password")
    clock.shift(-jump)
    clock.shift(2 * HOUR)
    assert log_in(PASSWORD) == 200


@both_ways
def test_one_time_codes_work_after_a_clock_jump_and_recovery_codes_during_it(
    customer: Tenant, clock: time_machine.Traveller, jump: timedelta
) -> None:
    def log_in(code: str) -> int:
        body = {"email": customer.email, "password": PASSWORD, "code": code}
        return ApiClient(customer.app).post("/login", json=body).status_code

    begun = assert_ok(customer.browser.post("/profile/totp", json={"current_password": PASSWORD}))
    phone = pyotp.TOTP(begun["secret"])
    confirmed = assert_ok(customer.browser.post("/profile/totp/confirm", json={"code": phone.at(NOON)}))
    clock.shift(jump)
    phones_code = phone.at(NOON + timedelta(seconds=30))

    assert log_in(phones_code) == 401
    assert log_in(confirmed["recovery_codes"][0]) == 200
    clock.shift(-jump)
    clock.shift(30)
    assert log_in(phones_code) == 200


def test_abandoned_run_is_reclaimed_after_the_clock_is_set_back(
    customer: Tenant, clock: time_machine.Traveller
) -> None:
    database = customer.app.extensions["runtime"].database
    source = add_source(customer.app, customer)
    clock.shift(HOUR)
    with database.write() as session:
        runs.request_run(session, source)
        first = runs.claim_run(session)
    assert first is not None
    clock.shift(-HOUR)

    with database.write() as session:
        second = runs.claim_run(session)
        assert second is not None
        assert runs.renew_claim(session, first) is ClaimState.LOST
        assert runs.claim_run(session) is None, "the new claim must be valid"
    assert second.run_id == first.run_id


def test_webhook_event_is_claimed_at_once_after_the_clock_is_set_back(
    customer: Tenant, clock: time_machine.Traveller
) -> None:
    database = customer.app.extensions["runtime"].database
    add_webhook(customer, "https://hooks.example.com/")
    clock.shift(HOUR)
    tell(customer)
    with database.write() as session:
        session.scalars(select(Webhook)).one().lease_until = datetime.now(UTC) + webhooks.CLAIM
    clock.shift(-HOUR)

    with database.write() as session:
        claim = webhooks.claim_delivery(session)
        assert claim is not None
        assert webhooks.claim_delivery(session) is None
        webhooks.settle(session, claim, 500, "The server responds with status 500.")
        assert not webhooks.has_due(session), "failed deliveries must wait"


def test_due_engine_task_runs_after_the_clock_is_set_back(customer: Tenant, clock: time_machine.Traveller) -> None:
    runtime = customer.app.extensions["runtime"]
    engine = runtime.engines.default.identity
    clock.shift(HOUR)
    with runtime.database.write() as session:
        add_task(session, engine, DELETE_INDEX, "gone")
        add_task(session, engine, DELETE_INDEX, "kept", due_at=NEVER)
    clock.shift(-HOUR)

    runtime.run_engine_tasks()

    with runtime.database.read() as session:
        assert session.scalars(select(EngineTask.subject)).all() == ["kept"]


class TestHosts:
    """A clock jump neither delays requests to a crawled host nor shortens its pauses."""

    def test_host_slot_reserved_in_the_future_does_not_block_after_the_clock_is_set_back(self) -> None:
        ahead = HostPace(next_at=10_000.0 + 3600, active={"a": 13_600.0, "b": 13_600.0})

        pace, turn = ahead.take("www.example.com", 10_000.0)

        assert isinstance(turn, Turn)
        assert pace.next_at < 10_001
        assert pace.active.keys() == {turn.token}

    @pytest.mark.parametrize("jump", [3600.0, -3600.0])
    def test_clock_jump_during_a_request_does_not_mark_the_host_slow(self, jump: float) -> None:
        pace, turn = HostPace().take("www.example.com", 10_000.0)
        assert isinstance(turn, Turn)

        after = pace.give_back(turn, 10_000.0 + jump)

        assert 0 <= after.slowness <= LEASE_SECONDS / 2
        assert isinstance(after.take("www.example.com", 10_001.0 + jump)[1], Turn)

    def test_longest_pause_requested_by_a_host_is_honored(self) -> None:
        pace = HostPace(next_at=10_000.0 + MAX_PAUSE_SECONDS)

        assert pace.take("www.example.com", 10_000.0)[1] == MAX_PAUSE_SECONDS
