"""The threads that answer requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool:
    """Threads of which the one that became idle last gets the next task: what it needs is still in the CPU's caches.

    ``concurrent.futures.ThreadPoolExecutor`` lets its threads take turns, and with every task wakes one more of them
    for nothing. For a request that asks little of the service that is a tenth of its CPU time.

    Args:
        most: Threads at work at most; one is started when a task finds none idle. They end with the process.
        name: What their names begin with.
    """

    def __init__(self, most: int, name: str):
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []
        self._threads: list[threading.Thread] = []
        self._started = 0
        self._at_work = 0
        """Threads with a task, but for those that stepped aside."""
        self._is_shut_down = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a task done, as soon as a thread is free; tasks that wait are done in order.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        task = partial(_run, future, partial(fn, *args, **kwargs))
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("the pool is shut down")
            if self._at_work < self._most:
                self._begin(task)
            else:
                self._waiting.append(task)
        return future

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let another thread work in the place of this one, which waits in there with its task.

        Afterwards there is one thread more than there should be, until one of them is done with its task.
        """
        with self._lock:
            self._at_work -= 1
            if self._waiting and self._at_work < self._most:
                self._begin(self._waiting.popleft())
        try:
            yield
        finally:
            with self._lock:
                self._at_work += 1

    def shutdown(self, wait: bool = True) -> None:
        """Take no more tasks; those that wait are still done.

        Args:
            wait: Whether to return only when all is done.
        """
        with self._lock:
            self._is_shut_down = True
            while self._idle:
                self._idle.pop().put(None)
        if wait:
            for thread in list(self._threads):
                thread.join()

    def _begin(self, task: Callable[[], None]) -> None:
        self._at_work += 1
        if self._idle:
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
        """Do tasks until there will be no more, or enough others are idle."""
        while (task := inbox.get()) is not None:
            while task is not None:
                task()
                with self._lock:
                    task = self._waiting.popleft() if self._waiting and self._at_work <= self._most else None
                    if task is None:
                        self._at_work -= 1
                        if self._is_shut_down:
                            return
                        if len(self._idle) >= self._most:
                            self._threads.remove(threading.current_thread())
                            return
                        self._idle.append(inbox)


def _run(future: Future[T], task: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:  # noqa: BLE001 - whoever has the future is told.
        future.set_exception(error)
    else:
        future.set_result(result)
