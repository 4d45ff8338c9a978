"""Calls are timed and their failures counted; pauses between retries grow."""

from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from app.clock import Backoff, Pauses, observe_calls


class Broken(Exception):
    pass


class Store:
    def read(self, answer: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def store(registry: CollectorRegistry) -> Store:
    seconds = Histogram("seconds", "Time.", ["operation"], registry=registry)
    failures = Counter("failures", "Failures.", ["operation"], registry=registry)
    made = Store()
    observe_calls(made, ["read"], seconds=seconds.labels, failures={Broken: failures.labels})
    return made


def counts(registry: CollectorRegistry) -> tuple[float | None, float | None]:
    labels = {"operation": "read"}
    return registry.get_sample_value("seconds_count", labels), registry.get_sample_value("failures_total", labels)


def test_call_returns_its_value_and_is_timed(store: Store, registry: CollectorRegistry) -> None:
    assert counts(registry) == (0, 0), "both exist before the first call"
    assert store.read("answer") == "answer"
    assert store.read(answer="answer") == "answer"
    assert counts(registry) == (2, 0)


def test_a_failure_is_raised_timed_and_counted(store: Store, registry: CollectorRegistry) -> None:
    with pytest.raises(Broken):
        store.read(Broken())
    assert counts(registry) == (1, 1)


def test_unrelated_error_is_not_counted_as_a_failure(store: Store, registry: CollectorRegistry) -> None:
    with pytest.raises(ValueError, match="wrong"):
        store.read(ValueError("wrong"))
    assert counts(registry) == (1, 0)


def test_other_instances_of_the_class_are_not_observed(store: Store, registry: CollectorRegistry) -> None:
    Store().read("answer")
    assert counts(registry) == (0, 0)


def test_pauses_double_up_to_the_maximum() -> None:
    pauses = Pauses(2.0, 300.0, chance=lambda: 1.0)
    assert [pauses.after(failures) for failures in (1, 2, 3, 7, 8, 9, 5000)] == [2, 4, 8, 128, 256, 300, 300]


@pytest.mark.parametrize(("failures", "least", "most"), [(1, 1.0, 2.0), (4, 8.0, 16.0), (50, 150.0, 300.0)])
def test_half_of_each_pause_is_random(failures: int, least: float, most: float) -> None:
    pauses = Pauses(2.0, 300.0, chance=random.Random(1).random)
    taken = [pauses.after(failures) for _ in range(1000)]
    assert least <= min(taken) < least * 1.05
    assert most * 0.95 < max(taken) <= most


def test_processes_that_failed_together_retry_at_different_times() -> None:
    one, other = (Backoff(lambda: 0.0, Pauses(2.0, 300.0, random.Random(seed).random)) for seed in (1, 2))
    assert one.record_failure(7) != other.record_failure(7)


def test_forgotten_failures_restart_with_the_first_pause() -> None:
    moment = [0.0]
    backoff = Backoff(lambda: moment[0], Pauses(2.0, 300.0, chance=lambda: 1.0))
    assert [backoff.record_failure(7), backoff.record_failure(7), backoff.record_failure(8)] == [2, 4, 2]
    moment[0] = 3.0
    assert backoff.due() == [8]
    moment[0] = 4.0
    assert backoff.due() == [8, 7]
    backoff.forget(7)
    assert backoff.record_failure(7) == 2
    backoff.forget_all_but([8])
    assert 7 not in backoff
    assert 8 in backoff
