"""Reading the audit log, newest first, and deleting old entries."""

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
from app.services.sites import MAX_INT64
from app.storage.database import Database
from app.wording import csv_lines

RETENTION = timedelta(days=400)
"""Age at which entries are deleted."""
MAX_ENTRIES = 50_000
"""Maximum number of entries of an account."""
STEP = 1_000
"""Maximum number of entries that an export reads, or a cleanup deletes, in one transaction."""
COLUMNS = ("time", "actor", "actor_kind", "address", "action", "kind", "id", "name", "site_id", "changes")


@dataclass(frozen=True, slots=True)
class Selection:
    """Filter for entries; ``None`` matches any.

    Attributes:
        since: First included moment.
        until: First excluded moment.
        member_id: The member who made the change.
        kind: Kind of object.
    """

    account_id: int
    since: datetime | None = None
    until: datetime | None = None
    member_id: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of the log.

    Attributes:
        total: Current number of entries that match the selection.
        next_before: ID at which the next page begins; ``None`` on the last page.
    """

    entries: Sequence[AuditEntry]
    total: int
    next_before: int | None


def list_entries(session: Session, selection: Selection, *, limit: int, before: int | None) -> LogPage:
    """Return one page of the log.

    Entries never change and new entries come first, so reading pages one after the other neither skips nor repeats
    entries.

    Args:
        before: Return only entries with a lower ID; ``None`` for the newest.
    """
    entries = list(session.scalars(_page(selection, before, limit + 1)))
    total = session.scalar(select(func.count()).select_from(_selected(selection).subquery())) or 0
    return LogPage(entries[:limit], total, entries[limit - 1].id if len(entries) > limit else None)


@dataclass(frozen=True, slots=True)
class SettingsStates:
    """A site's complete stored search settings before and after a change."""

    site_id: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def settings_states(session: Session, account_id: int, entry_id: int) -> SettingsStates | None:
    """Return the search settings before and after a change; ``None`` if they or the site were deleted.

    Raises:
        ApiError: 404 if the account has no such entry.
    """
    entry = session.get(AuditEntry, entry_id) if entry_id <= MAX_INT64 else None
    if entry is None or entry.account_id != account_id or entry.kind != "search_settings":
        raise ApiError(ErrorCode.NOT_FOUND, "Change of search settings not found.")
    site = session.get(Site, entry.site_id)
    if entry.state is None or site is None or site.deleted_at is not None:
        return None
    newer = select(AuditEntry).where(
        AuditEntry.site_id == entry.site_id, AuditEntry.kind == entry.kind, AuditEntry.id > entry.id
    )
    following = session.scalar(newer.order_by(AuditEntry.id).limit(1))
    after = site.search_settings if following is None else following.state
    return None if after is None else SettingsStates(site.id, entry.state, after)


def _selected(selection: Selection) -> Select[AuditEntry]:
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
    query = _selected(selection)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return query.order_by(AuditEntry.id.desc()).limit(limit)


def export_csv(database: Database, selection: Selection) -> Iterator[str]:
    """Yield the entries as CSV (RFC 4180), newest first, a few at a time. Changes are JSON."""
    yield csv_lines([COLUMNS])
    before: int | None = None
    while True:
        with database.read() as session:
            entries = session.scalars(_page(selection, before, STEP)).all()
        if entries:
            yield csv_lines(_row(entry) for entry in entries)
            before = entries[-1].id
        if len(entries) < STEP:
            return


def _row(entry: AuditEntry) -> tuple[object, ...]:
    return (
        isoformat(entry.created_at),
        entry.actor_name,
        entry.actor_kind,
        entry.address or "",
        entry.action,
        entry.kind,
        entry.object_id,
        entry.object_name,
        "" if entry.site_id is None else entry.site_id,
        # Escaped, so that no semicolon gets an apostrophe, which would change the value.
        orjson.dumps(entry.changes).decode().replace(";", "\\u003b"),
    )


def delete_old_entries(session: Session) -> None:
    """Delete entries older than :data:`RETENTION`."""
    session.execute(delete(AuditEntry).where(AuditEntry.created_at < now() - RETENTION))


def delete_surplus_entries(database: Database) -> None:
    """Delete all but the newest :data:`MAX_ENTRIES` entries of each account.

    Deletes in small steps, so that other writers wait only briefly."""
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
