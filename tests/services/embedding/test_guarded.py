"""Behavior common to all embedders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import REGISTRY

from app.services.embedding import embedder as guarded
from app.services.embedding.embedder import EmbedderUnavailable, GuardedEmbedder
from tests.waiting import recorded_calls, recorded_pool


class Stub:
    """An embedder that records its requests and fails on demand."""

    model = "stub"
    languages = frozenset({"en"})

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False
        self.is_closed = False

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        self.asked.append(text)
        if self.fails:
            raise EmbedderUnavailable("it is away")
        return np.array([1, 0], np.float32)

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        return np.array([self.embed_query(text, timeout_seconds) for text in texts])

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times = [100.0]
    monkeypatch.setattr(guarded.time, "monotonic", lambda: times[-1])
    return times


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def embedder(stub: Stub) -> GuardedEmbedder:
    return GuardedEmbedder(stub)


def test_guarded_embedder_delegates_to_the_wrapped_embedder(stub: Stub, embedder: GuardedEmbedder) -> None:
    assert (embedder.model, embedder.languages) == ("stub", {"en"})
    assert embedder.embed_documents(["a", "b"], 1.0).shape == (2, 2)
    embedder.close()
    assert stub.is_closed


def test_failed_query_suspends_new_queries_for_one_second(
    stub: Stub, embedder: GuardedEmbedder, clock: list[float]
) -> None:
    embedder.embed_query("known", 0.1)
    stub.fails = True
    for text in ("first", "second"):
        with pytest.raises(EmbedderUnavailable):
            embedder.embed_query(text, 0.1)
    assert stub.asked == ["known", "first"]
    assert embedder.embed_query("known", 0.1).tolist() == [1, 0]

    stub.fails = False
    assert len(embedder.embed_documents(["documents"], 1.0)) == 1
    clock.append(clock[-1] + 0.99)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("third", 0.1)
    clock.append(clock[-1] + 0.02)
    embedder.embed_query("fourth", 0.1)
    assert stub.asked == ["known", "first", "documents", "fourth"]


def test_failed_document_embedding_does_not_suspend_queries(stub: Stub, embedder: GuardedEmbedder) -> None:
    stub.fails = True
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_documents(["a"], 1.0)
    stub.fails = False

    assert embedder.embed_query("a", 0.1).tolist() == [1, 0]


def test_recent_query_vectors_are_cached_read_only_up_to_the_limit(
    stub: Stub, embedder: GuardedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "MAX_CACHED_QUERIES", 2)
    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed_query(text, 0.1)

    assert stub.asked == ["a", "b", "c", "b"]
    with pytest.raises(ValueError, match="read-only"):
        embedder.embed_query("a", 0.1)[0] = 5


def test_embedder_metrics_record_durations_and_failures(stub: Stub, embedder: GuardedEmbedder) -> None:
    def sample(name: str) -> float:
        return REGISTRY.get_sample_value(name, {"operation": "embed_query"}) or 0.0

    calls, failures = sample("search_embedder_seconds_count"), sample("search_embedder_failures_total")
    embedder.embed_query("a", 0.1)
    stub.fails = True
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("b", 0.1)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("c", 0.1)

    assert sample("search_embedder_seconds_count") == calls + 2
    assert sample("search_embedder_failures_total") == failures + 1


def test_a_query_that_waits_for_the_embedder_lets_other_requests_work(
    stub: Stub, embedder: GuardedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded_pool() as worker_pool:
        was_waiting = recorded_calls(monkeypatch, stub, "embed_query", worker_pool)
        embedder.embed_query("a", 1.0)
        stub.fails = True
        with pytest.raises(EmbedderUnavailable):
            GuardedEmbedder(stub).embed_query("b", 1.0)
    assert was_waiting == [True, True]
    assert not worker_pool.is_waiting
