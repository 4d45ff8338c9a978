"""Late Redis responses to timed-out steps are settled exactly once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.counters.base import CounterStore
from app.counters.values import (
    CountersUnavailable,
    IdempotencyKey,
    IntentRequest,
    ResponseLost,
    UncountedSearch,
    UsageReservation,
)
from tests.counters.conftest import RedisServer
from tests.counters.every_method import NOW, TODAY, until_it_is_back
from tests.counters.redis.conftest import freeze


def given_up(server: RedisServer, step: Callable[[], object]) -> None:
    """Run a step whose response arrives too late."""
    freeze(server, True)
    with pytest.raises(CountersUnavailable):
        step()
    freeze(server, False)


@pytest.mark.parametrize("intent", [None, IntentRequest("visitor", "harbor")])
@pytest.mark.parametrize("site_id", [None, 7])
def test_timed_out_charge_is_refunded(
    counters: CounterStore,
    impatient: CounterStore,
    server: RedisServer,
    site_id: int | None,
    intent: IntentRequest | None,
) -> None:
    until_it_is_back(lambda: impatient.consume([], reserve=UsageReservation(1, 9, site_id), now=NOW))
    given_up(server, lambda: impatient.consume([], reserve=UsageReservation(1, 9, site_id), intent=intent, now=NOW))
    until_it_is_back(impatient.check)

    assert counters.usage_of_day(1, TODAY).used == 1


def test_charge_arriving_after_its_cancellation_is_not_made(
    counters: CounterStore, impatient: CounterStore, server: RedisServer
) -> None:
    """A proxy may reorder commands."""
    commands: list[tuple[object, ...]] = []
    asked = impatient._server.connections.ask

    def lose(*command: object) -> object:
        commands.append(command)
        if len(commands) == 2:  # The first command reads the day's usage.
            impatient._server.connections.ask = asked
            raise ResponseLost
        return asked(*command)

    impatient._server.connections.ask = lose
    with pytest.raises(CountersUnavailable):
        impatient.consume([], reserve=UsageReservation(1, 9), now=NOW)
    until_it_is_back(impatient.check)
    asked(*commands[-1])

    assert counters.usage_of_day(1, TODAY).used == 0


@pytest.mark.parametrize(
    "step",
    [
        lambda store: store.consume([], reserve=UsageReservation(1, 9, 7), intent=IntentRequest("a", "b"), now=NOW),
        lambda store: store.report_usage(1, 7, "search", 2, capped=False, now=NOW),
    ],
)
def test_step_that_never_arrived_is_canceled_even_if_the_first_response_is_lost(
    counters: CounterStore, impatient: CounterStore, step: Callable[[CounterStore], object]
) -> None:
    until_it_is_back(lambda: step(impatient))
    used = counters.usage_of_day(1, TODAY).used
    asked = impatient._server.connections.ask

    def lose(*command: object) -> object:
        raise ResponseLost

    def lose_the_response_of_the_second(*command: object) -> object:
        impatient._server.connections.ask = lose_the_response
        return asked(*command)

    def lose_the_response(*command: object) -> object:
        asked(*command)  # A script that is not on the server yet is sent again.
        impatient._server.connections.ask = asked
        raise ResponseLost

    impatient._server.connections.ask = lose
    with pytest.raises(CountersUnavailable):
        step(impatient)
    impatient._server.connections.ask = lose_the_response_of_the_second
    for _ in range(3):
        impatient.check()

    assert counters.usage_of_day(1, TODAY).used == used > 0


def test_timed_out_refund_is_applied_exactly_once(
    counters: CounterStore, impatient: CounterStore, server: RedisServer
) -> None:
    failing = until_it_is_back(lambda: impatient.consume([], reserve=UsageReservation(1, 9), now=NOW)).reservation
    counters.consume([], reserve=UsageReservation(1, 9), now=NOW)
    given_up(server, lambda: impatient.refund(reservation=failing, now=NOW))
    until_it_is_back(impatient.check)

    assert counters.usage_of_day(1, TODAY).used == 1


def test_unsent_step_raises_unavailable_but_not_response_lost(impatient: CounterStore, server: RedisServer) -> None:
    server.stop()
    with pytest.raises(CountersUnavailable) as caught:
        impatient.consume([], reserve=UsageReservation(1, 9), now=NOW)
    assert not isinstance(caught.value, ResponseLost)


@pytest.mark.parametrize("charging", [True, False])
def test_timed_out_settlement_is_applied_once_when_repeated(
    counters: CounterStore, impatient: CounterStore, server: RedisServer, charging: bool
) -> None:
    made = [counters.consume([], reserve=UsageReservation(1, 9), now=NOW).reservation for _ in range(5)]
    search = UncountedSearch(1, None, NOW) if charging else made[0]
    assert search is not None
    for _ in range(2):
        given_up(server, lambda: impatient.settle(search, once="first", now=NOW))
        until_it_is_back(impatient.check)
    until_it_is_back(lambda: impatient.settle(search, once="first", now=NOW))

    assert counters.usage_of_day(1, TODAY).used == (6 if charging else 4)


@pytest.mark.parametrize("operation", ["search", "indexing"])
def test_timed_out_report_without_a_key_does_not_count(
    counters: CounterStore, impatient: CounterStore, server: RedisServer, operation: str
) -> None:
    until_it_is_back(lambda: impatient.report_usage(1, 7, operation, 2, capped=False, now=NOW))
    given_up(server, lambda: impatient.report_usage(1, 7, operation, 5, capped=False, now=NOW))
    until_it_is_back(impatient.check)

    usage = counters.usage_of_day(1, TODAY)
    assert usage.used + usage.indexing == 2


def test_timed_out_report_with_a_key_counts_once_when_repeated(
    counters: CounterStore, impatient: CounterStore, server: RedisServer
) -> None:
    key = IdempotencyKey("monday", "same")
    given_up(server, lambda: impatient.report_usage(1, 7, "search", 5, capped=False, idempotency=key, now=NOW))
    until_it_is_back(lambda: impatient.report_usage(1, 7, "search", 5, capped=False, idempotency=key, now=NOW))

    assert counters.usage_of_day(1, TODAY).used == 5
