"""Removal of a deleted source's documents in resumable steps, and removals that a run was not allowed to make."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.clock import now
from app.crawl.sources import runs
from app.crawl.sources.sources import get_source
from app.errors import ApiError, ErrorCode
from app.models import API_SOURCE, EngineTask, RunPage, Site, Source, SourcePage, SourceRun, StoredDocument, Sync
from app.services.engines import RELEASE_SOURCE, REMOVE_SOURCE, TaskHandler, add_task
from app.services.indexing.documents import DocumentWriter
from app.services.indexing.stored_documents import count_of_source, from_source, read_stored, unseen_rows
from app.services.sites import get_site
from app.storage.database import Database

STEP = 500
"""Maximum number of documents changed in one transaction."""
PAGE_STEP = 2_000
"""Maximum number of page rows deleted in one transaction."""
WORK_SECONDS = 2.0
"""Seconds after which a task yields to other tasks in the outbox."""
LATE_WRITES = timedelta(minutes=2)
"""Time after a source's deletion during which a process that executes its run may still write documents."""
PAUSED_SITE_RETRY = timedelta(minutes=5)
"""Delay until the next attempt to change the documents of a paused site."""


def delete_source(database: Database, account_id: int, site_id: int, source_id: str, *, keep_documents: bool) -> None:
    """Delete a source. A task in the outbox removes its documents, or assigns them to the API.

    Raises:
        ApiError: 404.
    """
    with database.write() as session:
        source = get_source(session, account_id, site_id, source_id, lock=True)
        if runs.find_open_run(session, source) is not None:
            runs.cancel_run(session, source)
    delete_pages(database, source_id)
    with database.write() as session:
        site = get_site(session, account_id, site_id, lock=True)
        source = get_source(session, account_id, site_id, source_id, lock=True)
        session.execute(
            update(Sync)
            .where(Sync.site_id == site.id, Sync.source == source.id, Sync.status == "running")
            .values(status="abandoned", ended_at=now())
        )
        action = RELEASE_SOURCE if keep_documents else REMOVE_SOURCE
        add_task(session, site.engine, action, f"{account_id}:{site.id}:{source.id}")
        session.delete(source)


def delete_pages_of_sites(database: Database, account_id: int, site_id: int | None = None) -> None:
    """Delete the records of all pages of an account's sites, or of one site, before the sites are deleted."""
    of_account = select(Source.id).join(Site, Site.id == Source.site_id).where(Site.account_id == account_id)
    with database.read() as session:
        query = of_account if site_id is None else of_account.where(Site.id == site_id)
        source_ids = session.scalars(query).all()
    for source_id in source_ids:
        delete_pages(database, source_id)


def delete_pages(database: Database, source_id: str) -> None:
    """Delete the records of a source's pages, in small steps so that other writers do not wait for long."""
    with database.read() as session:
        run_ids = session.scalars(select(SourceRun.id).where(SourceRun.source_id == source_id)).all()
    for run_id in run_ids:
        _delete_in_steps(database, RunPage.run_id == run_id, RunPage.url)
    _delete_in_steps(database, SourcePage.source_id == source_id, SourcePage.url)


def _delete_in_steps(database: Database, condition: ColumnElement[bool], url: InstrumentedAttribute[str]) -> None:
    more = True
    while more:
        with database.write() as session:
            # A range of the index, which deletes faster than a list of keys, and works without DELETE … LIMIT.
            end = session.scalar(select(url).where(condition).order_by(url).offset(PAGE_STEP).limit(1))
            step = condition if end is None else condition & (url < end)
            session.execute(delete(url.class_).where(step), execution_options={"synchronize_session": False})
            more = end is not None


class SourceRemoval:
    """Handles the outbox's tasks for deleted sources.

    Attributes:
        handlers: Handlers by action.
    """

    def __init__(self, database: Database, writer: DocumentWriter):
        self._database = database
        self._writer = writer
        self.handlers: dict[str, TaskHandler] = {
            REMOVE_SOURCE: self.remove,
            RELEASE_SOURCE: self.release,
        }

    def remove(self, task: EngineTask) -> datetime | None:
        """Remove documents of a deleted source.

        Returns:
            The time to continue; ``None`` when all documents are removed.

        Raises:
            BackendUnavailable: The engine is unavailable.
        """
        return self._work(task, self._remove)

    def release(self, task: EngineTask) -> datetime | None:
        """Assign documents of a deleted source to the API.

        Returns:
            The time to continue; ``None`` when all documents are assigned.
        """
        return self._work(task, self._release)

    def _remove(self, account_id: int, site_id: int, source_id: str, ids: list[str]) -> None:
        self._writer.remove_ids(account_id, site_id, ids)

    def _work(self, task: EngineTask, change: Callable[[int, int, str, list[str]], None]) -> datetime | None:
        account_id, site_id, source_id = task.subject.split(":")
        deadline = time.monotonic() + WORK_SECONDS
        try:
            while ids := self._ids(int(site_id), source_id):
                change(int(account_id), int(site_id), source_id, ids)
                if time.monotonic() >= deadline:
                    return now()
        except ApiError as error:
            if error.code is ErrorCode.SITE_INACTIVE:
                return now() + PAUSED_SITE_RETRY
            if error.code is not ErrorCode.SITE_NOT_FOUND:
                raise
            return None
        # A process that has not noticed the deletion yet may write once more, so the task looks again later.
        late = task.created_at + LATE_WRITES
        return late if now() < late else None

    def _ids(self, site_id: int, source_id: str) -> list[str]:
        with self._database.read() as session:
            return list(
                session.scalars(
                    select(StoredDocument.id)
                    .where(StoredDocument.site_id == site_id, from_source(source_id))
                    .limit(STEP)
                )
            )

    def _release(self, account_id: int, site_id: int, source_id: str, ids: list[str]) -> None:
        with self._database.write() as session:
            get_site(session, account_id, site_id, lock=True, include_deleted=True)
            session.execute(
                update(StoredDocument)
                .where(
                    StoredDocument.site_id == site_id,
                    StoredDocument.id.in_(ids),
                    StoredDocument.source == source_id,
                )
                .values(source=API_SOURCE, seen_by=None),
                execution_options={"synchronize_session": False},
            )


MAX_LISTED_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class BlockedSweep:
    """Documents that a run did not find again, but was not allowed to remove.

    Attributes:
        total: The number of documents.
        urls: The URLs of the first of these documents.
    """

    total: int
    urls: Sequence[str]


def find_blocked_sweep(session: Session, run: SourceRun | None) -> BlockedSweep | None:
    """Return the documents that ``run`` was not allowed to remove; ``None`` without such documents."""
    if run is None or run.error is None or run.error["code"] != ErrorCode.SYNC_REMOVES_TOO_MUCH:
        return None
    sync = session.scalar(select(Sync).where(Sync.id == run.sync_id))
    if sync is None:
        return None
    _, total = count_of_source(session, sync)
    ids = [identifier for _, identifier in unseen_rows(session, sync, (0, ""), MAX_LISTED_DOCUMENTS)]
    urls = [orjson.loads(stored.body)["url"] for stored in read_stored(session, sync.site_id, ids)]
    return BlockedSweep(total, urls) if total else None
