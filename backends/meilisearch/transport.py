"""Sending requests to a Meilisearch server, and waiting for the tasks it makes of them.

No client package is used: the official one opens a connection per request, has no timeout and is not safe in threads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from backends.errors import BackendUnavailable, UnreadableReply
from backends.servers.http import Budget, EngineAnswer, HttpPool, TransportFailure
from backends.servers.replies import Refusal, checked, readable
from backends.servers.server_url import ServerUrl

_RETRY_SECONDS = 0.05
_FIRST_POLL_SECONDS = 0.003
_LAST_POLL_SECONDS = 0.05


class RefusedByMeilisearch(Refusal):
    """Meilisearch said no.

    Attributes:
        code: Its name of the error, such as ``index_not_found``.
        message: Its own words; never shown to a caller.
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

    A server that was restored, or started empty, counts its tasks anew: another one may have the number.
    """

    uid: int
    index: str
    kind: str
    enqueued_at: str

    @classmethod
    def of(cls, told: Mapping[str, Any], uid: int) -> Task:
        """A task as Meilisearch tells of it."""
        return cls(uid, told["indexUid"], told["type"], told["enqueuedAt"])


class MeilisearchTransport:
    """Requests and tasks of one server."""

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
        """Send one request, once more if the connection broke; repeating it must be harmless.

        Args:
            seconds: The time for it; ``None`` for the usual one.

        Returns:
            The answer's JSON, or ``None`` if it has none.

        Raises:
            RefusedByMeilisearch: Meilisearch said no.
            BackendUnavailable: No answer came in time, or none that can be read.
        """
        budget = self.pool.budget(seconds)
        data = None if body is None else orjson.dumps(body)
        failure: Exception | None = None
        for turn in range(2):
            try:
                answer = self.pool.send(method, self.url.nodes[0], path, budget, body=data, params=params)
            except TransportFailure as error:
                failure = error
                if error.kind == "timeout":
                    break
            else:
                if answer.status < 500 and answer.status != 429:
                    answer = checked(answer, _refusal)
                    return answer.json() if answer.body else None
                failure = EngineAnswer.of(answer)
            if turn == 0:
                time.sleep(min(_RETRY_SECONDS, budget.remaining()))
        wait = int(answer.retry_after) if isinstance(failure, EngineAnswer) and answer.retry_after.isdigit() else 5
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
        """Send a change of an index; returns the task that will do it.

        Raises:
            RefusedByMeilisearch, BackendUnavailable: As for :meth:`ask`.
        """
        answer = self.ask(method, path, body, params=params, seconds=seconds)
        with readable():
            task = Task.of(answer, answer["taskUid"])
        if type(task.uid) is not int or task.index != index:
            raise UnreadableReply
        return task

    def wait(self, tasks: Sequence[Task], shares: int = 0) -> None:
        """Return when every task is done; together they have the time of all.

        Meilisearch may do tasks that came one after the other in one go, so that all end with the last one.

        Args:
            shares: How many times the time limit that is, if more than once for each.

        Raises:
            RefusedByMeilisearch: A task failed.
            BackendUnavailable: A task is not done in time. It may still be done later.
        """
        budget = Budget(self.url.timeout_seconds * max(len(tasks), shares))
        for task in tasks:
            end = self._await_end(task, budget)
            if end["status"] == "failed":
                with readable():
                    raise _refusal(400, end["error"])
            if end["status"] != "succeeded":
                raise BackendUnavailable("The search engine did not take the change.")

    def await_earlier(self, index: str) -> None:
        """Return when nothing is left of changes of an index that were given up.

        They are still in Meilisearch's queue. What is sent again while they are there comes on top of them, and with
        every try the queue gets longer. How they ended does not matter, since all is sent again.

        Raises:
            BackendUnavailable: They are not done in time.
        """
        unfinished = {"indexUids": index, "statuses": "enqueued,processing", "limit": "1"}
        with readable():
            for task in self.ask("GET", "/tasks", params=unfinished)["results"]:
                # The newest, and the tasks of an index are done in order.
                self._await_end(Task.of(task, task["uid"]), Budget(self.url.timeout_seconds))

    def _await_end(self, task: Task, budget: Budget) -> dict[str, Any]:
        pause = _FIRST_POLL_SECONDS
        while True:
            try:
                answer: dict[str, Any] = self.ask("GET", f"/tasks/{int(task.uid)}")
                with readable():
                    is_same, status = Task.of(answer, answer["uid"]) == task, answer["status"]
            except RefusedByMeilisearch as error:
                if error.code != "task_not_found":
                    raise
                is_same = False
            if not is_same:
                raise BackendUnavailable("The search engine has lost the change.")
            if status not in ("enqueued", "processing"):
                return answer
            if budget.remaining() <= pause:
                raise BackendUnavailable("The search engine has not finished in time; it may finish later.")
            time.sleep(pause)
            pause = min(_LAST_POLL_SECONDS, pause * 1.5)


def _refusal(_status: int, reply: Any) -> RefusedByMeilisearch:
    return RefusedByMeilisearch(str(reply["code"]), str(reply["message"]))
