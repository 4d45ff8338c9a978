"""Midnight and the end of a minute pass under load: windows reset exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import PROJECT, Server, running_server
from tests.service.clients import crowd, eventually, register
from tests.service.conftest import BACKINGS, one_machine, two_machines

pytestmark = pytest.mark.service

CLIENTS = 8


@dataclass
class Clock:
    """The clock of all processes."""

    file: Path

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(self.file.read_text()))

    def set(self, moment: datetime) -> None:
        """Set the clock to ``moment`` in every process; it continues from there."""
        draft = self.file.with_suffix(".new")
        draft.write_text(repr((moment - datetime.now(UTC)).total_seconds()))
        draft.replace(self.file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """A clock that starts tomorrow, ten minutes before midnight."""
    made = Clock(tmp_path / "clock")
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    made.set(datetime(tomorrow.year, tomorrow.month, tomorrow.day, 23, 50, tzinfo=UTC))
    return made


@pytest.fixture(params=BACKINGS)
def servers(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[list[Server]]:
    settings = {"application": "tests.service.shifted_clock:app", "clock_file": str(clock.file)}
    if request.param == "one machine":
        with one_machine(tmp_path, **settings) as made:
            yield made
    else:
        postgres, redis = request.getfixturevalue("postgres"), request.getfixturevalue("redis")
        with two_machines(tmp_path, postgres, redis, **settings) as made:
            yield made


def test_daily_search_quota_resets_at_midnight_exactly_once_under_load(servers: list[Server], clock: Clock) -> None:
    quota = 40
    customer = register(servers, "ann@example.com")
    servers[0].set_plan(customer.email, "business", searches_per_day=quota, requests_per_minute="unlimited")
    day = clock.now().date()

    with crowd(CLIENTS, lambda number: customer.search.search(f"query {number}")) as searches:
        searches.wait_for_all(quota, status=200)
        searches.wait_for(20, status=429)
        clock.set(datetime(day.year, day.month, day.day, 23, 59, 59, 300_000, tzinfo=UTC))
        searches.wait_for_all(2 * quota, status=200)
        searches.wait_for(40, status=429)
        assert clock.now().date() == day + timedelta(days=1)

    answers = [answer for _, answer in searches.answers]
    used = Counter(answer.body["remaining_quota"]["used_today"] for answer in answers if answer.status == 200)
    assert used == Counter(dict.fromkeys(range(1, quota + 1), 2))
    waits = [int(answer.headers["Retry-After"]) for answer in answers if answer.status == 429]
    assert min(waits) >= 1
    assert waits[-1] > 86_000

    def both_days_are_there() -> None:
        series = customer.private.must("GET", "/api/analytics?period=7d")["series"]
        assert {entry["date"]: entry["searches"] for entry in series if entry["searches"]} == {
            str(day): quota,
            str(day + timedelta(days=1)): quota,
        }

    eventually(both_days_are_there)


def test_daily_request_limit_resets_at_midnight_utc_exactly_once_under_load(
    servers: list[Server], clock: Clock
) -> None:
    customer = register(servers, "ann@example.com")
    clock.set(
        clock.now() - timedelta(hours=11)
    )  # So that no window of 24 hours since the first request ends at midnight.
    limit = 40
    servers[0].set_plan(customer.email, "business", requests_per_day=limit, requests_per_minute="unlimited")
    day = clock.now().date()
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)

    # Each crowd has all its responses before the next one starts.
    with crowd(CLIENTS, lambda number: customer.search.search("page")) as today:
        today.wait_for(20, status=429)
    clock.set(midnight - timedelta(seconds=0.7))
    with crowd(CLIENTS, lambda number: customer.search.search("page")) as tomorrow:
        tomorrow.wait_for_all(limit, status=200)
        tomorrow.wait_for(20, status=429)

    answers = [answer for _, answer in (*today.answers, *tomorrow.answers)]
    waits = [int(answer.headers["Retry-After"]) for answer in answers if answer.status == 429]
    assert 0 < sum(answer.status == 200 for _, answer in today.answers) <= limit  # Registering used up some requests.
    assert sum(answer.status == 200 for _, answer in tomorrow.answers) == limit
    assert 38_000 < waits[0] < 42_000
    assert waits[-1] > 86_000


def test_minute_request_limit_resets_exactly_once_under_load(servers: list[Server], clock: Clock) -> None:
    limit = 40
    customer = register(servers, "ann@example.com")
    servers[0].set_plan(customer.email, "business", requests_per_minute=limit)
    clock.set(clock.now() + timedelta(minutes=2))

    with crowd(CLIENTS, lambda number: customer.search.search("page")) as searches:
        searches.wait_for_all(limit, status=200)
        searches.wait_for(20, status=429)
        end = max(int(answer.headers["X-RateLimit-Reset"]) for _, answer in searches.answers)
        clock.set(datetime.fromtimestamp(end - 1.5, UTC))
        searches.wait_for_all(2 * limit, status=200)
        searches.wait_for(40, status=429)
        assert clock.now().timestamp() > end - 1

    answers = [answer for _, answer in searches.answers]
    remaining = Counter(int(answer.headers["X-RateLimit-Remaining"]) for answer in answers if answer.status == 200)
    assert remaining == Counter(dict.fromkeys(range(limit), 2))
    assert len({answer.headers["X-RateLimit-Reset"] for answer in answers if answer.status == 200}) == 2
    waits = [int(answer.headers["Retry-After"]) for answer in answers if answer.status == 429]
    assert min(waits) >= 1
    assert max(waits) <= 60


def test_doctor_reports_a_wrong_clock(
    tmp_path: Path, clock: Clock, postgres: PostgresServer, redis: RedisServer
) -> None:
    clock.file.write_text("-3600")
    shared: dict[str, str | int] = {"database_url": postgres.create_database("wrong_clock"), "limits_url": redis.url}
    settings = {"application": "tests.service.shifted_clock:app", "clock_file": str(clock.file)}
    with running_server(tmp_path / "data", workers=1, **shared, **settings) as server:
        code = "import tests.service.shifted_clock; from app.commands.doctor import doctor; doctor()"
        told = subprocess.run(
            [sys.executable, "-c", code, "--json"],
            cwd=PROJECT, env=server.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert told.returncode == 1
    clocks = [finding for finding in json.loads(told.stdout) if finding["topic"] == "clocks"]
    assert [finding["level"] for finding in clocks] == ["problem", "problem"]
    assert "The clock of the database differs from this machine's by 3600.0 s." in clocks[0]["message"]
    assert "NTP" in clocks[0]["remedy"]
