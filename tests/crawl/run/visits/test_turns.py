"""Shared turns limit each host to two concurrent requests and ten per second, across all machines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from app.crawl.fetch.politeness import Turn
from app.crawl.run.visits.turns import KEPT_SECONDS, SharedTurns
from app.runtime import Runtime


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def machines(app: Flask, clock: Clock) -> list[SharedTurns]:
    """Two machines that share a database."""
    part: Runtime = app.extensions["runtime"]
    return [SharedTurns(part.database, clock), SharedTurns(part.database, clock)]


def taken(turn: Turn | float) -> Turn:
    assert isinstance(turn, Turn)
    return turn


def test_two_machines_share_the_limit_of_two_concurrent_requests(machines: list[SharedTurns], clock: Clock) -> None:
    one, other = machines
    first = taken(one.take("example.com"))
    clock.now += 1
    taken(other.take("example.com"))
    clock.now += 1
    assert not isinstance(one.take("example.com"), Turn)
    assert isinstance(one.take("example.org"), Turn)

    one.give_back(first)
    clock.now += 10

    assert isinstance(other.take("example.com"), Turn)


def test_two_machines_together_start_ten_requests_per_second(machines: list[SharedTurns], clock: Clock) -> None:
    begun = 0
    for millisecond in range(1000):
        clock.now = 1_000_000.0 + millisecond / 1000
        turn = machines[millisecond % 2].take("example.com")
        if isinstance(turn, Turn):
            begun += 1
            machines[(millisecond + 1) % 2].give_back(turn)

    assert begun == 10


def test_pause_requested_by_a_host_applies_to_all_machines(machines: list[SharedTurns], clock: Clock) -> None:
    one, other = machines
    one.give_back(taken(one.take("example.com")), pause=300)
    clock.now += 299

    wait = other.take("example.com")
    assert wait == pytest.approx(1)


def test_concurrent_requests_for_a_turn_grant_only_one(machines: list[SharedTurns], clock: Clock) -> None:
    with ThreadPoolExecutor(8) as pool:
        turns = list(pool.map(lambda number: machines[number % 2].take("example.com"), range(8)))

    assert len([turn for turn in turns if isinstance(turn, Turn)]) == 1


def test_idle_hosts_are_deleted_from_the_database(app: Flask, machines: list[SharedTurns], clock: Clock) -> None:
    from sqlalchemy import func, select

    from app.models import CrawlHost

    machines[0].take("example.com")
    clock.now += KEPT_SECONDS + 60
    machines[0].take("example.org")
    machines[0].forget_idle()

    with app.extensions["runtime"].database.read() as session:
        assert session.scalars(select(CrawlHost.host)).all() == ["example.org"]
        assert session.scalar(select(func.count()).select_from(CrawlHost)) == 1
