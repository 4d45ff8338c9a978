"""Turns at hosts: two requests at once and ten a second, whoever asks."""

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


def test_two_machines_together_have_two_requests_under_way(machines: list[SharedTurns], clock: Clock) -> None:
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


def test_ten_a_second_begin_however_fast_they_end(machines: list[SharedTurns], clock: Clock) -> None:
    begun = 0
    for millisecond in range(1000):
        clock.now = 1_000_000.0 + millisecond / 1000
        turn = machines[millisecond % 2].take("example.com")
        if isinstance(turn, Turn):
            begun += 1
            machines[(millisecond + 1) % 2].give_back(turn)

    assert begun == 10


def test_a_host_that_asks_to_wait_is_left_alone_by_all(machines: list[SharedTurns], clock: Clock) -> None:
    one, other = machines
    one.give_back(taken(one.take("example.com")), pause=300)
    clock.now += 299

    wait = other.take("example.com")
    assert wait == pytest.approx(1)


def test_turns_taken_at_the_same_moment_are_different(machines: list[SharedTurns], clock: Clock) -> None:
    with ThreadPoolExecutor(8) as pool:
        turns = list(pool.map(lambda number: machines[number % 2].take("example.com"), range(8)))

    assert len([turn for turn in turns if isinstance(turn, Turn)]) == 1


def test_hosts_that_nobody_asks_are_forgotten(app: Flask, machines: list[SharedTurns], clock: Clock) -> None:
    from sqlalchemy import func, select

    from app.models import CrawlHost

    machines[0].take("example.com")
    clock.now += KEPT_SECONDS + 60
    machines[0].take("example.org")
    machines[0].forget_idle()

    with app.extensions["runtime"].database.read() as session:
        assert session.scalars(select(CrawlHost.host)).all() == ["example.org"]
        assert session.scalar(select(func.count()).select_from(CrawlHost)) == 1
