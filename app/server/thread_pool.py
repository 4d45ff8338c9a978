"""The threads that handle requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from backends.servers.waiting import set_worker_pool

MAX_OUTSIDE = 128
"""Maximum number of threads that wait for other servers without counting as active. Each costs memory."""

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool:
    """A thread pool that gives each task to the most recently idle thread, whose data is still in the CPU's caches.

    ``concurrent.futures.ThreadPoolExecutor`` rotates its threads, and needlessly wakes another thread with each task.
    This takes a tenth of the CPU time of a small request.

    Args:
        max_active: Maximum number of active threads. A thread is started if no thread is idle when a task arrives, and
            ends with the process.
        name: Prefix of the threads' names.
    """

    def __init__(self, max_active: int, name: str):
        self._max_active = max_active
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []
        self._threads: list[threading.Thread] = []
        self._started = 0
        self._active = 0
        """Number of threads with a task, excluding threads that stepped aside."""
        self._outside = 0
        """Number of threads that wait for other servers."""
        self._is_shut_down = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task as soon as a thread is free. Waiting tasks run in order.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        task = partial(_run, future, partial(fn, *args, **kwargs))
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("the pool is shut down")
            if self._active < self._max_active:
                self._begin(task)
            else:
                self._waiting.append(task)
        return future

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let another thread become active while this thread waits in the block.

        After the block, one thread too many may be active until a task ends.
        """
        with self._lock:
            self._give_place()
        try:
            yield
        finally:
            with self._lock:
                self._active += 1

    def _give_place(self) -> None:
        self._active -= 1
        if self._waiting and self._active < self._max_active:
            self._begin(self._waiting.popleft())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for another server in the block.

        Waiting threads count as active up to half of the maximum. Further threads do not, so that a server that hangs
        never stops requests that don't need it.
        """
        with self._lock:
            self._outside += 1
            is_aside = self._max_active // 2 < self._outside <= MAX_OUTSIDE
            if is_aside:
                self._give_place()
        try:
            yield
        finally:
            with self._lock:
                self._outside -= 1
                if is_aside:
                    self._active += 1

    def shutdown(self, wait: bool = True) -> None:
        """Accept no more tasks. Waiting tasks still run.

        Args:
            wait: Whether to return only when all tasks are done.
        """
        with self._lock:
            self._is_shut_down = True
            while self._idle:
                self._idle.pop().put(None)
        if wait:
            for thread in list(self._threads):
                thread.join()

    def _begin(self, task: Callable[[], None]) -> None:
        self._active += 1
        if self._idle:
            # The last thread in the list was active most recently.
            self._idle.pop().put(task)
            return
        inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        inbox.put(task)
        self._started += 1
        name = f"{self._name}-{self._started}"
        thread = threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self, inbox: SimpleQueue[Callable[[], None] | None]) -> None:
        """Run tasks until the pool shuts down or enough threads are idle."""
        set_worker_pool(self)
        while (task := inbox.get()) is not None:
            while task is not None:
                task()
                with self._lock:
                    task = self._waiting.popleft() if self._waiting and self._active <= self._max_active else None
                    if task is None:
                        self._active -= 1
                        if self._is_shut_down:
                            return
                        # Threads beyond the maximum were started while others stepped aside.
                        if len(self._idle) >= self._max_active:
                            self._threads.remove(threading.current_thread())
                            return
                        self._idle.append(inbox)


def _run(future: Future[T], task: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:  # noqa: BLE001 - the future raises it in the caller.
        future.set_exception(error)
    else:
        future.set_result(result)
