"""Sending requests to a Meilisearch server, and waiting for the tasks that it creates.

No client package is used: the official one opens a connection per request, has no timeout, and is not thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from backends.errors import BackendUnavailable, UnreadableResponse
from backends.servers.http import Budget, EngineError, HttpPool, TransportFailure
from backends.servers.responses import ServerRejection, checked, readable
from backends.servers.server_url import ServerUrl
from backends.servers.waiting import sleep

_RETRY_SECONDS = 0.05
_FIRST_POLL_SECONDS = 0.003
_LAST_POLL_SECONDS = 0.05


class RejectedByMeilisearch(ServerRejection):
    """Meilisearch rejected a request.

    Attributes:
        code: Meilisearch's error code, such as ``index_not_found``.
        message: Meilisearch's message; never shown to a caller.
    """

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message[:500]}")
        self.code = code
        self.message = message

    @property
    def is_missing_index(self) -> bool:
        return self.code == "index_not_found"


@dataclass(frozen=True, slots=True)
class Task:
    """A change in Meilisearch's queue.

    A server that was restored, or started empty, restarts its numbering: another task may have the same number.
    """

    uid: int
    index: str
    kind: str
    enqueued_at: str

    @classmethod
    def of(cls, description: Mapping[str, Any], uid: int) -> Task:
        """Parse Meilisearch's description of a task."""
        return cls(uid, description["indexUid"], description["type"], description["enqueuedAt"])


class MeilisearchTransport:
    """Sends requests to one server, and waits for its tasks."""

    def __init__(self, url: ServerUrl):
        self.url = url
        self.pool = HttpPool(url, {"Authorization": f"Bearer {url.key}"})

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Send one request, and again if the connection breaks; repeating it must be harmless.

        Args:
            seconds: Time limit; ``None`` for the usual limit.

        Returns:
            The JSON of the response, or ``None`` if it is empty.

        Raises:
            RejectedByMeilisearch: Meilisearch rejected the request.
            BackendUnavailable: No readable response arrived in time.
        """
        budget = self.pool.budget(seconds)
        data = None if body is None else orjson.dumps(body)
        failure: Exception | None = None
        for turn in range(2):
            try:
                response = self.pool.send(method, self.url.nodes[0], path, budget, body=data, params=params)
            except TransportFailure as error:
                failure = error
                # The request used up its time, so there is none for a second attempt.
                if error.kind == "timeout":
                    break
            else:
                if response.status < 500 and response.status != 429:
                    response = checked(response, _rejection)
                    return response.json() if response.body else None
                failure = EngineError.of(response)
            if turn == 0:
                sleep(min(_RETRY_SECONDS, budget.remaining()))
        wait = int(response.retry_after) if isinstance(failure, EngineError) and response.retry_after.isdigit() else 5
        raise BackendUnavailable(retry_after=max(1, wait)) from failure

    def change(
        self,
        index: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Task:
        """Send a change of an index, and return the task that will apply it.

        Raises:
            RejectedByMeilisearch, BackendUnavailable: As for :meth:`ask`.
        """
        response = self.ask(method, path, body, params=params, seconds=seconds)
        with readable():
            task = Task.of(response, response["taskUid"])
        # Not ``isinstance``, which accepts a Boolean. The number becomes part of a path.
        if type(task.uid) is not int or task.index != index:
            raise UnreadableResponse
        return task

    def wait(self, tasks: Sequence[Task], shares: int = 0) -> None:
        """Wait until every task is done. The tasks share the sum of their time limits.

        Meilisearch may merge consecutive tasks, so that all of them end with the last one.

        Args:
            shares: Number of time limits to add up, if more than one per task.

        Raises:
            RejectedByMeilisearch: A task failed.
            BackendUnavailable: A task was not done in time. It may still be done later.
        """
        budget = Budget(self.url.timeout_seconds * max(len(tasks), shares))
        for task in tasks:
            end = self._await_end(task, budget)
            if end["status"] == "failed":
                with readable():
                    raise _rejection(400, end["error"])
            if end["status"] != "succeeded":
                raise BackendUnavailable("The search engine did not accept the change.")

    def await_earlier(self, index: str) -> None:
        """Wait until Meilisearch has no abandoned change of an index left.

        Abandoned changes are still in Meilisearch's queue. Sending changes again while they are there makes the queue
        longer with every attempt. Their outcome does not matter, because everything is sent again.

        Raises:
            BackendUnavailable: Abandoned changes were not finished in time.
        """
        unfinished = {"indexUids": index, "statuses": "enqueued,processing", "limit": "1"}
        with readable():
            for task in self.ask("GET", "/tasks", params=unfinished)["results"]:
                # This is the newest task, and the tasks of an index are done in order.
                self._await_end(Task.of(task, task["uid"]), Budget(self.url.timeout_seconds))

    def _await_end(self, task: Task, budget: Budget) -> dict[str, Any]:
        pause = _FIRST_POLL_SECONDS
        while True:
            try:
                response: dict[str, Any] = self.ask("GET", f"/tasks/{int(task.uid)}")
                with readable():
                    is_same, status = Task.of(response, response["uid"]) == task, response["status"]
            except RejectedByMeilisearch as error:
                if error.code != "task_not_found":
                    raise
                is_same = False
            # The server was restored or replaced, and may have given the number to another task.
            if not is_same:
                raise BackendUnavailable("The search engine has lost the change.")
            if status not in ("enqueued", "processing"):
                return response
            if budget.remaining() <= pause:
                raise BackendUnavailable("The search engine did not finish in time; it may finish later.")
            sleep(pause)
            pause = min(_LAST_POLL_SECONDS, pause * 1.5)


def _rejection(_status: int, response: Any) -> RejectedByMeilisearch:
    return RejectedByMeilisearch(str(response["code"]), str(response["message"]))
