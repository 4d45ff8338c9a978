from __future__ import annotations

import gc
import threading
import weakref

import pytest

from app.web.thread_pool import ThreadPool

_SECONDS = 10.0


class Gate:
    """A task that waits until it is let through, and knows which thread does it."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(_SECONDS)
        return threading.current_thread().name


def test_the_thread_that_became_idle_last_has_the_next_task():
    pool = ThreadPool(2, "request")
    first, second = Gate(), Gate()
    futures = [pool.submit(first), pool.submit(second)]
    assert first.begun.wait(_SECONDS)
    assert second.begun.wait(_SECONDS)
    names = []
    for gate, future in ((first, futures[0]), (second, futures[1])):
        gate.may_end.set()
        names.append(future.result(_SECONDS))
        _await_idle(pool, len(names))
    assert names == ["request-1", "request-2"]
    following = []
    for _ in range(3):
        following.append(pool.submit(lambda: threading.current_thread().name).result(_SECONDS))
        _await_idle(pool, 2)
    assert following == ["request-2"] * 3


def _await_idle(pool: ThreadPool, count: int) -> None:
    """A thread is idle a moment after its task's result is there."""
    deadline = threading.Event()
    for _ in range(1000):
        if len(pool._idle) == count:
            return
        deadline.wait(0.01)
    pytest.fail("no thread became idle")


def test_tasks_that_find_no_thread_are_done_in_order():
    pool, done = ThreadPool(1, "request"), []
    gate = Gate()
    busy = pool.submit(gate)
    waiting = [pool.submit(done.append, number) for number in range(5)]
    gate.may_end.set()
    for future in waiting:
        future.result(_SECONDS)
    assert busy.result() == "request-1"
    assert done == [0, 1, 2, 3, 4]


def test_a_task_that_fails_tells_so_and_its_thread_goes_on():
    pool = ThreadPool(1, "request")

    def fail() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        pool.submit(fail).result(_SECONDS)
    assert pool.submit(lambda: 7).result(_SECONDS) == 7


def test_shutting_down_ends_every_thread_after_what_waits():
    pool, done = ThreadPool(2, "ending"), []
    gates = [Gate(), Gate()]
    for gate in gates:
        pool.submit(gate)
    last = pool.submit(done.append, 1)
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(lambda: None)
    for gate in gates:
        gate.may_end.set()
    last.result(_SECONDS)
    pool.shutdown()
    assert done == [1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ending")]


def test_an_idle_pool_ends_at_once():
    pool = ThreadPool(3, "idle")
    pool.submit(lambda: None).result(_SECONDS)
    pool.shutdown()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("idle")]


def test_an_idle_thread_keeps_nothing_of_its_last_task():
    pool = ThreadPool(1, "request")
    connection = Gate()
    connection.may_end.set()
    kept = weakref.ref(connection)
    pool.submit(connection).result(_SECONDS)
    _await_idle(pool, 1)
    del connection
    gc.collect()
    assert kept() is None
