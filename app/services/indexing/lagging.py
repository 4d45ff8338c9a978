"""Finding sites whose index lacks stored changes, with the time and the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Site, StoredDocument
from app.models.base import from_microseconds


@dataclass(frozen=True, slots=True)
class LaggingSite:
    """A site whose index lacks changes.

    Attributes:
        since: Time of the oldest missing change; ``None`` if its row no longer exists.
        failed_at: Time of the last failed update, if any.
        error: The cause of the failure; for the operator.
    """

    id: int
    since: datetime | None
    failed_at: datetime | None
    error: str | None


def lagging_sites(session: Session) -> Sequence[tuple[int, int]]:
    """Return the IDs of sites whose index lacks changes, each with the revision that the index should have."""
    rows = session.execute(select(Site.id, Site.revision).where(Site.applied_revision < Site.revision))
    return [(row.id, row.revision) for row in rows]


def find_lagging(session: Session) -> list[LaggingSite]:
    """Return the sites whose index lacks changes, longest wait first."""
    oldest = (
        select(func.min(StoredDocument.changed_at))
        .where(StoredDocument.site_id == Site.id, StoredDocument.revision > Site.applied_revision)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Site.id, Site.indexing_failed_at, Site.indexing_error, oldest.label("oldest"))
        .where(Site.applied_revision < Site.revision)
        .order_by("oldest", Site.id)
    )
    return [
        LaggingSite(
            row.id,
            None if row.oldest is None else from_microseconds(row.oldest),
            row.indexing_failed_at,
            row.indexing_error,
        )
        for row in rows
    ]


def lagging_since(session: Session, site: Site) -> datetime | None:
    """Return the time of the oldest change that a site's index lacks, if any."""
    oldest = session.scalar(
        select(func.min(StoredDocument.changed_at)).where(
            StoredDocument.site_id == site.id, StoredDocument.revision > site.applied_revision
        )
    )
    return None if oldest is None else from_microseconds(oldest)
