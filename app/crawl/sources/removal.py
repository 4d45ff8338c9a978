"""Deleting a source, and what becomes of its documents: in steps, and also if the process ends on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.clock import now
from app.crawl.sources import runs
from app.crawl.sources.sources import get_source
from app.errors import ApiError, ErrorCode
from app.models import API_SOURCE, EngineTask, RunPage, Site, Source, SourcePage, SourceRun, StoredDocument, Sync
from app.services import outbox
from app.services.indexing.documents import DocumentWriter
from app.services.indexing.stored_documents import from_source
from app.services.sites import get_site
from app.storage.database import Database

STEP = 500
"""Documents that are changed in one transaction."""
PAGE_STEP = 2_000
"""Rows of pages that are deleted in one transaction."""
WORK_SECONDS = 2.0
"""How long a task works at a time; others have their turn then."""
LATE_WRITES = timedelta(minutes=2)
"""How long after its deletion a source may still get documents, from a process that has a run of it in hand."""
PAUSED = timedelta(minutes=5)
"""How often it is looked whether a paused site was resumed."""


def delete_source(database: Database, account_id: int, site_id: int, source_id: str, *, keep_documents: bool) -> None:
    """Delete a source. A task of the outbox removes its documents, or makes them those of the API.

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
        action = outbox.RELEASE_SOURCE if keep_documents else outbox.REMOVE_SOURCE
        outbox.add(session, site.engine, action, f"{account_id}:{site.id}:{source.id}")
        session.delete(source)


def delete_pages_of_sites(database: Database, account_id: int, site_id: int | None = None) -> None:
    """The same for all sources of an account's sites, or of one, which are to be deleted."""
    of_account = select(Source.id).join(Site, Site.id == Source.site_id).where(Site.account_id == account_id)
    with database.read() as session:
        query = of_account if site_id is None else of_account.where(Site.id == site_id)
        source_ids = session.scalars(query).all()
    for source_id in source_ids:
        delete_pages(database, source_id)


def delete_pages(database: Database, source_id: str) -> None:
    """Forget what is known of a source's pages, in steps that keep other writers waiting little."""
    with database.read() as session:
        run_ids = session.scalars(select(SourceRun.id).where(SourceRun.source_id == source_id)).all()
    for run_id in run_ids:
        _delete_in_steps(database, RunPage.run_id == run_id, RunPage.url)
    _delete_in_steps(database, SourcePage.source_id == source_id, SourcePage.url)


def _delete_in_steps(database: Database, condition: ColumnElement[bool], url: InstrumentedAttribute[str]) -> None:
    more = True
    while more:
        with database.write() as session:
            end = session.scalar(select(url).where(condition).order_by(url).offset(PAGE_STEP).limit(1))
            step = condition if end is None else condition & (url < end)
            session.execute(delete(url.class_).where(step), execution_options={"synchronize_session": False})
            more = end is not None


class SourceRemoval:
    """Works on the outbox's tasks of deleted sources.

    Attributes:
        handlers: Action to who works on it.
    """

    def __init__(self, database: Database, writer: DocumentWriter):
        self._database = database
        self._writer = writer
        self.handlers: dict[str, outbox.Handler] = {
            outbox.REMOVE_SOURCE: self.remove,
            outbox.RELEASE_SOURCE: self.release,
        }

    def remove(self, task: EngineTask) -> datetime | None:
        """Remove a deleted source's documents; gives when to go on, ``None`` when all is done.

        Raises:
            BackendUnavailable: The engine is away.
        """
        return self._work(task, self._remove)

    def release(self, task: EngineTask) -> datetime | None:
        """Make a deleted source's documents those of the API; gives when to go on, ``None`` when all is done."""
        return self._work(task, self._release)

    def _remove(self, account_id: int, site_id: int, source_id: str, ids: list[str]) -> None:
        self._writer.remove_ids(account_id, site_id, ids)

    def _work(self, task: EngineTask, change: Callable[[int, int, str, list[str]], None]) -> datetime | None:
        account_id, site_id, source_id = task.subject.split(":")
        until = time.monotonic() + WORK_SECONDS
        try:
            while ids := self._ids(int(site_id), source_id):
                change(int(account_id), int(site_id), source_id, ids)
                if time.monotonic() >= until:
                    return now()
        except ApiError as error:
            if error.code is ErrorCode.SITE_INACTIVE:
                return now() + PAUSED
            if error.code is not ErrorCode.SITE_NOT_FOUND:
                raise
            return None
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
            get_site(session, account_id, site_id, lock=True, deleted_too=True)
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
