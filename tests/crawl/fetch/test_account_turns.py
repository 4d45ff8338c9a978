"""Accounts share the time of a browser or a reading process, however many pages they wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app.crawl.fetch.account_turns import AccountTurns
from tests.patience import PATIENCE_SECONDS, eventually


class Clock:
    """A clock that pages advance."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Crowd:
    """Threads that wait for turns, and the order in which they have them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = AccountTurns(self.clock)
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def join(self, account: int, page: str, seconds: float) -> None:
        """Wait for a turn in a thread; return when the thread waits."""

        def work() -> None:
            with self.turns.take(account, lambda seconds: None):
                self.order.append(page)
                self.clock.seconds += seconds

        waiting = len(self.turns._waiting)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._threads.append(thread)
        eventually(lambda: len(self.turns._waiting) > waiting)

    def finish(self) -> None:
        """Wait until all threads have had their turns."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.finish()


def test_account_with_quick_pages_gets_as_much_time_as_one_with_many_slow_pages(crowd: Crowd) -> None:
    with crowd.turns.take(3, lambda seconds: None):
        for number in range(4):
            crowd.join(1, f"slow {number}", 15.0)
        for number in range(12):
            crowd.join(2, f"quick {number}", 2.0)
    crowd.finish()

    # After each slow page, quick pages follow until they have taken as long.
    assert crowd.order == [
        "slow 0", *(f"quick {number}" for number in range(8)), "slow 1",
        *(f"quick {number}" for number in range(8, 12)), "slow 2", "slow 3",
    ]  # fmt: skip


def test_pages_of_one_account_keep_their_order(crowd: Crowd) -> None:
    with crowd.turns.take(2, lambda seconds: None):
        for number in range(5):
            crowd.join(1, str(number), 1.0)
    crowd.finish()
    assert crowd.order == [str(number) for number in range(5)]


def test_account_does_not_accumulate_time_while_idle(crowd: Crowd) -> None:
    for _ in range(10):
        with crowd.turns.take(1, lambda seconds: None):
            crowd.clock.seconds += 10.0
    with crowd.turns.take(1, lambda seconds: None):
        crowd.clock.seconds += 10.0
        for number in range(3):
            crowd.join(2, f"late {number}", 10.0)
            crowd.join(1, f"steady {number}", 10.0)
    crowd.finish()
    assert crowd.order == ["late 0", "steady 0", "late 1", "steady 1", "late 2", "steady 2"]


def test_stopped_caller_leaves_the_queue(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.crawl.fetch.account_turns._CHECK_SECONDS", 0.001)

    def stop(seconds: float) -> None:
        raise InterruptedError

    with crowd.turns.take(1, lambda seconds: None):
        with pytest.raises(InterruptedError), crowd.turns.take(2, stop):
            pass
        crowd.join(3, "next", 1.0)
    crowd.finish()
    assert crowd.order == ["next"]


def test_turn_ends_with_an_exception(crowd: Crowd) -> None:
    with pytest.raises(ZeroDivisionError), crowd.turns.take(1, lambda seconds: None):
        raise ZeroDivisionError
    with crowd.turns.take(2, lambda seconds: pytest.fail("the turn has not ended")):
        pass


def test_used_time_of_accounts_that_are_behind_is_forgotten(crowd: Crowd) -> None:
    for account in range(1, 200):
        with crowd.turns.take(account, lambda seconds: None):
            crowd.clock.seconds += 1.0
    for _ in range(2):
        with crowd.turns.take(1000, lambda seconds: None):
            crowd.clock.seconds += 1.0
    with crowd.turns.take(1000, lambda seconds: None):
        assert crowd.turns._used == {1000: 2.0}
