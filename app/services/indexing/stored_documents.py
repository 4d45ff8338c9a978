"""Rows of documents, and of the syncs that see them, as the writers of a site read and change them.

Whoever calls a function that changes rows holds the site's lock (:func:`app.services.sites.get_writable_site`).
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

BODIES_AT_ONCE = 4_194_304
"""Bytes of bodies that are read together, unless one is larger."""

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
    """The place where a document comes from.

    Attributes:
        source: Who wrote it last.
        seen_by: Number of the sync that saw it last.
    """

    source: str = API_SOURCE
    seen_by: int | None = None


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A document as it is stored.

    Attributes:
        revision: The site's revision that wrote it.
        changed_at: Microseconds since the Unix epoch.
    """

    id: str
    revision: int
    body: bytes
    origin: Origin
    changed_at: int


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a document stands among those of its site, in order of revision and id."""

    revision: int
    id: str


def known_ids(session: Session, site_id: int, ids: Sequence[str]) -> set[str]:
    """Those of ``ids`` that the site has."""
    return _ids_where(session, site_id, ids, StoredDocument.body.is_not(None))


def seen_ids(session: Session, sync: Sync, ids: Sequence[str]) -> set[str]:
    """Those of ``ids`` that a sync has seen, and nobody wrote since."""
    return _ids_where(session, sync.site_id, ids, StoredDocument.seen_by == sync.number)


def ids_from(session: Session, site_id: int, source: str, ids: Sequence[str]) -> set[str]:
    """Those of ``ids`` that the site has from one source."""
    return _ids_where(session, site_id, ids, from_source(source))


def _ids_where(session: Session, site_id: int, ids: Sequence[str], condition: ColumnElement[bool]) -> set[str]:
    found: set[str] = set()
    for step in steps(ids):
        found.update(
            session.scalars(
                select(StoredDocument.id).where(
                    StoredDocument.site_id == site_id, StoredDocument.id.in_(step), condition
                )
            )
        )
    return found


def steps(ids: Sequence[Id]) -> Iterator[Sequence[Id]]:
    """The ids, with or without sizes, in parts that fit into one statement."""
    for start in range(0, len(ids), LOOKUP_STEP):
        yield ids[start : start + LOOKUP_STEP]


def read_stored(session: Session, site_id: int, ids: Sequence[str]) -> Iterator[StoredBody]:
    """Those of ``ids`` that the site has, in their order; few large ones are in memory at once."""
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
    """Those of some ids that the site has, in their order, all read at once."""
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
    found = {row.id: row for row in rows}
    for identifier in ids:
        row = found.pop(identifier, None)
        if row is not None and row.body is not None:
            yield StoredBody(row.id, row.revision, row.body, Origin(row.source, row.seen_by), row.changed_at)


def parts_by_size(sizes: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """The ids of documents of these sizes, in parts that are read at once."""
    part: list[str] = []
    total = 0
    for identifier, size in sizes:
        if part and total + size > BODIES_AT_ONCE:
            yield part
            part, total = [], 0
        part.append(identifier)
        total += size
    if part:
        yield part


def bodies_in_parts(session: Session, site_id: int, sizes: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """The bodies of documents of these sizes, few large ones in memory at once."""
    for part in parts_by_size(sizes):
        for step in steps(part):
            query = select(StoredDocument.body).where(StoredDocument.site_id == site_id, StoredDocument.id.in_(step))
            yield from (body for body in session.scalars(query) if body is not None)


def newest_rows(
    session: Session, site_id: int, source: str | None, ids: Sequence[str] | None, before: Place | None, limit: int
) -> list[tuple[Place, int]]:
    """Places and sizes of documents, last changed first.

    Args:
        source: Those of one source only.
        ids: These only, no more than fit into a statement.
        before: Those that come after this one in the list.
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
            StoredDocument.revision <= before.revision,
            (StoredDocument.revision < before.revision) | (StoredDocument.id < before.id),
        )
    return [(Place(row.revision, row.id), row[2]) for row in session.execute(query)]


def nearest_rows(session: Session, site_id: int, limit: int) -> list[tuple[str, int]]:
    """Ids and sizes of a site's documents, those with the shortest ids first."""
    query = (
        select(StoredDocument.id, func.length(StoredDocument.body))
        .where(StoredDocument.site_id == site_id, StoredDocument.body.is_not(None))
        .order_by(func.length(StoredDocument.id), StoredDocument.id)
        .limit(limit)
    )
    return [(row.id, row[1]) for row in session.execute(query)]


def count_from(session: Session, site_id: int, source: str) -> int:
    """The number of documents a site has from one source."""
    query = select(func.count()).where(StoredDocument.site_id == site_id, from_source(source))
    return session.scalar(query) or 0


def count_marks(session: Session, site_id: int) -> int:
    """The number of removed documents of which the site's index has not heard."""
    query = select(func.count()).where(StoredDocument.site_id == site_id, StoredDocument.body.is_(None))
    return session.scalar(query) or 0


def next_source(session: Session, site_id: int, after: str) -> str | None:
    """The source whose name follows ``after``, of those that are not ``api``: found in the index, without a scan."""
    query = select(func.min(StoredDocument.source)).where(
        StoredDocument.site_id == site_id,
        StoredDocument.source != literal_column(f"'{API_SOURCE}'"),
        StoredDocument.source > after,
    )
    return session.scalar(query)


def store(session: Session, site_id: int, revision: int, written: Iterable[tuple[ValidDocument, Origin]]) -> int:
    """Write documents under ``revision``; gives the time of their change, in microseconds."""
    changed_at = to_microseconds(now())
    rows = [
        (site_id, document.id, revision, changed_at, document.body, origin.source, origin.seen_by)
        for document, origin in written
    ]
    if rows:
        # A compiled statement would look at every value of every row.
        connection = session.connection()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        connection.exec_driver_sql(_UPSERT.format(mark), rows)
    return changed_at


def remove_stored(session: Session, site: Site, ids: Sequence[str], *, up_to: int | None = None) -> int:
    """Mark documents as deleted under a new revision of the site; gives how many there were.

    Args:
        up_to: The last revision that may have written them.
    """
    changed_at = to_microseconds(now())
    last = site.revision if up_to is None else up_to
    removed = 0
    for step in steps(ids):
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
    """Mark documents of a sync's source as seen, and count those that it had not seen.

    Returns:
        Those of ``ids`` that the site has from this source.
    """
    for step in steps(ids):
        condition = _of_source(sync) & StoredDocument.id.in_(step) & _unseen(sync)
        sync.seen += _changed_rows(session, condition, sync.site_id, {"seen_by": sync.number})
    return ids_from(session, sync.site_id, sync.source, ids)


def _changed_rows(session: Session, condition: ColumnElement[bool], site_id: int, values: dict[str, object]) -> int:
    statement = update(StoredDocument).where(StoredDocument.site_id == site_id, condition).values(values)
    result = session.execute(statement, execution_options={"synchronize_session": False})
    return int(result.rowcount)  # type: ignore[attr-defined]  # An UPDATE's result has one.


def find_sync(session: Session, site_id: int, sync_id: str) -> Sync | None:
    """A sync of the site. What cannot be the id of one is not worth a query."""
    if not _SYNC_ID.fullmatch(sync_id):
        return None
    return session.scalar(select(Sync).where(Sync.id == sync_id, Sync.site_id == site_id))


def find_open_sync(session: Session, site_id: int, sync_id: str) -> Sync | None:
    """A sync of the site that takes calls."""
    sync = find_sync(session, site_id, sync_id)
    return None if sync is None or sync.status != "running" or has_lapsed(sync, now()) else sync


def sync_not_found() -> ApiError:
    """The 404 for a sync that does not exist, is another site's, or has ended."""
    return ApiError(ErrorCode.SYNC_NOT_FOUND, "Sync not found: it does not exist, or has ended.")


def has_lapsed(sync: Sync, moment: datetime) -> bool:
    """Tell whether nobody called a running sync for too long. One whose sweep has begun does not lapse."""
    return sync.removed is None and sync.called_at + SYNC_LAPSES_AFTER <= moment


def _of_source(sync: Sync) -> ColumnElement[bool]:
    return from_source(sync.source)


def from_source(source: str | None) -> ColumnElement[bool]:
    """The condition for documents that are there, of one source if it is named."""
    there = StoredDocument.body.is_not(None)
    if source is None:
        return there
    if source == API_SOURCE:
        return and_(there, StoredDocument.source == source)
    # The second condition stands in the index so, which planners must know to fit.
    return and_(there, StoredDocument.source == source, StoredDocument.source != literal_column(f"'{API_SOURCE}'"))


def _unseen(sync: Sync) -> ColumnElement[bool]:
    return StoredDocument.seen_by.is_(None) | (StoredDocument.seen_by != sync.number)


def count_of_source(session: Session, sync: Sync) -> tuple[int, int]:
    """The number of documents a sync's source has, and how many of them it has not seen."""
    row = session.execute(
        select(func.count(), func.count().filter(_unseen(sync))).where(
            StoredDocument.site_id == sync.site_id, _of_source(sync)
        )
    ).one()
    return int(row[0]), int(row[1])


def unseen_rows(session: Session, sync: Sync, after: tuple[int, str], limit: int) -> Sequence[tuple[int, str]]:
    """Revision and id of documents of its source that a sync has not seen, in this order, ``after`` one of them."""
    revision, identifier = after
    later = (StoredDocument.revision >= revision) & (
        (StoredDocument.revision > revision) | (StoredDocument.id > identifier)
    )
    rows = session.execute(
        select(StoredDocument.revision, StoredDocument.id)
        .where(StoredDocument.site_id == sync.site_id, _of_source(sync), _unseen(sync), later)
        .order_by(StoredDocument.revision, StoredDocument.id)
        .limit(limit)
    )
    return [(row.revision, row.id) for row in rows]
