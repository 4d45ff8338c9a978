"""Rows of documents and of syncs: reading them, and changing them for the writers of a site.

Callers of functions that change rows hold the site's lock (:func:`app.services.sites.get_writable_site`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import ColumnElement, and_, func, literal_column, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import API_SOURCE, Site, StoredDocument, Sync
from app.models.base import to_microseconds
from schemas.validation.documents import ValidDocument

LOOKUP_STEP = 500

BODIES_STEP_BYTES = 4_194_304
"""Maximum number of bytes of bodies read together, unless a single body is larger."""

SYNC_LAPSES_AFTER = timedelta(hours=24)

Id = TypeVar("Id", str, tuple[str, int])

_SYNC_ID = re.compile(r"sync_[A-Z2-7]{16}", re.ASCII)

_UPSERT = """
INSERT INTO documents (site_id, id, revision, changed_at, body, source, seen_by)
VALUES ({0}, {0}, {0}, {0}, {0}, {0}, {0})
ON CONFLICT (site_id, id) DO UPDATE
SET revision = excluded.revision, changed_at = excluded.changed_at, body = excluded.body, source = excluded.source,
    seen_by = excluded.seen_by
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a document.

    Attributes:
        source: The source that wrote it last.
        seen_by: Number of the sync that saw it last.
    """

    source: str = API_SOURCE
    seen_by: int | None = None


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stored document.

    Attributes:
        revision: The site's revision of its last change.
        changed_at: Microseconds since the Unix epoch.
    """

    id: str
    revision: int
    body: bytes
    origin: Origin
    changed_at: int


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A document's position among the site's documents, which are ordered by revision and ID."""

    revision: int
    id: str


def known_ids(session: Session, site_id: int, ids: Sequence[str]) -> set[str]:
    """Return the IDs in ``ids`` whose documents the site has."""
    return _ids_where(session, site_id, ids, StoredDocument.body.is_not(None))


def seen_ids(session: Session, sync: Sync, ids: Sequence[str]) -> set[str]:
    """Return the IDs in ``ids`` whose documents a sync has seen and that were not written since."""
    return _ids_where(session, sync.site_id, ids, StoredDocument.seen_by == sync.number)


def ids_from(session: Session, site_id: int, source: str, ids: Sequence[str]) -> set[str]:
    """Return the IDs in ``ids`` whose documents the site has from one source."""
    return _ids_where(session, site_id, ids, from_source(source))


def _ids_where(session: Session, site_id: int, ids: Sequence[str], condition: ColumnElement[bool]) -> set[str]:
    matches: set[str] = set()
    for step in steps(ids):
        matches.update(
            session.scalars(
                select(StoredDocument.id).where(
                    StoredDocument.site_id == site_id, StoredDocument.id.in_(step), condition
                )
            )
        )
    return matches


def steps(ids: Sequence[Id]) -> Iterator[Sequence[Id]]:
    """Split IDs, with or without sizes, into batches that fit into one statement."""
    for start in range(0, len(ids), LOOKUP_STEP):
        yield ids[start : start + LOOKUP_STEP]


def read_stored(session: Session, site_id: int, ids: Sequence[str]) -> Iterator[StoredBody]:
    """Yield existing documents in the order of ``ids``, keeping few large documents in memory at a time."""
    for step in steps(ids):
        rows = session.execute(
            select(StoredDocument.id, func.length(StoredDocument.body)).where(
                StoredDocument.site_id == site_id, StoredDocument.id.in_(step), StoredDocument.body.is_not(None)
            )
        )
        sizes = {row.id: row[1] for row in rows}
        for part in parts_by_size([(identifier, sizes[identifier]) for identifier in step if identifier in sizes]):
            yield from read_bodies(session, site_id, part)


def read_bodies(session: Session, site_id: int, ids: Sequence[str]) -> Iterator[StoredBody]:
    """Yield existing documents in the order of ``ids``, reading all of them in one query."""
    rows = session.execute(
        select(
            StoredDocument.id,
            StoredDocument.revision,
            StoredDocument.body,
            StoredDocument.source,
            StoredDocument.seen_by,
            StoredDocument.changed_at,
        ).where(StoredDocument.site_id == site_id, StoredDocument.id.in_(ids))
    )
    by_id = {row.id: row for row in rows}
    for identifier in ids:
        row = by_id.pop(identifier, None)
        if row is not None and row.body is not None:
            yield StoredBody(row.id, row.revision, row.body, Origin(row.source, row.seen_by), row.changed_at)


def parts_by_size(sizes: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Split document IDs into batches of limited total size, each to be read in one query."""
    part: list[str] = []
    total = 0
    for identifier, size in sizes:
        if part and total + size > BODIES_STEP_BYTES:
            yield part
            part, total = [], 0
        part.append(identifier)
        total += size
    if part:
        yield part


def bodies_in_parts(session: Session, site_id: int, sizes: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the bodies of documents with known sizes, keeping few large bodies in memory at a time."""
    for part in parts_by_size(sizes):
        for step in steps(part):
            query = select(StoredDocument.body).where(StoredDocument.site_id == site_id, StoredDocument.id.in_(step))
            yield from (body for body in session.scalars(query) if body is not None)


def newest_rows(
    session: Session,
    site_id: int,
    source: str | None,
    ids: Sequence[str] | None,
    before: ListPosition | None,
    limit: int,
) -> list[tuple[ListPosition, int]]:
    """Return positions and sizes of documents, most recently changed first.

    Args:
        source: Only documents of this source.
        ids: Only documents with these IDs, which must fit into one statement.
        before: Only documents that follow this position in the list.
    """
    query = (
        select(StoredDocument.revision, StoredDocument.id, func.length(StoredDocument.body))
        .where(StoredDocument.site_id == site_id, from_source(source))
        .order_by(StoredDocument.revision.desc(), StoredDocument.id.desc())
        .limit(limit)
    )
    if ids is not None:
        query = query.where(StoredDocument.id.in_(ids))
    if before is not None:
        query = query.where(
            # Follows from the next line, but lets the database read a range of the index.
            StoredDocument.revision <= before.revision,
            (StoredDocument.revision < before.revision) | (StoredDocument.id < before.id),
        )
    return [(ListPosition(row.revision, row.id), row[2]) for row in session.execute(query)]


def nearest_rows(session: Session, site_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the IDs and sizes of a site's documents, shortest IDs first."""
    query = (
        select(StoredDocument.id, func.length(StoredDocument.body))
        .where(StoredDocument.site_id == site_id, StoredDocument.body.is_not(None))
        .order_by(func.length(StoredDocument.id), StoredDocument.id)
        .limit(limit)
    )
    return [(row.id, row[1]) for row in session.execute(query)]


def count_from(session: Session, site_id: int, source: str) -> int:
    """Return the number of a site's documents from one source."""
    query = select(func.count()).where(StoredDocument.site_id == site_id, from_source(source))
    return session.scalar(query) or 0


def count_marks(session: Session, site_id: int) -> int:
    """Return the number of removed documents that the site's index may still contain."""
    query = select(func.count()).where(StoredDocument.site_id == site_id, StoredDocument.body.is_(None))
    return session.scalar(query) or 0


def next_source(session: Session, site_id: int, after: str) -> str | None:
    """Return the next source name after ``after``, other than ``api``. This uses an SQL index, not a scan."""
    query = select(func.min(StoredDocument.source)).where(
        StoredDocument.site_id == site_id,
        StoredDocument.source != literal_column(f"'{API_SOURCE}'"),
        StoredDocument.source > after,
    )
    return session.scalar(query)


def store(session: Session, site_id: int, revision: int, written: Iterable[tuple[ValidDocument, Origin]]) -> int:
    """Write documents under a revision, and return the time of the change in microseconds."""
    changed_at = to_microseconds(now())
    rows = [
        (site_id, document.id, revision, changed_at, document.body, origin.source, origin.seen_by)
        for document, origin in written
    ]
    if rows:
        # SQLAlchemy's compiled statement would process every value of every row.
        connection = session.connection()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        connection.exec_driver_sql(_UPSERT.format(mark), rows)
    return changed_at


def remove_stored(session: Session, site: Site, ids: Sequence[str], *, up_to: int | None = None) -> int:
    """Mark documents as deleted under a new revision of the site, and return the number that existed.

    Args:
        up_to: Keep documents that were written after this revision.
    """
    changed_at = to_microseconds(now())
    last = site.revision if up_to is None else up_to
    removed = 0
    for step in steps(ids):
        # The row stays without a body, and is deleted once the index has removed the document.
        removed += _changed_rows(
            session,
            StoredDocument.id.in_(step) & StoredDocument.body.is_not(None) & (StoredDocument.revision <= last),
            site.id,
            {"body": None, "revision": site.revision + 1, "changed_at": changed_at},
        )
    if removed:
        site.revision += 1
        site.document_count -= removed
        session.flush()
    return removed


def mark_stored(session: Session, sync: Sync, ids: Sequence[str]) -> set[str]:
    """Mark documents of a sync's source as seen, and count the documents that it had not seen before.

    Returns:
        The IDs in ``ids`` whose documents the site has from this source.
    """
    for step in steps(ids):
        condition = _source_condition(sync) & StoredDocument.id.in_(step) & _unseen(sync)
        sync.seen += _changed_rows(session, condition, sync.site_id, {"seen_by": sync.number})
    return ids_from(session, sync.site_id, sync.source, ids)


class SeenMarks:
    """The documents that syncs have seen in an uncommitted transaction, so that each document counts once."""

    def __init__(self, session: Session):
        self._session = session
        self._ids: dict[int, set[str]] = {}

    def origin(self, sync: Sync, documents: Sequence[ValidDocument]) -> Origin:
        """Mark documents as seen by a sync, and return their origin."""
        ids = {document.id for document in documents} - self._ids.setdefault(sync.number, set())
        sync.seen += len(ids) - len(seen_ids(self._session, sync, list(ids)))
        sync.called_at = now()
        self._ids[sync.number] |= ids
        return Origin(sync.source, sync.number)


def _changed_rows(session: Session, condition: ColumnElement[bool], site_id: int, values: dict[str, object]) -> int:
    statement = update(StoredDocument).where(StoredDocument.site_id == site_id, condition).values(values)
    result = session.execute(statement, execution_options={"synchronize_session": False})
    return int(result.rowcount)  # type: ignore[attr-defined]  # An UPDATE's result has one.


def find_sync(session: Session, site_id: int, sync_id: str) -> Sync | None:
    """Return the site's sync with this ID, if it exists."""
    if not _SYNC_ID.fullmatch(sync_id):
        return None
    return session.scalar(select(Sync).where(Sync.id == sync_id, Sync.site_id == site_id))


def find_open_sync(session: Session, site_id: int, sync_id: str) -> Sync | None:
    """Return the site's sync with this ID, if it is running."""
    sync = find_sync(session, site_id, sync_id)
    return None if sync is None or sync.status != "running" or has_lapsed(sync, now()) else sync


def sync_not_found() -> ApiError:
    """Return the 404 for a sync that does not exist, belongs to another site, or has ended."""
    return ApiError(ErrorCode.SYNC_NOT_FOUND, "Sync not found: it does not exist, or has ended.")


def has_lapsed(sync: Sync, moment: datetime) -> bool:
    """Whether a running sync has had no calls for too long. A sync whose sweep has begun does not lapse."""
    return sync.removed is None and sync.called_at + SYNC_LAPSES_AFTER <= moment


def _source_condition(sync: Sync) -> ColumnElement[bool]:
    return from_source(sync.source)


def from_source(source: str | None) -> ColumnElement[bool]:
    """Return the condition for existing documents, optionally of one source."""
    exists = StoredDocument.body.is_not(None)
    if source is None:
        return exists
    if source == API_SOURCE:
        return and_(exists, StoredDocument.source == source)
    # The partial index has the same second condition, which lets query planners use it.
    return and_(exists, StoredDocument.source == source, StoredDocument.source != literal_column(f"'{API_SOURCE}'"))


def _unseen(sync: Sync) -> ColumnElement[bool]:
    return StoredDocument.seen_by.is_(None) | (StoredDocument.seen_by != sync.number)


def count_of_source(session: Session, sync: Sync) -> tuple[int, int]:
    """Return the number of documents of a sync's source, and how many of them the sync has not seen."""
    row = session.execute(
        select(func.count(), func.count().filter(_unseen(sync))).where(
            StoredDocument.site_id == sync.site_id, _source_condition(sync)
        )
    ).one()
    return int(row[0]), int(row[1])


def unseen_rows(session: Session, sync: Sync, after: tuple[int, str], limit: int) -> Sequence[tuple[int, str]]:
    """Return revision and ID of the next documents after ``after`` of a sync's source that it has not seen."""
    revision, identifier = after
    # The first condition follows from the second, but lets the database read a range of the index.
    later = (StoredDocument.revision >= revision) & (
        (StoredDocument.revision > revision) | (StoredDocument.id > identifier)
    )
    rows = session.execute(
        select(StoredDocument.revision, StoredDocument.id)
        .where(StoredDocument.site_id == sync.site_id, _source_condition(sync), _unseen(sync), later)
        .order_by(StoredDocument.revision, StoredDocument.id)
        .limit(limit)
    )
    return [(row.revision, row.id) for row in rows]


def sites_with_document(session: Session, site_ids: Sequence[int], document_id: str) -> set[int]:
    """Return the sites that have a document with an ID."""
    having = StoredDocument.site_id.in_(site_ids), StoredDocument.id == document_id, StoredDocument.body.is_not(None)
    return set(session.scalars(select(StoredDocument.site_id).where(*having)))
