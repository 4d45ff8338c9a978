"""Group commit: writers that arrive during a commit share the next transaction.

A commit takes the same disk time regardless of its content, so under load all waiting writers share its cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from sqlalchemy.orm import Session

from app.counters.base import CounterStore
from app.services.access.credentials import changed_credentials
from app.services.usage.cpu_limits import working_for
from app.storage.database import Database

Request = TypeVar("Request")
Result = TypeVar("Result")

MAX_GROUP = 64
"""Maximum number of writers that share a transaction."""


@dataclass(frozen=True, slots=True)
class Written(Generic[Result]):
    """The outcome of a writer.

    Attributes:
        result: The result for its caller.
        changed_account: ID of the account whose cached credentials are stale after the commit, if any.
    """

    result: Result
    changed_account: int | None = None


@dataclass(slots=True)
class _Waiting:
    account_id: int
    key: Hashable
    request: Any
    work: Callable[[Session, Sequence[Any]], Written[Sequence[Any]]]
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    result: Any = None
    error: BaseException | None = None


class GroupCommit:
    """Runs the writers of one process in shared transactions. Writers of the same account run in order of arrival."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._queue: list[_Waiting] = []
        self._has_leader = False
        self._lock = threading.Lock()

    def run(self, account_id: int, work: Callable[[Session], Written[Result]]) -> Result:
        """Run ``work``, which writes for one account, in a transaction, and return when it is committed.

        If ``work`` raises, only its changes are rolled back, and the error is raised here. If the whole transaction
        fails, the error is raised in all writers that shared it.
        """

        def alone(session: Session, _: Sequence[None]) -> Written[Sequence[Result]]:
            written = work(session)
            return Written([written.result], written.changed_account)

        return cast(Result, self._wait(_Waiting(account_id, object(), None, alone)))

    def run_together(
        self,
        account_id: int,
        key: Hashable,
        request: Request,
        work: Callable[[Session, Sequence[Request]], Written[Sequence[Result | Exception]]],
    ) -> Result:
        """Run a request together with other requests of the same ``key``, so that they also share SQL statements.

        Args:
            work: Receives requests in order of arrival, and returns for each a result, or an error to raise in its
                caller. If it raises, none of the requests is written, and the error is raised in all callers.
        """
        return cast(Result, self._wait(_Waiting(account_id, key, request, work)))

    def _wait(self, waiting: _Waiting) -> Any:
        with self._lock:
            self._queue.append(waiting)
            if not self._has_leader:
                self._has_leader = waiting.leads = True
        if not waiting.leads:
            # Woken with a result, or as the leader of the next group.
            waiting.woken.wait()
        if waiting.leads:
            self._lead()
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    def _lead(self) -> None:
        with self._lock:
            # The leader is always first in the queue, so its own request is part of the group.
            group, self._queue = self._queue[:MAX_GROUP], self._queue[MAX_GROUP:]
        try:
            # This thread works for all members of the group, so their callers share its CPU time.
            with working_for(len(group)):
                self._commit(group)
        except BaseException as error:  # noqa: BLE001 - raised in every thread that shared the transaction.
            for waiting in group:
                # A writer whose own work failed keeps its own error.
                waiting.error = waiting.error or error
        finally:
            for waiting in group:
                waiting.woken.set()
            with self._lock:
                if self._queue:
                    self._queue[0].leads = True
                    # The next leader is a waiting thread: this one has its result, and its client must not wait for
                    # another group.
                    self._queue[0].woken.set()
                else:
                    self._has_leader = False

    def _commit(self, group: list[_Waiting]) -> None:
        with ExitStack() as after_commit, self._database.write() as session:
            changed: set[int] = set()
            for members in _by_key(group):
                try:
                    # A savepoint for each writer, so that one invalid request does not roll back the others.
                    with session.begin_nested():
                        written = members[0].work(session, [waiting.request for waiting in members])
                except Exception as error:
                    # The savepoint is gone, and with it the transaction: the error concerns the whole group.
                    if not session.is_active or not session.in_transaction():
                        raise
                    for waiting in members:
                        waiting.error = error
                    continue
                for waiting, outcome in zip(members, written.result, strict=True):
                    if isinstance(outcome, Exception):
                        waiting.error = outcome
                    else:
                        waiting.result = outcome
                if written.changed_account is not None:
                    changed.add(written.changed_account)
            # Entered last and thus left after the commit, because the stack encloses the transaction.
            for account_id in sorted(changed):
                after_commit.enter_context(changed_credentials(self._counters, account_id))


def _by_key(group: Iterable[_Waiting]) -> Iterable[list[_Waiting]]:
    """Group writers by key, sorted by account: all processes lock accounts in this order, which avoids deadlocks."""
    groups: dict[tuple[int, Hashable], list[_Waiting]] = {}
    for waiting in group:
        groups.setdefault((waiting.account_id, waiting.key), []).append(waiting)
    return sorted(groups.values(), key=lambda members: members[0].account_id)
