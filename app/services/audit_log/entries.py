"""Reading the audit log, newest first, and forgetting what is old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from app.clock import isoformat, now
from app.errors import ApiError, ErrorCode
from app.models import AuditEntry, Site
from app.services.csv_export import csv_lines, harmless
from app.services.sites import MAX_INT64
from app.storage.database import Database

KEPT = timedelta(days=400)
MAX_ENTRIES = 50_000
"""Entries of an account that are kept."""
STEP = 1_000
"""Entries that an export reads, or a clean-up deletes, in one transaction."""
COLUMNS = ("time", "actor", "actor_kind", "address", "action", "kind", "id", "name", "site_id", "changes")


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of entries; ``None`` is any.

    Attributes:
        since: The first moment that counts.
        until: The first moment that no longer does.
        member_id: Whose changes.
        kind: Of things.
    """

    account_id: int
    since: datetime | None = None
    until: datetime | None = None
    member_id: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the log.

    Attributes:
        total: How many entries the selection has now.
        next_before: Where the log goes on; ``None`` at its end.
    """

    entries: Sequence[AuditEntry]
    total: int
    next_before: int | None


def list_entries(session: Session, selection: Selection, *, limit: int, before: int | None) -> Page:
    """One page of the log.

    Entries are never changed and new ones come first, so pages that are read one after the other miss nothing and
    repeat nothing.

    Args:
        before: Only entries with a lower id; ``None`` for the newest.
    """
    found = list(session.scalars(_page(selection, before, limit + 1)))
    total = session.scalar(select(func.count()).select_from(_chosen(selection).subquery())) or 0
    return Page(found[:limit], total, found[limit - 1].id if len(found) > limit else None)


@dataclass(frozen=True, slots=True)
class SettingsStates:
    """A site's search settings before and after a change of them, whole, as they were stored."""

    site_id: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def settings_states(session: Session, account_id: int, entry_id: int) -> SettingsStates | None:
    """The search settings around a change of them; ``None`` if they are not kept any more, or the site is gone.

    Raises:
        ApiError: 404 if the account has no such entry.
    """
    entry = session.get(AuditEntry, entry_id) if entry_id <= MAX_INT64 else None
    if entry is None or entry.account_id != account_id or entry.kind != "search_settings":
        raise ApiError(ErrorCode.NOT_FOUND, "There is no such change of search settings.")
    site = session.get(Site, entry.site_id)
    if entry.state is None or site is None or site.deleted_at is not None:
        return None
    newer = select(AuditEntry).where(
        AuditEntry.site_id == entry.site_id, AuditEntry.kind == entry.kind, AuditEntry.id > entry.id
    )
    following = session.scalar(newer.order_by(AuditEntry.id).limit(1))
    after = site.search_settings if following is None else following.state
    return None if after is None else SettingsStates(site.id, entry.state, after)


def _chosen(selection: Selection) -> Select[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.account_id == selection.account_id)
    if selection.since is not None:
        query = query.where(AuditEntry.created_at >= selection.since)
    if selection.until is not None:
        query = query.where(AuditEntry.created_at < selection.until)
    if selection.member_id is not None:
        query = query.where(AuditEntry.actor_kind == "member", AuditEntry.actor_id == str(selection.member_id))
    if selection.kind is not None:
        query = query.where(AuditEntry.kind == selection.kind)
    return query


def _page(selection: Selection, before: int | None, limit: int) -> Select[AuditEntry]:
    query = _chosen(selection)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return query.order_by(AuditEntry.id.desc()).limit(limit)


def export_csv(database: Database, selection: Selection) -> Iterator[str]:
    """The entries as CSV (RFC 4180), newest first, a few at a time; changes are JSON."""
    yield csv_lines([COLUMNS])
    before: int | None = None
    while True:
        with database.read() as session:
            found = session.scalars(_page(selection, before, STEP)).all()
        if found:
            yield csv_lines(_row(entry) for entry in found)
            before = found[-1].id
        if len(found) < STEP:
            return


def _row(entry: AuditEntry) -> tuple[object, ...]:
    return (
        isoformat(entry.created_at),
        harmless(entry.actor_name),
        entry.actor_kind,
        entry.address or "",
        entry.action,
        entry.kind,
        entry.object_id,
        harmless(entry.object_name),
        "" if entry.site_id is None else entry.site_id,
        orjson.dumps(entry.changes).decode(),
    )


def delete_old_entries(session: Session) -> None:
    """Delete entries after :data:`KEPT`."""
    session.execute(delete(AuditEntry).where(AuditEntry.created_at < now() - KEPT))


def delete_surplus_entries(database: Database) -> None:
    """Keep the newest :data:`MAX_ENTRIES` entries of each account. Deletes in steps, so that writers wait briefly."""
    count = func.count()
    with database.read() as session:
        crowded = session.scalars(
            select(AuditEntry.account_id).group_by(AuditEntry.account_id).having(count > MAX_ENTRIES)
        ).all()
    for account_id in crowded:
        of_account = AuditEntry.account_id == account_id
        newest = select(AuditEntry.id).where(of_account).order_by(AuditEntry.id.desc())
        with database.read() as session:
            last_surplus = session.scalar(newest.limit(1).offset(MAX_ENTRIES))
        surplus = newest.where(AuditEntry.id <= (last_surplus or 0)).limit(STEP)
        more = True
        while more:
            with database.write() as session:
                ids = session.scalars(surplus).all()
                session.execute(delete(AuditEntry).where(AuditEntry.id.in_(ids)))
            more = len(ids) == STEP
