"""Documents of a site: written to SQL first, then to the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now, today
from app.counters.base import CounterStore
from app.errors import ApiError, ErrorCode
from app.models import API_SOURCE, Site, StoredDocument
from app.models.base import to_microseconds
from app.plans import PlanLimits
from app.services.daily_usage import count_changed, discount_changed
from app.services.indexing.group_commit import GroupCommit, Written
from app.services.indexing.indexer import Indexer
from app.services.site_fields import (
    SeenKinds,
    TooManySiteFields,
    find_surplus,
    forget_if_empty,
    kinds_of,
    remember,
)
from app.services.sites import count_documents, get_account, get_site
from app.storage.database import Database
from app.wording import counted, number
from backends.base import Document
from backends.errors import BackendUnavailable
from schemas.validation.documents import ValidDocument

LOOKUP_STEP = 500

_UPSERT = """
INSERT INTO documents (site_id, id, revision, changed_at, body, source) VALUES ({0}, {0}, {0}, {0}, {0}, {0})
ON CONFLICT (site_id, id) DO UPDATE
SET revision = excluded.revision, changed_at = excluded.changed_at, body = excluded.body, source = excluded.source
"""


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """How many distinct ids were written, and which of them were new."""

    indexed: int
    created: int

    @property
    def updated(self) -> int:
        return self.indexed - self.created


@dataclass(frozen=True, slots=True)
class _Batch:
    limits: PlanLimits
    documents: Sequence[ValidDocument]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A batch in SQL.

    Attributes:
        created: How many ids of the batch were new.
        written: All that the revision wrote, other batches' documents too.
        day: The day whose usage it was counted in.
    """

    revision: int
    created: int
    written: Sequence[Document]
    day: date


class DocumentWriter:
    """Writes documents so that, when a call returns, they are durable and found by the next search.

    Writers that come together share a transaction, and then a commit of the engine.
    """

    def __init__(self, database: Database, counters: CounterStore, indexer: Indexer, max_site_fields: int):
        self._transactions = GroupCommit(database, counters)
        self._indexer = indexer
        self._max_site_fields = max_site_fields

    def put(self, account_id: int, limits: PlanLimits, site_id: int, documents: Sequence[ValidDocument]) -> BulkOutcome:
        """Add or replace documents with distinct ids, all or none.

        Raises:
            TooManySiteFields: The site would know more further fields than it may.
            ApiError: 404 for the site; 403 when the site is paused or the plan's documents would be exceeded.
            BackendUnavailable: They are stored but not, or perhaps not, searchable yet; they will be.
        """
        stored = self._transactions.run_together(
            account_id,
            site_id,
            _Batch(limits, documents),
            partial(_put, account_id, site_id, self._max_site_fields),
        )
        with self._discounted_if_unavailable(account_id, stored.day, len(documents)):
            self._indexer.apply(site_id, stored.revision, stored.written)
        return BulkOutcome(len(documents), stored.created)

    def remove(self, account_id: int, site_id: int, document_id: str) -> None:
        """Remove one document.

        Raises:
            ApiError: 404 for the site or the document; 403 when the site is paused.
            BackendUnavailable: It is removed here but perhaps still found; it will not be.
        """

        def write(session: Session) -> Written[tuple[int, date]]:
            get_account(session, account_id, lock=True)
            site = get_writable_site(session, account_id, site_id)
            document = session.get(StoredDocument, (site.id, document_id))
            if document is None or document.body is None:
                raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Document not found.")
            site.revision += 1
            site.document_count -= 1
            document.body = None
            document.revision = site.revision
            document.changed_at = to_microseconds(now())
            forgot_fields = forget_if_empty(site)
            session.flush()
            session.expunge(document)  # Others in this transaction write documents past the session.
            day = count_changed(session, account_id, 1)
            return Written((site.revision, day), account_id if forgot_fields else None)

        revision, day = self._transactions.run(account_id, write)
        with self._discounted_if_unavailable(account_id, day, 1):
            self._indexer.apply(site_id, revision)

    @contextmanager
    def _discounted_if_unavailable(self, account_id: int, day: date, documents: int) -> Iterator[None]:
        """Whoever is told that the engine is away repeats the request, and is counted then."""
        try:
            yield
        except BackendUnavailable:

            def write(session: Session) -> Written[None]:
                discount_changed(session, account_id, day, documents)
                return Written(None)

            self._transactions.run(account_id, write)
            raise


def _put(
    account_id: int, site_id: int, max_site_fields: int, session: Session, batches: Sequence[_Batch]
) -> Written[Sequence[_Stored | Exception]]:
    """Store batches of one site, those that fit the site and the plan, under one revision.

    Raises:
        ApiError: 404 for the site; 403 when it is paused.
    """
    get_account(session, account_id, lock=True)
    site = get_writable_site(session, account_id, site_id)
    ids = {document.id for batch in batches for document in batch.documents}
    known = known_ids(session, site.id, list(ids))
    may_exceed = known != ids and any(batch.limits.documents is not None for batch in batches)
    have = count_documents(session, account_id) if may_exceed else 0
    created: list[int | ApiError] = []
    kept: dict[str, ValidDocument] = {}
    seen = SeenKinds(kinds_of(site))
    for batch in batches:
        surplus = find_surplus(batch.documents, seen.kinds, max_site_fields)
        if surplus:
            created.append(TooManySiteFields(batch.documents, surplus, max_site_fields))
            continue
        fresh = {document.id for document in batch.documents} - known
        if batch.limits.documents is not None and fresh and have + len(fresh) > batch.limits.documents:
            created.append(_over_quota(batch.limits.documents, have, len(fresh)))
            continue
        known |= fresh
        have += len(fresh)
        kept |= {document.id: document for document in batch.documents}
        for document in batch.documents:
            seen.add(document.kinds)
        created.append(len(fresh))
    brings_fields = False
    written: list[Document] = []
    day = today()
    if kept:
        documents = list(kept.values())
        site.revision += 1
        site.document_count += sum(count for count in created if isinstance(count, int))
        brings_fields = remember(site, seen.kinds)
        changed_at = store(session, site.id, site.revision, documents)
        session.flush()
        taken = (len(batch.documents) for batch, count in zip(batches, created, strict=True) if isinstance(count, int))
        day = count_changed(session, account_id, sum(taken))
        written = [Document(document.id, document.fields, changed_at) for document in documents]
    return Written(
        [count if isinstance(count, ApiError) else _Stored(site.revision, count, written, day) for count in created],
        account_id if brings_fields else None,
    )


def get_writable_site(session: Session, account_id: int, site_id: int) -> Site:
    """Load and lock a site whose documents are to change.

    Raises:
        ApiError: 404; 403 ``site_inactive`` when it is paused.
    """
    site = get_site(session, account_id, site_id, lock=True)
    if not site.active:
        raise site_inactive()
    return site


def site_inactive() -> ApiError:
    """The 403 for a paused site."""
    return ApiError(ErrorCode.SITE_INACTIVE, "The site is paused; resume it to search or index.")


def _over_quota(limit: int, have: int, created: int) -> ApiError:
    return ApiError(
        ErrorCode.DOCUMENT_LIMIT_REACHED,
        f"The plan allows {counted(limit, 'document')}; the account has {number(have)}, and this batch adds "
        f"{counted(created, 'new document')}. None of the batch was indexed.",
    )


def known_ids(session: Session, site_id: int, ids: Sequence[str]) -> set[str]:
    """Which of ``ids`` the site has."""
    known: set[str] = set()
    for step in _steps(ids):
        known.update(
            session.scalars(
                select(StoredDocument.id).where(
                    StoredDocument.site_id == site_id, StoredDocument.id.in_(step), StoredDocument.body.is_not(None)
                )
            )
        )
    return known


def _steps(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), LOOKUP_STEP):
        yield ids[start : start + LOOKUP_STEP]


def store(session: Session, site_id: int, revision: int, documents: Sequence[ValidDocument]) -> int:
    """Write documents under ``revision``; gives the time of their change, in microseconds."""
    changed_at = to_microseconds(now())
    if documents:
        # A compiled statement would look at every value of every row.
        connection = session.connection()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        rows = [(site_id, document.id, revision, changed_at, document.body, API_SOURCE) for document in documents]
        connection.exec_driver_sql(_UPSERT.format(mark), rows)
    return changed_at
