"""Asking the engines of several sites at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from backends.errors import BackendError, BackendUnavailable, ResponseTooLarge

MAX_SECONDS = 2.0
"""Seconds after which a search over several sites continues without the servers that have not responded."""

MAX_CONCURRENT = 16
"""Maximum number of concurrent requests to one server. Further requests wait for a turn, within the same time limit."""

T = TypeVar("T")


class Fanout:
    """Runs one function for each site: concurrently for sites on servers, and in the caller's thread for others."""

    def __init__(self) -> None:
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    def run(self, servers: Sequence[str | None], functions: Sequence[Callable[[], T]]) -> list[T | BackendError]:
        """Return what each function returns, or the error of an engine that is unavailable or too slow.

        Args:
            servers: Identity of the server that each function queries; ``None`` for engines in this process.
        """
        futures: list[Future[T] | None] = [
            None if server is None else self._threads_of(server).submit(function)
            for server, function in zip(servers, functions, strict=True)
        ]
        # While these run, the servers work.
        local = {at: _outcome(functions[at]) for at, future in enumerate(futures) if future is None}
        wait([future for future in futures if future is not None], timeout=MAX_SECONDS)
        outcomes: list[T | BackendError] = []
        for at, future in enumerate(futures):
            outcomes.append(local[at] if future is None else _outcome_of(future))
        return outcomes

    def _threads_of(self, server: str) -> ThreadPoolExecutor:
        with self._lock:
            # A pool for each server, so that one that hangs does not keep the others waiting. Created at first use, as
            # threads do not survive a fork.
            if server not in self._threads:
                self._threads[server] = ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="site")
            return self._threads[server]

    def close(self) -> None:
        """End the threads without waiting for requests under way."""
        with self._lock:
            for threads in self._threads.values():
                threads.shutdown(wait=False, cancel_futures=True)
            self._threads.clear()


def _outcome_of(future: Future[Any]) -> Any:
    if future.done():
        return _outcome(future.result)
    future.cancel()
    return BackendUnavailable("The search engine did not respond in time.")


def _outcome(function: Callable[[], T]) -> T | BackendError:
    try:
        return function()
    except ResponseTooLarge:
        raise
    except BackendUnavailable as error:
        return error
