"""Midnight and the end of a minute pass under load: windows turn over exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.server import Server
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
        """Let it be ``moment`` now, in every process, and go on from there."""
        draft = self.file.with_suffix(".new")
        draft.write_text(repr((moment - datetime.now(UTC)).total_seconds()))
        draft.replace(self.file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """Tomorrow, ten minutes before midnight."""
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


def test_the_searches_of_a_day_return_at_midnight_exactly_once(servers: list[Server], clock: Clock) -> None:
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


def test_the_requests_of_a_minute_return_at_its_end_exactly_once(servers: list[Server], clock: Clock) -> None:
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
