"""Scheduled runs: their due times, and queuing them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.crawl.sources.runs import request_run
from app.models import Account, Site, Source
from app.models.base import from_microseconds, to_microseconds
from app.storage.database import ROW_LOCK

PERIODS: Mapping[str, timedelta | None] = {
    "none": None,
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
}
"""Time between two runs for each ``schedule`` of a source."""

MAX_QUEUED_AT_ONCE = 100
"""Maximum number of sources that are queued in one transaction."""


def next_run_at(source_id: str, schedule: str, after: datetime) -> datetime | None:
    """Return a source's next due time, within one period after ``after``; ``None`` without a schedule.

    Each source has its own offset within the period, so that the sources of an installation are spread over it. A late
    run does not shift the offset.
    """
    period = PERIODS[schedule]
    if period is None:
        return None
    length = int(period.total_seconds()) * 1_000_000
    # Derived from the ID, so that it needs no column and survives changes of the schedule.
    offset = int.from_bytes(hashlib.sha256(source_id.encode()).digest()[:8], "big") % length
    earliest = to_microseconds(after) + 1
    return from_microseconds(earliest + (offset - earliest) % length)


def _min_interval(schedule: str) -> timedelta:
    """Return the minimum time between two scheduled runs, which also holds if the first run was late."""
    return (PERIODS[schedule] or timedelta(0)) / 2


def count_due(session: Session, moment: datetime) -> int:
    """Return the number of sources that are due."""
    return session.scalar(select(func.count()).select_from(Source).where(Source.next_run_at <= moment)) or 0


def queue_due(session: Session, moment: datetime) -> int:
    """Queue the runs that are due, and return the number of due sources.

    A source that missed several runs gets one run now, and its next run at least half a period later. Sources of paused
    sites and suspended accounts are skipped.
    """
    due = session.execute(
        select(Source, Site.active & Account.suspended_at.is_(None))
        .join(Site, Site.id == Source.site_id)
        .join(Account, Account.id == Site.account_id)
        .where(Source.next_run_at <= moment)
        .order_by(Source.next_run_at)
        .limit(MAX_QUEUED_AT_ONCE)
        # Another process is queuing the runs of locked sources.
        .with_for_update(of=Source, skip_locked=True, **ROW_LOCK)
    ).all()
    for source, active in due:
        if active:
            request_run(session, source)
        source.next_run_at = next_run_at(source.id, source.schedule, moment + _min_interval(source.schedule))
    session.flush()
    return len(due)
