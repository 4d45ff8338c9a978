"""Documents that a run would have removed, had it not been too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import ErrorCode
from app.models import SourceRun, Sync
from app.services.indexing.stored_documents import count_of_source, read_stored, unseen_rows

LISTED = 100
"""Most documents that are listed."""


@dataclass(frozen=True, slots=True)
class RefusedSweep:
    """Documents that a run did not find again.

    Attributes:
        total: How many there are.
        urls: Addresses of the first of them.
    """

    total: int
    urls: Sequence[str]


def find_refused_sweep(session: Session, run: SourceRun | None) -> RefusedSweep | None:
    """Documents that ``run`` would have removed; ``None`` if it was not refused, or nothing of it is left."""
    if run is None or run.error is None or run.error["code"] != ErrorCode.SYNC_REMOVES_TOO_MUCH:
        return None
    sync = session.scalar(select(Sync).where(Sync.id == run.sync_id))
    if sync is None:
        return None
    _, total = count_of_source(session, sync)
    ids = [identifier for _, identifier in unseen_rows(session, sync, (0, ""), LISTED)]
    urls = [orjson.loads(stored.body)["url"] for stored in read_stored(session, sync.site_id, ids)]
    return RefusedSweep(total, urls) if total else None
