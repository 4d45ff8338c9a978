"""Writing documents of a site: first to SQL, then to the index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.clock import today
from app.counters.base import CounterStore
from app.errors import ApiError, Detail, ErrorCode, validation_error
from app.models import API_SOURCE
from app.plans import QUOTA_REJECTIONS, PlanLimits
from app.services.indexing.group_commit import GroupCommit, Written
from app.services.indexing.indexer import Indexer
from app.services.indexing.stored_documents import (
    Origin,
    SeenMarks,
    count_marks,
    find_open_sync,
    known_ids,
    read_stored,
    remove_stored,
    store,
    sync_not_found,
)
from app.services.site_fields import (
    SeenKinds,
    TooManySiteFields,
    find_rejected,
    forget_if_empty,
    kinds_of,
    remember,
)
from app.services.sites import count_documents, get_account, get_writable_site
from app.services.usage.daily_usage import count_changed, discount_changed
from app.storage.database import Database
from app.wording import counted, number
from backends.base import Document
from backends.errors import BackendUnavailable
from backends.sections import SECTIONS, is_sections
from schemas.validation.documents import DocumentChange, DocumentProblems, ValidDocument, read_document
from schemas.validation.problems import MAX_PROBLEMS

MIN_MARKS = 1_000
"""Number of pending removals that every plan allows for an index that cannot be updated."""


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """Result of a bulk write: the number of distinct IDs written, and how many of them were new."""

    indexed: int
    created: int

    @property
    def updated(self) -> int:
        """Number of replaced documents."""
        return self.indexed - self.created


@dataclass(frozen=True, slots=True)
class _Batch:
    limits: PlanLimits
    documents: Sequence[ValidDocument]
    source: str = API_SOURCE
    sync_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Stored:
    """A batch that was stored in SQL.

    Attributes:
        created: Number of new IDs in the batch.
        written: All documents of the revision, including those of other batches.
        day: The day whose usage includes the batch.
    """

    revision: int
    created: int
    written: Sequence[Document]
    day: date


@dataclass(frozen=True, slots=True)
class _Changed:
    """Changes of fields that were stored in SQL."""

    revision: int
    changed: int
    day: date


class DocumentWriter:
    """Writes documents so that they are durable and searchable when a call returns.

    Concurrent writers share a transaction in SQL, and then a commit in the engine.
    """

    def __init__(self, database: Database, counters: CounterStore, indexer: Indexer, max_site_fields: int):
        self._transactions = GroupCommit(database, counters)
        self._indexer = indexer
        self._max_site_fields = max_site_fields

    def put(
        self,
        account_id: int,
        limits: PlanLimits,
        site_id: int,
        documents: Sequence[ValidDocument],
        *,
        source: str = API_SOURCE,
        sync_id: str | None = None,
    ) -> BulkOutcome:
        """Add or replace documents with distinct IDs, all or none.

        Args:
            source: The source of the documents, unless they belong to a sync.
            sync_id: The running sync that the documents belong to; they get its source.

        Raises:
            TooManySiteFields: The site would have too many custom fields. ApiError: 404 for the site or the sync;
                403 when the site is paused or the plan's document limit would be exceeded.
            BackendUnavailable: The documents are stored, but may not be searchable yet.
        """
        stored = self._transactions.run_together(
            account_id,
            site_id,
            _Batch(limits, documents, source, sync_id),
            partial(_put, account_id, site_id, self._max_site_fields),
        )
        # The documents are stored. If the engine fails now, the background job indexes them later.
        with self._discounted_if_unavailable(account_id, {stored.day: len(documents)}):
            self._indexer.apply(site_id, stored.revision, stored.written)
        return BulkOutcome(len(documents), stored.created)

    def remove(self, account_id: int, site_id: int, document_id: str) -> None:
        """Remove one document.

        Raises:
            ApiError: 404 for the site or the document; 403 when the site is paused.
            BackendUnavailable: The document is removed, but searches may still return it for a while.
        """
        if not self.remove_ids(account_id, site_id, [document_id]):
            raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Document not found.")

    def remove_ids(self, account_id: int, site_id: int, ids: Sequence[str]) -> int:
        """Remove documents by ID, and return the number that existed.

        Raises:
            ApiError: 404 for the site; 403 when it is paused.
            BackendUnavailable: The documents are removed, but searches may still return them for a while.
        """

        removed, revision, day = self._remove_step(account_id, site_id, ids)
        if removed:
            with self._discounted_if_unavailable(account_id, {day: removed}):
                self._indexer.apply(site_id, revision)
        return removed

    def remove_all(self, account_id: int, site_id: int, batches: Iterable[Sequence[str]], up_to: int) -> int:
        """Remove documents in separate steps, so that no other writer waits for long, and return their number.

        Args:
            batches: The IDs of each step. The iterable is consumed lazily, while earlier steps run.
            up_to: Keep documents that were written after this revision.

        Raises:
            ApiError: 404 for the site; 403 when it is paused.
            BackendUnavailable: The documents are removed, but searches may still return them for a while.
        """
        total = last_revision = 0
        by_day: dict[date, int] = {}
        for ids in batches:
            removed, last_revision, day = self._remove_step(account_id, site_id, ids, up_to=up_to)
            by_day[day] = by_day.get(day, 0) + removed
            total += removed
        if total:
            with self._discounted_if_unavailable(account_id, by_day):
                self._indexer.apply(site_id, last_revision)
        return total

    def _remove_step(
        self, account_id: int, site_id: int, ids: Sequence[str], *, up_to: int | None = None
    ) -> tuple[int, int, date]:
        """Remove documents in one transaction. Returns their number, the site's revision, and the day of the usage."""

        def write(session: Session) -> Written[tuple[int, int, date]]:
            get_account(session, account_id, lock=True)
            site = get_writable_site(session, account_id, site_id)
            removed = remove_stored(session, site, ids, up_to=up_to)
            if not removed:
                return Written((0, site.revision, today()))
            forgot_fields = forget_if_empty(site)
            session.flush()
            # The count reads the site's row in SQL, which the flush above has updated.
            day = count_changed(session, account_id, removed, added=-removed)
            return Written((removed, site.revision, day), account_id if forgot_fields else None)

        return self._transactions.run(account_id, write)

    def change(self, account_id: int, site_id: int, changes: Sequence[DocumentChange]) -> int:
        """Change fields of documents, all or none, and return the number of documents. Their sources do not change.

        Args:
            changes: Applied in order; several may change the same document.

        Raises:
            TooManySiteFields: The site would have too many custom fields. ApiError: 400 if a document would not be
                valid; 404 for the site, or an unknown ID; 403 when the site is paused.
            BackendUnavailable: The documents are stored, but may not be searchable yet.
        """
        stored = self._transactions.run(
            account_id, partial(_change, account_id, site_id, self._max_site_fields, changes)
        )
        with self._discounted_if_unavailable(account_id, {stored.day: stored.changed}):
            self._indexer.apply(site_id, stored.revision)
        return stored.changed

    @contextmanager
    def _discounted_if_unavailable(self, account_id: int, changed: Mapping[date, int]) -> Iterator[None]:
        # A client that gets a 503 repeats the request, and only the repeated request is charged.
        try:
            yield
        except BackendUnavailable:

            def write(session: Session) -> Written[None]:
                get_account(session, account_id, lock=True)
                for day, documents in changed.items():
                    discount_changed(session, account_id, day, documents)
                return Written(None)

            self._transactions.run(account_id, write)
            raise


def _put(
    account_id: int, site_id: int, max_site_fields: int, session: Session, batches: Sequence[_Batch]
) -> Written[Sequence[_Stored | Exception]]:
    """Store the batches of one site that are within the limits of the site and the plan, under one revision.

    Raises:
        ApiError: 404 for the site; 403 when it is paused.
    """
    get_account(session, account_id, lock=True)
    site = get_writable_site(session, account_id, site_id)
    ids = {document.id for batch in batches for document in batch.documents}
    stored_ids = known_ids(session, site.id, list(ids))
    # Counting all documents is slow, so it is skipped if the batch only replaces documents.
    may_exceed = stored_ids != ids and any(batch.limits.documents is not None for batch in batches)
    document_count = count_documents(session, account_id) if may_exceed else 0
    if may_exceed and (site.rebuilding or site.applied_revision < site.revision):
        _reject_more_marks(session, site.id, batches)
    created: list[int | ApiError] = []
    accepted: dict[str, tuple[ValidDocument, Origin]] = {}
    site_kinds = SeenKinds(kinds_of(site))
    marks = SeenMarks(session)
    for batch in batches:
        sync = None if batch.sync_id is None else find_open_sync(session, site.id, batch.sync_id)
        if batch.sync_id is not None and sync is None:
            created.append(sync_not_found())
            continue
        rejected = find_rejected(batch.documents, site_kinds.kinds, max_site_fields)
        if rejected:
            created.append(TooManySiteFields(batch.documents, rejected, max_site_fields))
            continue
        new_ids = {document.id for document in batch.documents} - stored_ids
        if batch.limits.documents is not None and new_ids and document_count + len(new_ids) > batch.limits.documents:
            created.append(_over_quota(batch.limits.documents, document_count, len(new_ids)))
            continue
        # Later batches of the transaction see these IDs as existing, and do not count them again.
        stored_ids |= new_ids
        document_count += len(new_ids)
        origin = Origin(batch.source) if sync is None else marks.origin(sync, batch.documents)
        # Batches are in order of arrival, so the last document with an ID replaces earlier documents.
        accepted |= {document.id: (document, origin) for document in batch.documents}
        for document in batch.documents:
            site_kinds.add(document.kinds)
        created.append(len(new_ids))
    has_new_fields = False
    written: list[Document] = []
    day = today()
    if accepted:
        site.revision += 1
        added = sum(count for count in created if isinstance(count, int))
        site.document_count += added
        has_new_fields = remember(site, site_kinds.kinds)
        changed_at = store(session, site.id, site.revision, accepted.values())
        session.flush()
        written_counts = (
            len(batch.documents) for batch, count in zip(batches, created, strict=True) if isinstance(count, int)
        )
        day = count_changed(session, account_id, sum(written_counts), added=added)
        written = [Document.of(document.id, document.fields, changed_at) for document, _ in accepted.values()]
    return Written(
        [count if isinstance(count, ApiError) else _Stored(site.revision, count, written, day) for count in created],
        account_id if has_new_fields else None,
    )


def _reject_more_marks(session: Session, site_id: int, batches: Sequence[_Batch]) -> None:
    """Reject new documents while too many removals are pending for an index that cannot be updated.

    Otherwise a customer could fill the database by repeatedly adding and removing documents, since each removed
    document leaves a row until the index has been updated.

    Raises:
        BackendUnavailable: Too many removals are pending.
    """
    limits = [batch.limits.documents for batch in batches if batch.limits.documents is not None]
    if count_marks(session, site_id) > max([*limits, MIN_MARKS]):
        raise BackendUnavailable("Earlier changes to the site are not indexed yet.", retry_after=60)


def _change(
    account_id: int, site_id: int, max_site_fields: int, changes: Sequence[DocumentChange], session: Session
) -> Written[_Changed]:
    """Store documents with changed fields under one revision, keeping few documents in memory at a time.

    Raises:
        ApiError: 400 if a document would not be valid; 404 for the site or an unknown ID; 403 when the site is paused.
    """
    get_account(session, account_id, lock=True)
    site = get_writable_site(session, account_id, site_id)
    by_id: dict[str, list[DocumentChange]] = {}
    for change in changes:
        by_id.setdefault(change.id, []).append(change)
    site_kinds = SeenKinds(kinds_of(site))
    problems: list[Detail] = []
    count = 0
    site.revision += 1
    for stored in read_stored(session, site.id, list(by_id)):
        count += 1
        document_changes = by_id[stored.id]
        try:
            document = read_document(_changed_fields(stored.body, document_changes), document_changes[-1].position)
        except DocumentProblems as error:
            problems += _problems_of(document_changes[-1], error)
            # The response does not list further problems.
            if len(problems) > MAX_PROBLEMS:
                break
            continue
        rejected = find_rejected([document], site_kinds.kinds, max_site_fields)
        if rejected:
            raise TooManySiteFields([document], rejected, max_site_fields)
        site_kinds.add(document.kinds)
        store(session, site.id, site.revision, [(document, stored.origin)])
    if problems:
        raise validation_error(problems)
    if count < len(by_id):
        stored_ids = known_ids(session, site.id, list(by_id))
        missing = next(identifier for identifier in by_id if identifier not in stored_ids)
        raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, f"Document {missing!r} not found. Nothing was changed.")
    has_new_fields = remember(site, site_kinds.kinds)
    session.flush()
    day = count_changed(session, account_id, count, added=0)
    return Written(_Changed(site.revision, count, day), account_id if has_new_fields else None)


def _changed_fields(body: bytes, changes: Iterable[DocumentChange]) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(body)
    for change in changes:
        if "content" in change.fields and SECTIONS not in change.fields and is_sections(fields.get(SECTIONS)):
            # The sections' positions refer to the old content.
            del fields[SECTIONS]
        fields |= change.fields
        for name in change.removed:
            fields.pop(name, None)
    return fields


def _problems_of(change: DocumentChange, error: DocumentProblems) -> Iterator[Detail]:
    path = f"documents[{change.position}]"
    for name, problem in error.problems:
        field = f"{path}.{name}" if name else path
        yield Detail(
            field, problem.code, f"{name or path} {problem}", {"index": change.position, "id": change.id}
        )  # fmt: skip


def _over_quota(limit: int, document_count: int, created: int) -> ApiError:
    QUOTA_REJECTIONS.labels("documents").inc()
    return ApiError(
        ErrorCode.DOCUMENT_LIMIT_REACHED,
        f"The plan allows {counted(limit, 'document')}; the account has {number(document_count)}, and this batch adds "
        f"{counted(created, 'new document')}. None of the batch was indexed.",
    )
