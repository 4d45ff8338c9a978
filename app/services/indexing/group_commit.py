"""Several writers, one transaction: whoever comes while a commit is under way joins the next one.

A commit costs the disk's time whatever it holds, so under load its cost is shared by all that wait.
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

MAX_SHARED = 64
"""Most writers that share a transaction."""


@dataclass(frozen=True, slots=True)
class Written(Generic[Result]):
    """The outcome of a writer.

    Attributes:
        result: For its caller.
        changed_account: The account whose cached credentials are stale after the commit, if any.
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
    """Runs writers of one process in shared transactions, those of one account in the order they came."""

    def __init__(self, database: Database, counters: CounterStore):
        self._database = database
        self._counters = counters
        self._queue: list[_Waiting] = []
        self._led = False
        self._lock = threading.Lock()

    def run(self, account_id: int, work: Callable[[Session], Written[Result]]) -> Result:
        """Run ``work``, which writes for one account, in a transaction and return when it is committed.

        ``work`` is undone alone if it raises, and its error is raised here; the others go on. If the transaction
        as a whole fails, all that shared it raise.
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
        """The same for a request that can be worked on with others of its ``key`` at once: statements are shared too.

        Args:
            work: Takes requests in the order they came; gives the result of each, or the error to be raised to its
                caller. If it raises, nothing of any of them is written, and all raise.
        """
        return cast(Result, self._wait(_Waiting(account_id, key, request, work)))

    def _wait(self, waiting: _Waiting) -> Any:
        with self._lock:
            self._queue.append(waiting)
            if not self._led:
                self._led = waiting.leads = True
        if not waiting.leads:
            waiting.woken.wait()
        if waiting.leads:
            self._lead()
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    def _lead(self) -> None:
        with self._lock:
            group, self._queue = self._queue[:MAX_SHARED], self._queue[MAX_SHARED:]
        try:
            with working_for(len(group)):
                self._commit(group)
        except BaseException as error:  # noqa: BLE001 - raised in every thread that shared the transaction.
            for waiting in group:
                waiting.error = waiting.error or error
        finally:
            for waiting in group:
                waiting.woken.set()
            with self._lock:
                if self._queue:
                    self._queue[0].leads = True
                    self._queue[0].woken.set()
                else:
                    self._led = False

    def _commit(self, group: list[_Waiting]) -> None:
        with ExitStack() as after_commit, self._database.write() as session:
            changed: set[int] = set()
            for members in _by_key(group):
                try:
                    with session.begin_nested():
                        written = members[0].work(session, [waiting.request for waiting in members])
                except Exception as error:
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
            for account_id in sorted(changed):
                after_commit.enter_context(changed_credentials(self._counters, account_id))


def _by_key(group: Iterable[_Waiting]) -> Iterable[list[_Waiting]]:
    """The keys of works, one at a time; accounts in one order, in which all processes lock them without a deadlock."""
    found: dict[tuple[int, Hashable], list[_Waiting]] = {}
    for waiting in group:
        found.setdefault((waiting.account_id, waiting.key), []).append(waiting)
    return sorted(found.values(), key=lambda members: members[0].account_id)
