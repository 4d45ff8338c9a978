from __future__ import annotations

import gc
import threading
import weakref

import pytest

from app.server import thread_pool
from app.server.thread_pool import ThreadPool
from backends.servers.waiting import waiting
from tests.patience import PATIENCE_SECONDS, eventually


class Gate:
    """A task that waits for a signal and returns the name of its thread."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(PATIENCE_SECONDS)
        return threading.current_thread().name


def test_most_recently_idle_thread_runs_the_next_task():
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
    """Wait, because a thread becomes idle only shortly after its task's result is available."""
    eventually(lambda: len(pool._idle) == count, "no thread became idle")


def test_queued_tasks_run_in_submission_order():
    pool, done = ThreadPool(1, "request"), []
    gate = Gate()
    busy = pool.submit(gate)
    waiting = [pool.submit(done.append, number) for number in range(5)]
    gate.may_end.set()
    for future in waiting:
        future.result(PATIENCE_SECONDS)
    assert busy.result() == "request-1"
    assert done == [0, 1, 2, 3, 4]


def test_thread_waiting_aside_is_replaced_by_another_thread():
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
    assert not queued.done(), "one thread must work, as before"
    gate.may_end.set()
    assert working.result(PATIENCE_SECONDS) == "request-2"
    assert queued.result(PATIENCE_SECONDS) == "queued"
    turn.set()
    assert waiting.result(PATIENCE_SECONDS) == "waited"
    pool.shutdown()


def test_queued_task_runs_when_a_thread_steps_aside():
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


def test_extra_threads_end_when_no_longer_needed():
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


def test_failed_task_raises_its_error_and_the_pool_keeps_working():
    pool = ThreadPool(1, "request")

    def fail() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        pool.submit(fail).result(PATIENCE_SECONDS)
    assert pool.submit(lambda: 7).result(PATIENCE_SECONDS) == 7


def test_shutdown_runs_queued_tasks_and_then_ends_every_thread():
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


def test_shutdown_of_an_idle_pool_ends_its_threads():
    pool = ThreadPool(3, "idle")
    pool.submit(lambda: None).result(PATIENCE_SECONDS)
    pool.shutdown()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("idle")]


def test_idle_thread_holds_no_reference_to_its_last_task():
    pool = ThreadPool(1, "request")
    connection = Gate()
    connection.may_end.set()
    kept = weakref.ref(connection)
    pool.submit(connection).result(PATIENCE_SECONDS)
    _await_idle(pool, 1)
    del connection
    gc.collect()
    assert kept() is None


class Waiters:
    """Tasks that wait for another server until they are released."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._released = threading.Event()

    def __call__(self) -> None:
        with waiting():
            with self._lock:
                self.count += 1
            assert self._released.wait(PATIENCE_SECONDS)

    def release(self) -> None:
        self._released.set()


def test_threads_that_wait_for_servers_use_at_most_half_of_the_slots():
    pool, waiters = ThreadPool(4, "request"), Waiters()
    tasks = [pool.submit(waiters) for _ in range(20)]
    eventually(lambda: waiters.count == 20, "they do not all wait at once")
    gates = [Gate(), Gate()]
    working = [pool.submit(gate) for gate in gates]
    for gate in gates:
        assert gate.begun.wait(PATIENCE_SECONDS)
    queued = pool.submit(lambda: 7)
    assert not queued.done(), "two threads must wait for their turn, and two must work"
    for gate in gates:
        gate.may_end.set()
    assert queued.result(PATIENCE_SECONDS) == 7
    waiters.release()
    for task in (*tasks, *working):
        task.result(PATIENCE_SECONDS)
    _await_idle(pool, 4)
    assert (pool._active, pool._outside) == (0, 0)
    pool.shutdown()


def test_few_waiting_threads_do_not_start_another_thread():
    pool, waiters = ThreadPool(4, "request"), Waiters()
    tasks = [pool.submit(waiters) for _ in range(2)]
    eventually(lambda: waiters.count == 2)
    assert pool._active == 2
    waiters.release()
    for task in tasks:
        task.result(PATIENCE_SECONDS)
    pool.shutdown()


def test_single_thread_never_keeps_its_slot_while_it_waits():
    pool, waiters = ThreadPool(1, "request"), Waiters()
    task = pool.submit(waiters)
    eventually(lambda: waiters.count == 1)
    assert pool.submit(lambda: 7).result(PATIENCE_SECONDS) == 7
    waiters.release()
    task.result(PATIENCE_SECONDS)
    pool.shutdown()


def test_no_more_threads_than_the_maximum_wait_outside(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(thread_pool, "MAX_OUTSIDE", 6)
    pool, waiters = ThreadPool(4, "request"), Waiters()
    tasks = [pool.submit(waiters) for _ in range(20)]
    eventually(lambda: waiters.count == 8)
    queued = pool.submit(lambda: 7)
    assert not queued.done()
    assert len(pool._threads) == 8
    waiters.release()
    for task in tasks:
        task.result(PATIENCE_SECONDS)
    assert queued.result(PATIENCE_SECONDS) == 7
    pool.shutdown()


def test_waiting_within_waiting_counts_once():
    pool = ThreadPool(4, "request")

    def wait() -> int:
        with waiting(), waiting():
            return pool._outside

    assert pool.submit(wait).result(PATIENCE_SECONDS) == 1
    pool.shutdown()
