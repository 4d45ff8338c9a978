from __future__ import annotations

import gc
import threading
import weakref

import pytest

from app.server.thread_pool import ThreadPool
from tests.patience import PATIENCE_SECONDS, eventually


class Gate:
    """A task that waits until it is let through, and knows which thread does it."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(PATIENCE_SECONDS)
        return threading.current_thread().name


def test_the_thread_that_became_idle_last_has_the_next_task():
    pool = ThreadPool(2, "request")
    first, second = Gate(), Gate()
    futures = [pool.submit(first), pool.submit(second)]
    assert first.begun.wait(PATIENCE_SECONDS)
    assert second.begun.wait(PATIENCE_SECONDS)
    names = []
    for gate, future in ((first, futures[0]), (second, futures[1])):
        gate.may_end.set()
        names.append(future.result(PATIENCE_SECONDS))
        _await_idle(pool, len(names))
    assert names == ["request-1", "request-2"]
    following = []
    for _ in range(3):
        following.append(pool.submit(lambda: threading.current_thread().name).result(PATIENCE_SECONDS))
        _await_idle(pool, 2)
    assert following == ["request-2"] * 3


def _await_idle(pool: ThreadPool, count: int) -> None:
    """A thread is idle a moment after its task's result is there."""
    eventually(lambda: len(pool._idle) == count, "no thread became idle")


def test_tasks_that_find_no_thread_are_done_in_order():
    pool, done = ThreadPool(1, "request"), []
    gate = Gate()
    busy = pool.submit(gate)
    waiting = [pool.submit(done.append, number) for number in range(5)]
    gate.may_end.set()
    for future in waiting:
        future.result(PATIENCE_SECONDS)
    assert busy.result() == "request-1"
    assert done == [0, 1, 2, 3, 4]


def test_while_a_thread_waits_aside_another_works_in_its_place():
    pool = ThreadPool(1, "request")
    turn, aside = threading.Event(), threading.Event()

    def wait() -> str:
        with pool.aside():
            aside.set()
            assert turn.wait(PATIENCE_SECONDS)
        return "waited"

    waiting = pool.submit(wait)
    assert aside.wait(PATIENCE_SECONDS)
    gate = Gate()
    working = pool.submit(gate)
    assert gate.begun.wait(PATIENCE_SECONDS)
    queued = pool.submit(lambda: "queued")
    assert not queued.done(), "one works, as before"
    gate.may_end.set()
    assert working.result(PATIENCE_SECONDS) == "request-2"
    assert queued.result(PATIENCE_SECONDS) == "queued"
    turn.set()
    assert waiting.result(PATIENCE_SECONDS) == "waited"
    pool.shutdown()


def test_what_waits_for_a_thread_gets_that_of_one_that_steps_aside():
    pool = ThreadPool(1, "request")
    go, turn = threading.Event(), threading.Event()

    def wait() -> None:
        assert go.wait(PATIENCE_SECONDS)
        with pool.aside():
            assert turn.wait(PATIENCE_SECONDS)

    waiting = pool.submit(wait)
    queued = pool.submit(lambda: 7)
    go.set()
    assert queued.result(PATIENCE_SECONDS) == 7
    turn.set()
    waiting.result(PATIENCE_SECONDS)
    pool.shutdown()


def test_threads_that_were_needed_for_a_while_end():
    pool = ThreadPool(2, "passing")
    turn = threading.Event()

    def wait() -> None:
        with pool.aside():
            assert turn.wait(PATIENCE_SECONDS)

    waiting = [pool.submit(wait) for _ in range(20)]
    assert pool.submit(lambda: 7).result(PATIENCE_SECONDS) == 7
    turn.set()
    for future in waiting:
        future.result(PATIENCE_SECONDS)
    for _ in range(1000):
        if len(pool._threads) == 2:
            break
        threading.Event().wait(0.01)
    assert len(pool._threads) == 2
    pool.shutdown()


def test_a_task_that_fails_tells_so_and_its_thread_goes_on():
    pool = ThreadPool(1, "request")

    def fail() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        pool.submit(fail).result(PATIENCE_SECONDS)
    assert pool.submit(lambda: 7).result(PATIENCE_SECONDS) == 7


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
    last.result(PATIENCE_SECONDS)
    pool.shutdown()
    assert done == [1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ending")]


def test_an_idle_pool_ends_at_once():
    pool = ThreadPool(3, "idle")
    pool.submit(lambda: None).result(PATIENCE_SECONDS)
    pool.shutdown()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("idle")]


def test_an_idle_thread_keeps_nothing_of_its_last_task():
    pool = ThreadPool(1, "request")
    connection = Gate()
    connection.may_end.set()
    kept = weakref.ref(connection)
    pool.submit(connection).result(PATIENCE_SECONDS)
    _await_idle(pool, 1)
    del connection
    gc.collect()
    assert kept() is None
