"""All calls are timed, and failed calls are counted."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from app.timing import observe_calls


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
    observe_calls(made, ["read"], seconds=seconds.labels, failures=failures.labels, failure=Broken)
    return made


def counts(registry: CollectorRegistry) -> tuple[float | None, float | None]:
    labels = {"operation": "read"}
    return registry.get_sample_value("seconds_count", labels), registry.get_sample_value("failures_total", labels)


def test_call_returns_its_value_and_is_timed(store: Store, registry: CollectorRegistry) -> None:
    assert counts(registry) == (0, 0), "both are there before the first call"
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
