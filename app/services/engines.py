"""The search engines of SEARCH_URL, and the outbox of tasks for them.

A task is written in the transaction that makes it necessary, and executed afterwards, however long the engine is
unavailable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from prometheus_client import Counter, Histogram
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import Pauses, now, observe_calls
from app.counters.base import CounterStore
from app.models import EngineTask, StoredDocument, Sync
from app.models.base import has_come
from app.services.analytics import events
from app.services.embedding.stored_vectors import remove_vectors
from app.storage.database import Database, is_unavailable
from app.storage.machine_process import Locks
from backends.base import SearchBackend
from backends.errors import BackendError, BackendMisconfigured, BackendUnavailable, EngineNotAsked

ENGINE_SECONDS = Histogram(
    "search_engine_seconds",
    "Time that the search engine takes.",
    ["operation"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
ENGINE_FAILURES = Counter(
    "search_engine_failures_total", "Operations for which the search engine was unavailable or too slow.", ["operation"]
)
ENGINE_NOT_ASKED = Counter(
    "search_engine_not_asked_total",
    "Operations that failed immediately, because the search engine did not respond to earlier ones.",
    ["engine"],
)
OPERATIONS = (
    "search", "find_titles", "upsert", "delete", "count", "create_index", "delete_index", "list_indexes", "check",
    "issue_credential", "revoke_credential",
)  # fmt: skip
"""Observed methods of :class:`SearchBackend`."""


def _not_asked_counter(identity: str, _operation: str) -> Counter:
    return ENGINE_NOT_ASKED.labels(identity)


class Engines:
    """The configured search engines, by identity.

    Args:
        engines: At least one. The first one is the default.

    Raises:
        ValueError: Two have the same identity.
    """

    def __init__(self, *engines: SearchBackend):
        self.default = engines[0]
        self._by_identity = {engine.identity: engine for engine in engines}
        if len(self._by_identity) < len(engines):
            raise ValueError(
                "SEARCH_URL has two engines of the same kind and name; name them, for example with ?name=second."
            )
        for engine in self.all():
            observe_calls(
                engine,
                OPERATIONS,
                seconds=ENGINE_SECONDS.labels,
                failures={
                    BackendUnavailable: ENGINE_FAILURES.labels,
                    EngineNotAsked: partial(_not_asked_counter, engine.identity),
                },
            )

    def get_engine(self, identity: str) -> SearchBackend:
        """Return the engine with this identity, as stored with a site.

        Raises:
            BackendMisconfigured: This process has no such engine.
        """
        engine = self._by_identity.get(identity)
        if engine is None:
            raise BackendMisconfigured("The site's index is on an engine that is not configured in SEARCH_URL.")
        return engine

    def get_or_default(self, identity: str) -> SearchBackend:
        """Return the engine with this identity, or the first engine if this process has no such engine."""
        return self._by_identity.get(identity, self.default)

    def get_named(self, name: str) -> SearchBackend:
        """Return the engine with this name in its URL, or with this identity.

        Raises:
            KeyError: No engine has this name or identity.
        """
        names = {identity.partition(":")[2] or identity: engine for identity, engine in self._by_identity.items()}
        return names[name] if name in names else self._by_identity[name]

    def knows(self, identity: str) -> bool:
        """Whether an engine with this identity is configured."""
        return identity in self._by_identity

    def all(self) -> list[SearchBackend]:
        """Return all engines in use."""
        return list(self._by_identity.values())

    def is_available(self, identity: str) -> bool:
        """Whether an engine responds."""
        try:
            self.get_engine(identity).check()
        except BackendError:
            return False
        return True

    def run_maintenance(self) -> None:
        """Start maintenance that makes later searches faster, in every engine."""
        for engine in self.all():
            engine.run_maintenance()

    def close(self) -> None:
        """Close all engines."""
        for engine in self.all():
            engine.close()


class EngineLocks:
    """Locks of the service for engines. An unavailable lock store must not make searches fail.

    Args:
        locks: Locks shared by all processes of the service.
    """

    def __init__(self, locks: Locks):
        self._locks = locks

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Wait for the lock ``name`` and hold it.

        Raises:
            BackendUnavailable: Locks are unavailable.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locks.hold(name))
            except Exception as error:
                if not is_unavailable(error):
                    raise
                raise BackendUnavailable("The search engine cannot be changed now.") from error
            yield

    @contextmanager
    def try_hold(self, name: str) -> Iterator[bool]:
        """Hold the lock ``name`` if it is free. Yields whether it is held; ``False`` if locks are unavailable."""
        with ExitStack() as stack:
            try:
                is_held = stack.enter_context(self._locks.try_hold(name))
            except Exception as error:
                if not is_unavailable(error):
                    raise
                is_held = False
            yield is_held


T = TypeVar("T")


def ask_available(engines: Iterable[SearchBackend], question: Callable[[SearchBackend], T]) -> dict[SearchBackend, T]:
    """Ask every engine, and map each available one to its result. An unavailable engine affects only its own sites.

    Raises:
        BackendUnavailable: None of the engines is available.
    """
    results: dict[SearchBackend, T] = {}
    failure: BackendUnavailable | None = None
    for engine in engines:
        try:
            results[engine] = question(engine)
        except BackendUnavailable as error:
            failure = error
    if failure is not None and not results:
        raise failure
    return results


DELETE_INDEX = "delete_index"
REVOKE_CREDENTIAL = "revoke_credential"
PURGE_SITE = "purge_site"
REMOVE_SOURCE = "remove_source"
RELEASE_SOURCE = "release_source"

AT_ENGINES = (DELETE_INDEX, REVOKE_CREDENTIAL)
"""Actions that only concern an engine; the others change the database."""

TASK_PAUSES = Pauses(1.0, 300.0)
LATEST_TASK = timedelta(minutes=10)
"""Maximum time until a task is due, unless it waits for an operator. If it is later, the clock was set back.
"""
PURGE_STEP = 500

log = logging.getLogger(__name__)


def add_task(session: Session, engine: str, action: str, subject: str, *, due_at: datetime | None = None) -> None:
    """Add a task, due now or at ``due_at``."""
    moment = now()
    session.add(EngineTask(engine=engine, action=action, subject=subject, due_at=due_at or moment, created_at=moment))


TaskHandler = Callable[[EngineTask], datetime | None]
"""Function that runs a task of another module. It returns the time to continue, or ``None`` if the task is finished."""


def run_due_tasks(
    database: Database,
    engines: Engines,
    counters: CounterStore,
    handlers: Mapping[str, TaskHandler],
    *,
    limit: int = 100,
) -> int:
    """Run due tasks. Failed tasks are retried with backoff.

    Running a task twice is harmless, so several machines may do this at the same time.

    Args:
        handlers: Handlers for the actions of other modules.

    Returns:
        Number of finished tasks.
    """
    with database.read() as session:
        tasks = session.scalars(
            select(EngineTask)
            .where(has_come(EngineTask.due_at, now(), LATEST_TASK))
            .order_by(EngineTask.id)
            .limit(limit)
        ).all()
    finished = 0
    for task in tasks:
        try:
            resume_at = _run_task(database, engines, counters, handlers, task)
        # One unavailable engine must not stop the other tasks.
        except BackendError as error:
            _postpone(database, task, error)
            continue
        with database.write() as session:
            if resume_at is None:
                # After the task, not in one transaction with it: a process that dies in between leaves the task, which
                # is repeated.
                session.execute(delete(EngineTask).where(EngineTask.id == task.id))
                finished += 1
            else:
                session.execute(update(EngineTask).where(EngineTask.id == task.id).values(due_at=resume_at))
    return finished


def _run_task(
    database: Database,
    engines: Engines,
    counters: CounterStore,
    handlers: Mapping[str, TaskHandler],
    task: EngineTask,
) -> datetime | None:
    if task.action in handlers:
        return handlers[task.action](task)
    match task.action:
        case "delete_index":
            engines.get_engine(task.engine).delete_index(task.subject)
        case "revoke_credential":
            engines.get_engine(task.engine).revoke_credential(task.subject)
        case "purge_site":
            account_id, site_id = (int(part) for part in task.subject.split(":"))
            purge_site(database, counters, account_id, site_id)
        case other:
            raise AssertionError(f"unknown engine task {other!r}")
    return None


def _postpone(database: Database, task: EngineTask, error: BackendError) -> None:
    delay = timedelta(seconds=TASK_PAUSES.after(task.attempts + 1))
    log.warning("engine task %s (%s) failed and is retried in %s: %s", task.id, task.action, delay, error)
    with database.write() as session:
        stored = session.get(EngineTask, task.id)
        if stored is not None:
            stored.attempts += 1
            stored.due_at = now() + delay


def purge_site(database: Database, counters: CounterStore, account_id: int, site_id: int) -> None:
    """Delete all data of a deleted site from SQL, in small steps, so that other writers wait only briefly."""
    while True:
        with database.write() as session:
            # Several processes may purge the site at the same time, so all lock rows in this order.
            ids = session.scalars(
                select(StoredDocument.id)
                .where(StoredDocument.site_id == site_id)
                .order_by(StoredDocument.id)
                .limit(PURGE_STEP)
                .with_for_update()
            ).all()
            if not ids:
                break
            session.execute(delete(StoredDocument).where(StoredDocument.site_id == site_id, StoredDocument.id.in_(ids)))
    has_more = True
    while has_more:
        with database.write() as session:
            has_more = remove_vectors(session, site_id, PURGE_STEP)
    with database.write() as session:
        session.execute(delete(Sync).where(Sync.site_id == site_id))
        events.forget_site(session, site_id)
    # Last, because an outage of the counter store then only repeats the cheap steps above.
    counters.forget_site(account_id, site_id, now=now().timestamp())
