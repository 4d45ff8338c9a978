"""Which requests an engine gets that does not respond."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from backends.errors import EngineNotAsked
from backends.servers.silence import MAX_REQUESTS, MAX_WAITING, PAUSE_SECONDS, PROBE_SECONDS, SUSPECT_SECONDS, Silence
from tests.backends.fakes.clock import Clock
from tests.patience import PATIENCE_SECONDS, eventually

LIMIT = 5.0
"""Seconds that every caller has."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silence(clock: Clock) -> Silence:
    return Silence(clock=clock.monotonic)


def make_silent(silence: Silence, clock: Clock) -> None:
    assert silence.begin(LIMIT)
    clock.sleep(LIMIT)
    silence.end(responded=False)
    assert not silence.begin(LIMIT), "the caller must probe"
    clock.sleep(PROBE_SECONDS)
    silence.end_probe(responded=False)


def is_rejected(silence: Silence) -> bool:
    try:
        silence.begin(LIMIT)
    except EngineNotAsked:
        return True
    return False


def in_threads(count: int, work: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("responded", [True, False])
def test_after_a_second_without_any_response_one_caller_probes_and_the_others_wait_for_the_outcome(
    silence: Silence, clock: Clock, responded: bool
) -> None:
    assert silence.begin(LIMIT)
    clock.sleep(SUSPECT_SECONDS - 0.01)
    assert silence.begin(LIMIT)
    clock.sleep(0.01)
    assert not silence.begin(LIMIT)
    rejected: list[bool] = []
    threads = in_threads(3, lambda: rejected.append(is_rejected(silence)))
    eventually(lambda: silence._waiting == 3, "they do not wait")
    assert rejected == []
    silence.end_probe(responded=responded)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert rejected == [not responded] * 3


def test_silent_engine_gets_one_probe_at_a_time_and_no_other_request(silence: Silence, clock: Clock) -> None:
    make_silent(silence, clock)
    assert is_rejected(silence)
    for _ in range(3):
        clock.sleep(PAUSE_SECONDS - 0.01)
        assert is_rejected(silence)
        clock.sleep(0.01)
        assert not silence.begin(LIMIT)
        assert is_rejected(silence), "another caller is probing"
        clock.sleep(PROBE_SECONDS)
        silence.end_probe(responded=False)
        assert is_rejected(silence)


def test_one_good_probe_ends_the_silence(silence: Silence, clock: Clock) -> None:
    make_silent(silence, clock)
    clock.sleep(PAUSE_SECONDS)
    assert not silence.begin(LIMIT)
    silence.end_probe(responded=True)
    clock.sleep(3600)
    assert silence.begin(LIMIT)
    assert silence.begin(LIMIT)


def test_the_response_to_an_earlier_request_ends_the_silence(silence: Silence, clock: Clock) -> None:
    assert silence.begin(LIMIT)
    make_silent(silence, clock)
    silence.end(responded=True)
    assert silence.begin(LIMIT)


def test_slow_requests_of_one_customer_never_make_an_engine_silent(silence: Silence, clock: Clock) -> None:
    for _ in range(10):
        assert silence.begin(LIMIT)
        clock.sleep(LIMIT)
        silence.end(responded=False)
        assert not silence.begin(LIMIT)
        silence.end_probe(responded=True)
        assert silence.begin(LIMIT)
        silence.end(responded=True)


def test_responses_to_others_while_a_slow_request_waits_need_no_probe(silence: Silence, clock: Clock) -> None:
    assert silence.begin(60)
    for _ in range(100):
        clock.sleep(SUSPECT_SECONDS / 2)
        assert silence.begin(LIMIT)
        silence.end(responded=True)


def test_a_quiet_engine_is_not_suspected(silence: Silence, clock: Clock) -> None:
    for _ in range(3):
        assert silence.begin(LIMIT)
        silence.end(responded=True)
        clock.sleep(3600)


def test_a_caller_with_too_little_time_does_not_probe(silence: Silence, clock: Clock) -> None:
    assert silence.begin(LIMIT)
    clock.sleep(SUSPECT_SECONDS)
    assert silence.begin(PROBE_SECONDS - 0.01)
    assert not silence.begin(LIMIT)
    silence.end_probe(responded=False)
    clock.sleep(PAUSE_SECONDS)
    with pytest.raises(EngineNotAsked):
        silence.begin(PROBE_SECONDS - 0.01)


def test_requests_beyond_the_maximum_wait_for_their_turn_or_are_rejected() -> None:
    silence, begun = Silence(), []
    for _ in range(MAX_REQUESTS):
        assert silence.begin(PATIENCE_SECONDS)
    # A response ends any suspicion, however slowly this test runs.
    silence.end(responded=True)
    assert silence.begin(PATIENCE_SECONDS)
    threads = in_threads(2, lambda: begun.append(silence.begin(PATIENCE_SECONDS)))
    eventually(lambda: silence._waiting == 2, "they do not wait")
    assert begun == []
    for _ in range(2):
        silence.end(responded=True)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert begun == [True, True]


def test_waiting_callers_are_rejected_together_when_the_engine_is_found_silent(clock: Clock) -> None:
    silence, outcomes = Silence(clock=clock.monotonic), []
    for _ in range(MAX_REQUESTS):
        assert silence.begin(LIMIT)
    threads = in_threads(MAX_WAITING, lambda: outcomes.append(is_rejected(silence)))
    eventually(lambda: silence._waiting == MAX_WAITING, "they do not wait")
    assert is_rejected(silence), "too many requests wait"
    with silence._changed:
        silence._is_probing = True
    silence.end_probe(responded=False)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert outcomes == [True] * MAX_WAITING


def test_a_caller_waits_no_longer_than_its_time(silence: Silence) -> None:
    for _ in range(MAX_REQUESTS):
        assert silence.begin(LIMIT)
    with pytest.raises(EngineNotAsked):
        silence.begin(0.0)
