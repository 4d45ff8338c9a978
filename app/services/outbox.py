"""The outbox: tasks for engines, written in the transaction that makes them necessary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.models import EngineTask, StoredDocument, Sync
from app.models.base import has_come
from app.services.analytics import events
from app.services.engines import Engines
from app.services.vectors.stored_vectors import remove_vectors
from app.storage.backoff import Pauses
from app.storage.database import Database
from backends.errors import BackendError

DELETE_INDEX = "delete_index"
REVOKE_CREDENTIAL = "revoke_credential"
PURGE_SITE = "purge_site"
REMOVE_SOURCE = "remove_source"
RELEASE_SOURCE = "release_source"

AT_ENGINES = (DELETE_INDEX, REVOKE_CREDENTIAL)
"""Actions that only concern an engine; the others change the database."""

PAUSES = Pauses(1.0, 300.0)
LATEST = timedelta(minutes=10)
"""Maximum time until a task is due, unless it waits for an operator. If it is later, the clock was set back.
"""
PURGE_STEP = 500

log = logging.getLogger(__name__)


def add(session: Session, engine: str, action: str, subject: str, *, due_at: datetime | None = None) -> None:
    """Add a task, due now or at ``due_at``."""
    moment = now()
    session.add(EngineTask(engine=engine, action=action, subject=subject, due_at=due_at or moment, created_at=moment))


Handler = Callable[[EngineTask], datetime | None]
"""Function that runs a task of another module. It returns the time to continue, or ``None`` if the task is finished."""


def run_due(
    database: Database,
    engines: Engines,
    counters: CounterStore,
    handlers: Mapping[str, Handler],
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
            select(EngineTask).where(has_come(EngineTask.due_at, now(), LATEST)).order_by(EngineTask.id).limit(limit)
        ).all()
    finished = 0
    for task in tasks:
        try:
            go_on_at = _run(database, engines, counters, handlers, task)
        # One unavailable engine must not stop the other tasks.
        except BackendError as error:
            _postpone(database, task, error)
            continue
        with database.write() as session:
            if go_on_at is None:
                session.execute(delete(EngineTask).where(EngineTask.id == task.id))
                finished += 1
            else:
                session.execute(update(EngineTask).where(EngineTask.id == task.id).values(due_at=go_on_at))
    return finished


def _run(
    database: Database,
    engines: Engines,
    counters: CounterStore,
    handlers: Mapping[str, Handler],
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
    delay = timedelta(seconds=PAUSES.after(task.attempts + 1))
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
    counters.forget_site(account_id, site_id, now=now().timestamp())
