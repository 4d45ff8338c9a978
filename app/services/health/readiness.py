"""Tell whether this process can do its work now."""

from __future__ import annotations

import logging

from sqlalchemy import select

from app.counters.base import CounterStore
from app.errors import ApiError, ErrorCode
from app.models import Site
from app.services.engines import Engines
from app.storage.database import Database
from app.storage.migrate import TablesState, tables_state
from backends.errors import BackendUnavailable, IndexNotFound

log = logging.getLogger(__name__)

SAMPLE = 3
"""Sites whose index is compared with SQL: an engine that answers may still be loading its documents."""


def check_readiness(database: Database, counters: CounterStore, engines: Engines) -> None:
    """Return if database, counters and search engine can work.

    Raises:
        ApiError: 503: the database's tables are still those of an older version.
        SQLAlchemyError: The database cannot.
        CountersUnavailable: The counter store cannot.
        BackendUnavailable: The engine cannot, or does not have its documents back yet.
    """
    if tables_state(database) is TablesState.OLDER:
        log.error("the database's tables are missing or of an older version: run `database upgrade`")
        raise ApiError(
            ErrorCode.DATABASE_UNAVAILABLE,
            "The database's tables are missing or of an older version; they must be upgraded.",
            retry_after=5,
        )
    with database.read() as session:
        largest = session.scalars(
            select(Site)
            .where(Site.applied_revision == Site.revision, Site.document_count > 0)
            .order_by(Site.document_count.desc())
            .limit(SAMPLE)
        ).all()
    counters.check()
    for engine in engines.all():
        engine.check()
    for site in largest:
        holder = engines.get_engine(site.engine)
        if not holder.persistent:
            continue
        try:
            count = holder.count(site.engine_index)
        except IndexNotFound:
            continue  # It is rebuilt from SQL at the next search.
        if count < site.document_count:
            raise BackendUnavailable("The search engine is still loading its documents.", retry_after=5)
