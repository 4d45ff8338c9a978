"""The crawler limits its request rate per host, across all callers."""

from __future__ import annotations

import pytest

from app.crawl.fetch.politeness import LEASE_SECONDS, HostPace, Turn, Turns, polite
from app.crawl.fetch.values import NotIndexed, TryLater

HOST = "www.example.com"


class Clock:
    """A clock in seconds that only tests advance."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class LocalTurns(Turns):
    """Turns kept in memory, for a single thread."""

    def __init__(self, now: Clock):
        self._now = now
        self._paces: dict[str, HostPace] = {}

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        pace = self._paces.get(host, HostPace())
        self._paces[host], taken = pace.take(host, self._now(), crawl_delay=crawl_delay)
        return taken

    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        self._paces[turn.host] = self._paces[turn.host].give_back(turn, self._now(), pause=pause)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> LocalTurns:
    return LocalTurns(clock)


def take(turns: LocalTurns, host: str = HOST, crawl_delay: float = 0.0) -> Turn:
    taken = turns.take(host, crawl_delay=crawl_delay)
    assert isinstance(taken, Turn), f"wait for {taken}"
    return taken


def visits(turns: LocalTurns, clock: Clock, count: int, *, took: float, crawl_delay: float = 0.0) -> float:
    """Make consecutive requests that take ``took`` seconds each, and return the total duration."""
    begun = clock.now
    for _ in range(count):
        with polite(turns, HOST, crawl_delay=crawl_delay, wait=clock.wait):
            clock.now += took
    return clock.now - begun


def test_host_gets_at_most_ten_requests_per_second(turns: LocalTurns, clock: Clock) -> None:
    assert visits(turns, clock, 101, took=0.0) == pytest.approx(10.0)


def test_host_gets_at_most_two_concurrent_requests(turns: LocalTurns, clock: Clock) -> None:
    first = take(turns)
    clock.now += 0.1
    take(turns)
    clock.now += 0.1

    wait = turns.take(HOST)
    turns.give_back(first)
    clock.now += 0.2

    assert isinstance(wait, float)
    assert wait > 0
    take(turns)
    assert isinstance(turns.take(HOST), float)


def test_rate_limits_of_hosts_are_independent(turns: LocalTurns) -> None:
    take(turns)
    take(turns, "docs.example.com")

    assert isinstance(turns.take(HOST), float)


def test_slow_host_gets_fewer_requests_until_it_recovers(turns: LocalTurns, clock: Clock) -> None:
    visits(turns, clock, 10, took=2.0)

    begins = []
    for _ in range(3):
        while not isinstance(taken := turns.take(HOST), Turn):
            clock.now += taken
        begins.append(clock.now)
        clock.now += 0.01
        turns.give_back(taken)
        clock.now += 1.9

    assert begins[1] - begins[0] > 1.5
    assert visits(turns, clock, 20, took=0.05) < 10.0
    assert visits(turns, clock, 11, took=0.05) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("took", [0.0, 3.0])
def test_crawl_delay_is_respected_with_one_request_at_a_time(turns: LocalTurns, clock: Clock, took: float) -> None:
    assert visits(turns, clock, 11, took=took, crawl_delay=5.0) == pytest.approx(50.0 + took)

    clock.now += 60
    take(turns, crawl_delay=5.0)
    clock.now += 5
    assert isinstance(turns.take(HOST, crawl_delay=5.0), float)


def test_retry_after_pauses_the_host_for_all_callers(turns: LocalTurns, clock: Clock) -> None:
    with pytest.raises(TryLater), polite(turns, HOST, wait=clock.wait):
        raise TryLater("http_429", "Later.", 120.0)

    wait = turns.take(HOST)
    assert wait == pytest.approx(120.0)
    clock.now += 120
    take(turns)


def test_failed_request_releases_its_turn(turns: LocalTurns, clock: Clock) -> None:
    for _ in range(5):
        with pytest.raises(NotIndexed), polite(turns, HOST, wait=clock.wait):
            raise NotIndexed("timeout", "No.")

    clock.now += 1
    take(turns)


def test_turns_of_a_dead_process_expire(turns: LocalTurns, clock: Clock) -> None:
    lost = take(turns)
    clock.now += 1
    take(turns)
    clock.now += LEASE_SECONDS

    take(turns)
    turns.give_back(lost, pause=600.0)
    clock.now += 1
    take(turns)


def test_waiting_for_a_turn_can_be_canceled(turns: LocalTurns) -> None:
    def cancelled(seconds: float) -> None:
        raise KeyboardInterrupt

    take(turns)
    with pytest.raises(KeyboardInterrupt), polite(turns, HOST, wait=cancelled):
        pytest.fail("It was not our turn.")
